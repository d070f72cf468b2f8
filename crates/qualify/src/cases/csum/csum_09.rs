//! CSUM-09: checksums switched off.

use linerate_model::qualification::Level;

use crate::case::{Case, Privilege, Run};

pub(crate) static CASE: Case = Case {
    id: "CSUM-09",
    title: "checksums switched off",
    does: "Receive checksums off, then transmit checksums off; kept over down and up and MTU changes.",
    holds: "Off, no packet is called good and the stack's sums are right; the switch stays.",
    skipped: "It is fixed.",
    source: "NDISTest, ksft",
    privilege: Privilege::Admin,
    shown_on: "veth, all emulated cards, hardware",
    level: Level::Extended,
    disruptive: true,
    opt_in: None,
    faults: &[],
    run: Run::NotOffered("this version of the suite does not have it yet"),
};
