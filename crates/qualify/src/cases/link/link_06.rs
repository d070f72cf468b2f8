//! LINK-06: EEE, wake-up, FEC, MDI-X.

use linerate_model::qualification::Level;

use crate::case::{Case, Privilege, Run};

pub(crate) static CASE: Case = Case {
    id: "LINK-06",
    title: "EEE, wake-up, FEC, MDI-X",
    does: "Each value is set and read back, with traffic.",
    holds: "It reads back, traffic flows.",
    skipped: "It is not supported.",
    source: "ethtool, UNH Clause 40",
    privilege: Privilege::Admin,
    shown_on: "hardware; reading on e1000e, igb",
    level: Level::Extended,
    disruptive: true,
    opt_in: None,
    faults: &[],
    run: Run::NotOffered("this version of the suite does not have it yet"),
};
