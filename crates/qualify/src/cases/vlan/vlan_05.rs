//! VLAN-05: VLAN, MTU and offloads.

use linerate_model::qualification::Level;

use crate::case::{Case, Privilege, Run};

pub(crate) static CASE: Case = Case {
    id: "VLAN-05",
    title: "VLAN, MTU and offloads",
    does: "Full payload behind a tag both ways with each setting of insertion and stripping; checksums \
           and segments behind a tag.",
    holds: "Frames of 1518 and 1522 bytes pass whole.",
    skipped: "",
    source: "NICDRV, LNST",
    privilege: Privilege::Admin,
    shown_on: "all emulated cards, hardware",
    level: Level::Extended,
    disruptive: false,
    opt_in: None,
    faults: &[],
    run: Run::NotOffered("this version of the suite does not have it yet"),
};
