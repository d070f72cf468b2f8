//! BOND-01: links on top.

use linerate_model::qualification::Level;

use crate::case::{Case, Privilege, Run};

pub(crate) static CASE: Case = Case {
    id: "BOND-01",
    title: "links on top",
    does: "Bond, bridge, macvlan over the link, added and removed 50 times under traffic.",
    holds: "Traffic is right, the address goes back, nothing stays promiscuous.",
    skipped: "The kernel has none of them.",
    source: "NICDRV test09, LNST, ksft",
    privilege: Privilege::Admin,
    shown_on: "veth, all emulated cards, hardware",
    level: Level::Extended,
    disruptive: true,
    opt_in: None,
    faults: &[],
    run: Run::NotOffered("this version of the suite does not have it yet"),
};
