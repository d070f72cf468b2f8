//! OFFL-01: features on and off under traffic.

use linerate_model::qualification::Level;

use crate::case::{Case, Privilege, Run};

pub(crate) static CASE: Case = Case {
    id: "OFFL-01",
    title: "features on and off under traffic",
    does: "Pairs of all offloads that can be changed are switched while TCP and UDP flows run.",
    holds: "Data is right in every state, what is set reads back, all goes back, the link stays up unless \
           the driver always resets it.",
    skipped: "A feature is fixed.",
    source: "LNST, ksft, NDISTest",
    privilege: Privilege::Admin,
    shown_on: "veth, all emulated cards, hardware",
    level: Level::Core,
    disruptive: true,
    opt_in: None,
    faults: &[],
    run: Run::NotOffered("this version of the suite does not have it yet"),
};
