//! BENCH-02: throughput of RFC 2544.

use linerate_model::qualification::Level;

use crate::case::{Case, Privilege, Run};

pub(crate) static CASE: Case = Case {
    id: "BENCH-02",
    title: "throughput of RFC 2544",
    does: "The highest rate without loss for each frame size, by bisection.",
    holds: "Recorded, with the share of what is possible.",
    skipped: "",
    source: "RFC 2544, CSIT",
    privilege: Privilege::Raw,
    shown_on: "veth, emulated cards (recorded), hardware",
    level: Level::Full,
    disruptive: false,
    opt_in: None,
    faults: &[],
    run: Run::NotOffered("this version of the suite does not have it yet"),
};
