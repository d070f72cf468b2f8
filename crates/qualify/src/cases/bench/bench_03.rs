//! BENCH-03: latency of RFC 8219.

use linerate_model::qualification::Level;

use crate::case::{Case, Privilege, Run};

pub(crate) static CASE: Case = Case {
    id: "BENCH-03",
    title: "latency of RFC 8219",
    does: "Tagged frames within a stream at the throughput's rate.",
    holds: "Recorded: typical and worst latency and its variation.",
    skipped: "Both ends share no clock.",
    source: "RFC 8219",
    privilege: Privilege::Raw,
    shown_on: "veth, hardware",
    level: Level::Full,
    disruptive: false,
    opt_in: None,
    faults: &[],
    run: Run::NotOffered("this version of the suite does not have it yet"),
};
