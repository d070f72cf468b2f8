//! HDS-01: header split.

use linerate_model::qualification::Level;

use crate::case::{Case, Privilege, Run};

pub(crate) static CASE: Case = Case {
    id: "HDS-01",
    title: "header split",
    does: "On and off, with thresholds.",
    holds: "As set.",
    skipped: "It is not supported.",
    source: "ksft hds, DTS",
    privilege: Privilege::Admin,
    shown_on: "hardware",
    level: Level::Extended,
    disruptive: false,
    opt_in: None,
    faults: &[],
    run: Run::NotOffered("no emulated card splits headers"),
};
