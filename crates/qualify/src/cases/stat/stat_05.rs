//! STAT-05: histogram of lengths.

use linerate_model::qualification::Level;

use crate::case::{Case, Privilege, Run};

pub(crate) static CASE: Case = Case {
    id: "STAT-05",
    title: "histogram of lengths",
    does: "Frames at the edges of each bucket.",
    holds: "Each bucket counts what it must.",
    skipped: "The driver has no histogram.",
    source: "ksft ethtool_rmon",
    privilege: Privilege::Admin,
    shown_on: "igb and e1000e by their own counters, hardware",
    level: Level::Extended,
    disruptive: false,
    opt_in: None,
    faults: &[],
    run: Run::NotOffered("this version of the suite does not have it yet"),
};
