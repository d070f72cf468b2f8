//! VLAN-03: two tags.

use linerate_model::qualification::Level;

use crate::case::{Case, Privilege, Run};

pub(crate) static CASE: Case = Case {
    id: "VLAN-03",
    title: "two tags",
    does: "A service tag before a customer tag, and two customer tags, with full payload both ways.",
    holds: "Tags and bytes are exact.",
    skipped: "",
    source: "DTS qinq",
    privilege: Privilege::Admin,
    shown_on: "veth, all emulated cards, hardware",
    level: Level::Extended,
    disruptive: false,
    opt_in: None,
    faults: &[],
    run: Run::NotOffered("this version of the suite does not have it yet"),
};
