//! PCI-04: interrupt modes.

use linerate_model::qualification::Level;

use crate::case::{Case, Privilege, Run};

pub(crate) static CASE: Case = Case {
    id: "PCI-04",
    title: "interrupt modes",
    does: "MSI-X, MSI and INTx.",
    holds: "It works in each.",
    skipped: "",
    source: "NDISTest; new",
    privilege: Privilege::Root,
    shown_on: "e1000, e1000e, igb, vmxnet3, virtio, hardware",
    level: Level::Full,
    disruptive: false,
    opt_in: None,
    faults: &[],
    run: Run::NotOffered("the mode is chosen when the kernel starts"),
};
