//! BENCH-01: throughput and CPU.

use linerate_model::qualification::Level;

use crate::case::{Case, Privilege, Run};

pub(crate) static CASE: Case = Case {
    id: "BENCH-01",
    title: "throughput and CPU",
    does: "TCP and UDP streams and request-response, several runs each, with CPU time.",
    holds: "It runs to its end with traffic in it, and runs spread by less than 10 %; figures are recorded.",
    skipped: "On an emulated card figures are only recorded.",
    source: "LNST, NICDRV MAXQ, NDISTest, RFC 6349",
    privilege: Privilege::None,
    shown_on: "veth, all emulated cards, hardware",
    level: Level::Core,
    disruptive: false,
    opt_in: None,
    faults: &[],
    run: Run::NotOffered("this version of the suite does not have it yet"),
};
