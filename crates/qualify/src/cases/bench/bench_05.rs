//! BENCH-05: back-to-back frames.

use linerate_model::qualification::Level;

use crate::case::{Case, Privilege, Run};

pub(crate) static CASE: Case = Case {
    id: "BENCH-05",
    title: "back-to-back frames",
    does: "The longest burst without loss, several times.",
    holds: "Recorded.",
    skipped: "The throughput is what is possible anyway.",
    source: "RFC 9004",
    privilege: Privilege::Raw,
    shown_on: "hardware",
    level: Level::Full,
    disruptive: false,
    opt_in: None,
    faults: &[],
    run: Run::NotOffered("this version of the suite does not have it yet"),
};
