//! LINK-03: speed and duplex.

use linerate_model::qualification::Level;

use crate::case::{Case, Privilege, Run};

pub(crate) static CASE: Case = Case {
    id: "LINK-03",
    title: "speed and duplex",
    does: "Each supported speed and duplex forced, and advertised alone.",
    holds: "Both ends agree, traffic is right, no errors.",
    skipped: "They cannot be set.",
    source: "NICDRV test06, ksft ethtool, UNH Clause 28",
    privilege: Privilege::Admin,
    shown_on: "hardware; e1000 and e1000e partly",
    level: Level::Extended,
    disruptive: true,
    opt_in: None,
    faults: &[],
    run: Run::NotOffered("this version of the suite does not have it yet"),
};
