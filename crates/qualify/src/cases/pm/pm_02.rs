//! PM-02: runtime power management.

use linerate_model::qualification::Level;

use crate::case::{Case, Privilege, Run};

pub(crate) static CASE: Case = Case {
    id: "PM-02",
    title: "runtime power management",
    does: "The device sleeps while idle and is read meanwhile.",
    holds: "Reads wake it or say that it sleeps.",
    skipped: "It is not supported.",
    source: "new",
    privilege: Privilege::Root,
    shown_on: "hardware",
    level: Level::Full,
    disruptive: false,
    opt_in: None,
    faults: &[],
    run: Run::NotOffered("no emulated card sleeps by itself"),
};
