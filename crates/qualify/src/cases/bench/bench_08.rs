//! BENCH-08: cost of a packet.

use linerate_model::qualification::Level;

use crate::case::{Case, Privilege, Run};

pub(crate) static CASE: Case = Case {
    id: "BENCH-08",
    title: "cost of a packet",
    does: "Cycles and interrupts for each packet, packets for each interrupt.",
    holds: "Recorded.",
    skipped: "The machine counts no cycles: then CPU time is recorded.",
    source: "NDISTest E2EPerf, LNST",
    privilege: Privilege::Root,
    shown_on: "hardware",
    level: Level::Full,
    disruptive: false,
    opt_in: None,
    faults: &[],
    run: Run::NotOffered("this version of the suite does not have it yet"),
};
