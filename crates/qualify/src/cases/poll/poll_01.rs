//! POLL-01: netconsole.

use linerate_model::qualification::Level;

use crate::case::{Case, Privilege, Run};

pub(crate) static CASE: Case = Case {
    id: "POLL-01",
    title: "netconsole",
    does: "Kernel messages over the link under load.",
    holds: "They arrive; nothing locks up.",
    skipped: "The kernel has no netconsole.",
    source: "ksft netpoll",
    privilege: Privilege::Root,
    shown_on: "all emulated cards, hardware",
    level: Level::Extended,
    disruptive: false,
    opt_in: None,
    faults: &[],
    run: Run::NotOffered("this version of the suite does not have it yet"),
};
