//! PAUSE-01: flow control settings.

use linerate_model::qualification::Level;

use crate::case::{Case, Privilege, Run};

pub(crate) static CASE: Case = Case {
    id: "PAUSE-01",
    title: "flow control settings",
    does: "All eight mixes of autonegotiation, receive and transmit pause.",
    holds: "What is set reads back as it resolves; the link stays.",
    skipped: "It is not supported.",
    source: "LNST, ksft",
    privilege: Privilege::Admin,
    shown_on: "e1000, e1000e, igb (settings only), hardware",
    level: Level::Extended,
    disruptive: true,
    opt_in: None,
    faults: &[],
    run: Run::NotOffered("this version of the suite does not have it yet"),
};
