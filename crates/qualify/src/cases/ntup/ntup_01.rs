//! NTUP-01: flow steering.

use linerate_model::qualification::Level;

use crate::case::{Case, Privilege, Run};

pub(crate) static CASE: Case = Case {
    id: "NTUP-01",
    title: "flow steering",
    does: "Each supported rule, to a queue and to drop, up to the most and one more.",
    holds: "At least 95 % of frames go where the rule says; one rule too many is refused.",
    skipped: "The link has no rules.",
    source: "ksft ntuple, DTS",
    privilege: Privilege::Admin,
    shown_on: "igb, hardware",
    level: Level::Extended,
    disruptive: false,
    opt_in: None,
    faults: &[],
    run: Run::NotOffered("this version of the suite does not have it yet"),
};
