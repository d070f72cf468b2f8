//! STAT-04: interfaces to counters.

use linerate_model::qualification::Level;

use crate::case::{Case, Privilege, Run};

pub(crate) static CASE: Case = Case {
    id: "STAT-04",
    title: "interfaces to counters",
    does: "All ways to read counters beside one another, from several readers, while the link goes down \
           and up.",
    holds: "They agree within 2 %; nothing locks up.",
    skipped: "A way that is not there is left out.",
    source: "ksft stats",
    privilege: Privilege::Admin,
    shown_on: "veth, all emulated cards, hardware",
    level: Level::Extended,
    disruptive: true,
    opt_in: None,
    faults: &[],
    run: Run::NotOffered("this version of the suite does not have it yet"),
};
