//! RING-01: ring sizes.

use linerate_model::qualification::Level;

use crate::case::{Case, Privilege, Run};

pub(crate) static CASE: Case = Case {
    id: "RING-01",
    title: "ring sizes",
    does: "The smallest, two between, the largest, an odd one, one beyond and 0, each under traffic.",
    holds: "Accepted sizes read back, rounded at most up; others are refused and change nothing; no loss \
           at half the rate; no stale frame.",
    skipped: "Ring sizes cannot be set.",
    source: "ksft ring_reconfig, LNST, DTS",
    privilege: Privilege::Admin,
    shown_on: "e1000, e1000e, igb, e100, pcnet, vmxnet3, hardware",
    level: Level::Core,
    disruptive: true,
    opt_in: None,
    faults: &[],
    run: Run::NotOffered("this version of the suite does not have it yet"),
};
