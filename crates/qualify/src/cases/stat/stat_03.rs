//! STAT-03: counters that only grow.

use linerate_model::qualification::Level;

use crate::case::{Case, Privilege, Run};

pub(crate) static CASE: Case = Case {
    id: "STAT-03",
    title: "counters that only grow",
    does: "Counters over down and up, queue changes, and more than 4 GiB.",
    holds: "None goes back, none wraps at 32 bits.",
    skipped: "",
    source: "ksft stats, NICDRV",
    privilege: Privilege::Admin,
    shown_on: "veth, all emulated cards, hardware",
    level: Level::Extended,
    disruptive: true,
    opt_in: None,
    faults: &[],
    run: Run::NotOffered("this version of the suite does not have it yet"),
};
