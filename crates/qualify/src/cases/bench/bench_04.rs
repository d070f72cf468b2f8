//! BENCH-04: frame loss curve.

use linerate_model::qualification::Level;

use crate::case::{Case, Privilege, Run};

pub(crate) static CASE: Case = Case {
    id: "BENCH-04",
    title: "frame loss curve",
    does: "From the full rate down in steps of 10 % until two trials lose nothing.",
    holds: "Recorded.",
    skipped: "",
    source: "RFC 2544, DTS",
    privilege: Privilege::Raw,
    shown_on: "hardware",
    level: Level::Full,
    disruptive: false,
    opt_in: None,
    faults: &[],
    run: Run::NotOffered("this version of the suite does not have it yet"),
};
