//! FORW-01: forwarding.

use linerate_model::qualification::Level;

use crate::case::{Case, Privilege, Run};

pub(crate) static CASE: Case = Case {
    id: "FORW-01",
    title: "forwarding",
    does: "The dut forwards, as a bridge and as a router, with mixed offloads.",
    holds: "Bytes and checksums are right on the way out.",
    skipped: "",
    source: "LNST, DTS l2fwd",
    privilege: Privilege::Admin,
    shown_on: "veth, all emulated cards, hardware",
    level: Level::Full,
    disruptive: false,
    opt_in: None,
    faults: &[],
    run: Run::NotOffered("this version of the suite does not have it yet"),
};
