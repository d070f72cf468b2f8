//! MM-01: preemption and schedules.

use linerate_model::qualification::Level;

use crate::case::{Case, Privilege, Run};

pub(crate) static CASE: Case = Case {
    id: "MM-01",
    title: "preemption and schedules",
    does: "MAC merge, time-aware and credit-based shaping.",
    holds: "As the standards say.",
    skipped: "It is not supported.",
    source: "ksft ethtool_mm, UNH",
    privilege: Privilege::Admin,
    shown_on: "hardware",
    level: Level::Full,
    disruptive: false,
    opt_in: None,
    faults: &[],
    run: Run::NotOffered("no emulated card has them"),
};
