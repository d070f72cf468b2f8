//! PM-03: kexec and hibernation.

use linerate_model::qualification::Level;

use crate::case::{Case, Privilege, Run};

pub(crate) static CASE: Case = Case {
    id: "PM-03",
    title: "kexec and hibernation",
    does: "A second kernel starts under receive load.",
    holds: "The device is found, memory is not written to.",
    skipped: "",
    source: "new",
    privilege: Privilege::Root,
    shown_on: "igb, e1000e, virtio, hardware",
    level: Level::Full,
    disruptive: false,
    opt_in: None,
    faults: &[],
    run: Run::NotOffered("it would end the agent that judges it"),
};
