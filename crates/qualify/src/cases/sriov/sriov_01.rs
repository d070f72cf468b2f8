//! SRIOV-01: virtual functions.

use linerate_model::qualification::Level;

use crate::case::{Case, Privilege, Run};

pub(crate) static CASE: Case = Case {
    id: "SRIOV-01",
    title: "virtual functions",
    does: "0, 1 and the most are made, with addresses, VLANs and traffic.",
    holds: "They are apart from one another, traffic flows.",
    skipped: "The device has none.",
    source: "LNST, NDISTest",
    privilege: Privilege::Root,
    shown_on: "igb, hardware",
    level: Level::Full,
    disruptive: false,
    opt_in: None,
    faults: &[],
    run: Run::NotOffered("the agents join one link on each node"),
};
