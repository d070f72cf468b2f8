//! POIS-01: hostile frames.

use linerate_model::qualification::Level;

use crate::case::{Case, Privilege, Run};

pub(crate) static CASE: Case = Case {
    id: "POIS-01",
    title: "hostile frames",
    does: "Known killing patterns, lying length fields, every EtherType, empty datagrams, the most \
           options, random frames.",
    holds: "Nothing hangs, the dut lives, good traffic is unharmed.",
    skipped: "",
    source: "UNH 4.1.4; new",
    privilege: Privilege::Raw,
    shown_on: "all emulated cards, hardware",
    level: Level::Full,
    disruptive: false,
    opt_in: None,
    faults: &[],
    run: Run::NotOffered("this version of the suite does not have it yet"),
};
