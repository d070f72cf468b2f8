//! STRESS-02: soak.

use linerate_model::qualification::Level;

use crate::case::{Case, Privilege, Run};

pub(crate) static CASE: Case = Case {
    id: "STRESS-02",
    title: "soak",
    does: "TCP and UDP of mixed sizes over both IP versions, both ways, with mode changes, for as long as \
           is asked; every byte compared.",
    holds: "No wrong byte, no error counter, no reset, memory flat, no link loss.",
    skipped: "",
    source: "NICDRV netstress, LNST",
    privilege: Privilege::None,
    shown_on: "veth, all emulated cards, hardware",
    level: Level::Core,
    disruptive: false,
    opt_in: None,
    faults: &[],
    run: Run::NotOffered("this version of the suite does not have it yet"),
};
