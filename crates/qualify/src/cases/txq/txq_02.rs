//! TXQ-02: queue limits.

use linerate_model::qualification::Level;

use crate::case::{Case, Privilege, Run};

pub(crate) static CASE: Case = Case {
    id: "TXQ-02",
    title: "queue limits",
    does: "Smallest ring and queue limit, 64 flows of small and large packets.",
    holds: "No queue stands for a second; in the end nothing is in flight.",
    skipped: "The kernel or driver has no queue limits.",
    source: "ksft; new",
    privilege: Privilege::Admin,
    shown_on: "all emulated cards, hardware",
    level: Level::Extended,
    disruptive: false,
    opt_in: None,
    faults: &[],
    run: Run::NotOffered("this version of the suite does not have it yet"),
};
