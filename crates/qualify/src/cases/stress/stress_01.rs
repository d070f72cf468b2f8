//! STRESS-01: storm of changes.

use linerate_model::qualification::Level;

use crate::case::{Case, Privilege, Run};

pub(crate) static CASE: Case = Case {
    id: "STRESS-01",
    title: "storm of changes",
    does: "For a while random legal changes of MTU, rings, queues, moderation, features, modes, VLANs and \
           the address, and dumps, under traffic.",
    holds: "Afterwards the link is alive, everything goes back, the kernel's log is clean.",
    skipped: "",
    source: "ksft stats hammer, NDISTest 2c_Stress; new",
    privilege: Privilege::Admin,
    shown_on: "veth, all emulated cards, hardware",
    level: Level::Core,
    disruptive: true,
    opt_in: None,
    faults: &[],
    run: Run::NotOffered("this version of the suite does not have it yet"),
};
