//! FAULT-03: reset by ethtool.

use linerate_model::qualification::Level;

use crate::case::{Case, Privilege, Run};

pub(crate) static CASE: Case = Case {
    id: "FAULT-03",
    title: "reset by ethtool",
    does: "Each component, and all.",
    holds: "Configuration is kept, traffic is back within ten seconds.",
    skipped: "It is not supported.",
    source: "ethtool",
    privilege: Privilege::Admin,
    shown_on: "hardware",
    level: Level::Extended,
    disruptive: true,
    opt_in: None,
    faults: &[],
    run: Run::NotOffered("this version of the suite does not have it yet"),
};
