//! LINK-04: negotiation anew.

use linerate_model::qualification::Level;

use crate::case::{Case, Privilege, Run};

pub(crate) static CASE: Case = Case {
    id: "LINK-04",
    title: "negotiation anew",
    does: "Autonegotiation is restarted 50 times under traffic.",
    holds: "The link is back within six seconds, traffic goes on.",
    skipped: "It is not supported.",
    source: "ksft, ethtool",
    privilege: Privilege::Admin,
    shown_on: "e1000, e1000e, igb, e100, hardware",
    level: Level::Extended,
    disruptive: true,
    opt_in: None,
    faults: &[],
    run: Run::NotOffered("this version of the suite does not have it yet"),
};
