//! STRESS-05: loading for hours.

use linerate_model::qualification::Level;

use crate::case::{Case, Privilege, Run};

pub(crate) static CASE: Case = Case {
    id: "STRESS-05",
    title: "loading for hours",
    does: "LIFE-02 and LIFE-03 for as long as is asked.",
    holds: "As there.",
    skipped: "As there.",
    source: "NICDRV load_unload",
    privilege: Privilege::Root,
    shown_on: "all emulated cards, hardware",
    level: Level::Full,
    disruptive: true,
    opt_in: None,
    faults: &[],
    run: Run::NotOffered("this version of the suite does not have it yet"),
};
