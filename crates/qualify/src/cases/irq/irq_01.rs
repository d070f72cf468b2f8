//! IRQ-01: interrupt affinity.

use linerate_model::qualification::Level;

use crate::case::{Case, Privilege, Run};

pub(crate) static CASE: Case = Case {
    id: "IRQ-01",
    title: "interrupt affinity",
    does: "Each vector is moved to each CPU under traffic.",
    holds: "Its counts move along; no interrupt is lost for a second.",
    skipped: "The link has no interrupt.",
    source: "ksft irq, LNST, NDISTest",
    privilege: Privilege::Root,
    shown_on: "all emulated cards, hardware",
    level: Level::Core,
    disruptive: false,
    opt_in: None,
    faults: &[],
    run: Run::NotOffered("this version of the suite does not have it yet"),
};
