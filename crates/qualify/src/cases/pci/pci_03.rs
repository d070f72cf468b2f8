//! PCI-03: surprise removal.

use linerate_model::qualification::Level;

use crate::case::{Case, OptIn, Privilege, Run};

pub(crate) static CASE: Case = Case {
    id: "PCI-03",
    title: "surprise removal",
    does: "The device is removed and found again, with sockets open.",
    holds: "No oops, nothing hangs, it works again with default settings.",
    skipped: "It cannot be removed.",
    source: "NICDRV test11",
    privilege: Privilege::Root,
    shown_on: "all emulated cards, hardware",
    level: Level::Full,
    disruptive: true,
    opt_in: Some(OptIn::PciReset),
    faults: &[],
    run: Run::NotOffered("this version of the suite does not have it yet"),
};
