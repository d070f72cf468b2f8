//! LINK-05: why the link is down.

use linerate_model::qualification::Level;

use crate::case::{Case, Privilege, Run};

pub(crate) static CASE: Case = Case {
    id: "LINK-05",
    title: "why the link is down",
    does: "No cable, a peer that is down, failed negotiation.",
    holds: "The extended state fits.",
    skipped: "It is not supported.",
    source: "ksft extended state",
    privilege: Privilege::Admin,
    shown_on: "hardware",
    level: Level::Extended,
    disruptive: false,
    opt_in: None,
    faults: &[],
    run: Run::NotOffered("only a real transceiver tells why a link is down"),
};
