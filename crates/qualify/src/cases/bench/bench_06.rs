//! BENCH-06: recovery and reset time.

use linerate_model::qualification::Level;

use crate::case::{Case, Privilege, Run};

pub(crate) static CASE: Case = Case {
    id: "BENCH-06",
    title: "recovery and reset time",
    does: "Time to no loss after overload; time without traffic over down and up and resets.",
    holds: "Recorded.",
    skipped: "",
    source: "RFC 2544 26.5, RFC 6201",
    privilege: Privilege::Admin,
    shown_on: "emulated cards (recorded), hardware",
    level: Level::Full,
    disruptive: true,
    opt_in: None,
    faults: &[],
    run: Run::NotOffered("this version of the suite does not have it yet"),
};
