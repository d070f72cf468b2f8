//! DIAG-01: self-test.

use linerate_model::qualification::Level;

use crate::case::{Case, Privilege, Run};

pub(crate) static CASE: Case = Case {
    id: "DIAG-01",
    title: "self-test",
    does: "The driver's online and offline self-tests, five times, with traffic before and after.",
    holds: "Online disturbs nothing; offline passes, and afterwards everything is as before.",
    skipped: "The driver has no self-test.",
    source: "ethtool, ksft",
    privilege: Privilege::Admin,
    shown_on: "igb and pcnet pass; e1000, e1000e and e100 fail as emulated; hardware",
    level: Level::Core,
    disruptive: true,
    opt_in: None,
    faults: &[],
    run: Run::NotOffered("this version of the suite does not have it yet"),
};
