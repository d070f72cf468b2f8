//! GRO-02: LRO and forwarding.

use linerate_model::qualification::Level;

use crate::case::{Case, Privilege, Run};

pub(crate) static CASE: Case = Case {
    id: "GRO-02",
    title: "LRO and forwarding",
    does: "LRO is on when the link joins a bridge or forwarding begins.",
    holds: "The stack switches LRO off, or packets leave at the MTU with right checksums.",
    skipped: "The link has no LRO.",
    source: "new (vmxnet3 reports)",
    privilege: Privilege::Admin,
    shown_on: "vmxnet3, hardware",
    level: Level::Core,
    disruptive: false,
    opt_in: None,
    faults: &[],
    run: Run::NotOffered("this version of the suite does not have it yet"),
};
