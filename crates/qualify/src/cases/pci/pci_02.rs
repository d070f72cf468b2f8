//! PCI-02: error recovery.

use linerate_model::qualification::Level;

use crate::case::{Case, OptIn, Privilege, Run};

pub(crate) static CASE: Case = Case {
    id: "PCI-02",
    title: "error recovery",
    does: "Correctable, non-fatal and fatal errors are injected under traffic.",
    holds: "The driver's recovery runs, traffic is back within 30 seconds, configuration is kept.",
    skipped: "The driver has no recovery, or errors cannot be injected.",
    source: "new",
    privilege: Privilege::Root,
    shown_on: "e1000e, igb on a root port, hardware",
    level: Level::Full,
    disruptive: true,
    opt_in: Some(OptIn::PciReset),
    faults: &[],
    run: Run::NotOffered("this version of the suite does not have it yet"),
};
