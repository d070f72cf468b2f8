//! GRO-04: merging in hardware.

use linerate_model::qualification::Level;

use crate::case::{Case, Privilege, Run};

pub(crate) static CASE: Case = Case {
    id: "GRO-04",
    title: "merging in hardware",
    does: "rx-gro-hw on: order among merged and single packets, and its counters.",
    holds: "Order is kept, counters agree.",
    skipped: "The link has no rx-gro-hw.",
    source: "ksft gro_hw",
    privilege: Privilege::Admin,
    shown_on: "virtio with a tap, hardware",
    level: Level::Extended,
    disruptive: false,
    opt_in: None,
    faults: &[],
    run: Run::NotOffered("this version of the suite does not have it yet"),
};
