//! STAT-06: multicast and broadcast counters.

use linerate_model::qualification::Level;

use crate::case::{Case, Privilege, Run};

pub(crate) static CASE: Case = Case {
    id: "STAT-06",
    title: "multicast and broadcast counters",
    does: "A known number of each.",
    holds: "Counters that name them grow by exactly that.",
    skipped: "",
    source: "NICDRV, NDISTest",
    privilege: Privilege::Raw,
    shown_on: "all emulated cards, hardware",
    level: Level::Extended,
    disruptive: false,
    opt_in: None,
    faults: &[],
    run: Run::NotOffered("this version of the suite does not have it yet"),
};
