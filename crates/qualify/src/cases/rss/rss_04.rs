//! RSS-04: scaling contexts.

use linerate_model::qualification::Level;

use crate::case::{Case, Privilege, Run};

pub(crate) static CASE: Case = Case {
    id: "RSS-04",
    title: "scaling contexts",
    does: "4 and 32 contexts, steered to by rules, removed out of order.",
    holds: "Each flow goes to its context.",
    skipped: "It is not supported.",
    source: "ksft rss_ctx",
    privilege: Privilege::Admin,
    shown_on: "hardware",
    level: Level::Extended,
    disruptive: false,
    opt_in: None,
    faults: &[],
    run: Run::NotOffered("no emulated card has additional contexts"),
};
