//! FAULT-02: no memory.

use linerate_model::qualification::Level;

use crate::case::{Case, Privilege, Run};

pub(crate) static CASE: Case = Case {
    id: "FAULT-02",
    title: "no memory",
    does: "Allocations fail now and then on receive, open and resize.",
    holds: "No crash, no ring that stays short, the old configuration works on.",
    skipped: "The kernel has no fault injection.",
    source: "ksft pp_alloc_fail, NDISTest",
    privilege: Privilege::Root,
    shown_on: "a kernel of one's own, hardware",
    level: Level::Extended,
    disruptive: false,
    opt_in: None,
    faults: &[],
    run: Run::NotOffered("it needs a kernel built with fault injection"),
};
