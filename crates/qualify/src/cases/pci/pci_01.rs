//! PCI-01: reset of the function.

use linerate_model::qualification::Level;

use crate::case::{Case, OptIn, Privilege, Run};

pub(crate) static CASE: Case = Case {
    id: "PCI-01",
    title: "reset of the function",
    does: "The function is reset by each method the kernel offers, idle and under traffic, 20 times.",
    holds: "The link works again by itself or after down and up, with its address; nothing hangs.",
    skipped: "The device has no reset.",
    source: "new",
    privilege: Privilege::Root,
    shown_on: "igb, e1000e, e100, hardware",
    level: Level::Core,
    disruptive: true,
    opt_in: Some(OptIn::PciReset),
    faults: &[],
    run: Run::NotOffered("this version of the suite does not have it yet"),
};
