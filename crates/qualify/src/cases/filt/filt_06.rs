//! FILT-06: filters that stay.

use linerate_model::qualification::Level;

use crate::case::{Case, Privilege, Run};

pub(crate) static CASE: Case = Case {
    id: "FILT-06",
    title: "filters that stay",
    does: "Groups, VLAN ids and addresses over down and up, changes of rings, MTU and queues, and resets.",
    holds: "What was received before is received after.",
    skipped: "The link has no receive filter (veth).",
    source: "DTS port_restart, ksft",
    privilege: Privilege::Admin,
    shown_on: "all emulated cards, hardware",
    level: Level::Extended,
    disruptive: true,
    opt_in: None,
    faults: &[],
    run: Run::NotOffered("this version of the suite does not have it yet"),
};
