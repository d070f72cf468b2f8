//! STRESS-03: many connections.

use linerate_model::qualification::Level;

use crate::case::{Case, Privilege, Run};

pub(crate) static CASE: Case = Case {
    id: "STRESS-03",
    title: "many connections",
    does: "1000 to 3000 TCP connections at once, and many short ones.",
    holds: "All come to their end, every byte right.",
    skipped: "",
    source: "NICDRV netstress, LNST",
    privilege: Privilege::None,
    shown_on: "veth, all emulated cards, hardware",
    level: Level::Full,
    disruptive: false,
    opt_in: None,
    faults: &[],
    run: Run::NotOffered("this version of the suite does not have it yet"),
};
