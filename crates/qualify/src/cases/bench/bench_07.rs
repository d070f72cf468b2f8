//! BENCH-07: TCP framework of RFC 6349.

use linerate_model::qualification::Level;

use crate::case::{Case, Privilege, Run};

pub(crate) static CASE: Case = Case {
    id: "BENCH-07",
    title: "TCP framework of RFC 6349",
    does: "Windows and parallel flows: transfer time, efficiency, buffer delay.",
    holds: "Recorded; on a direct cable at least 99 % efficient.",
    skipped: "",
    source: "RFC 6349",
    privilege: Privilege::None,
    shown_on: "veth, hardware",
    level: Level::Full,
    disruptive: false,
    opt_in: None,
    faults: &[],
    run: Run::NotOffered("this version of the suite does not have it yet"),
};
