//! VLAN-04: many VLANs.

use linerate_model::qualification::Level;

use crate::case::{Case, Privilege, Run};

pub(crate) static CASE: Case = Case {
    id: "VLAN-04",
    title: "many VLANs",
    does: "All ids from 1 to 4094 added, traffic on 32, removed in random order, with down and up.",
    holds: "All work, those removed are silent, it takes less than a minute, nothing leaks.",
    skipped: "The kernel has no VLAN links.",
    source: "NICDRV test08",
    privilege: Privilege::Admin,
    shown_on: "all emulated cards, hardware",
    level: Level::Extended,
    disruptive: true,
    opt_in: None,
    faults: &[],
    run: Run::NotOffered("this version of the suite does not have it yet"),
};
