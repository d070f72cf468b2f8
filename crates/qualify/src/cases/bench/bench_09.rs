//! BENCH-09: pktgen.

use linerate_model::qualification::Level;

use crate::case::{Case, Privilege, Run};

pub(crate) static CASE: Case = Case {
    id: "BENCH-09",
    title: "pktgen",
    does: "The kernel's generator on each queue.",
    holds: "Recorded; no watchdog.",
    skipped: "The kernel has no pktgen.",
    source: "FreeBSD pkt-gen",
    privilege: Privilege::Root,
    shown_on: "all emulated cards, hardware",
    level: Level::Full,
    disruptive: false,
    opt_in: None,
    faults: &[],
    run: Run::NotOffered("the agents' own generators measure the same in BENCH-02"),
};
