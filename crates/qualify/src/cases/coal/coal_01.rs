//! COAL-01: interrupt moderation.

use linerate_model::qualification::Level;

use crate::case::{Case, Privilege, Run};

pub(crate) static CASE: Case = Case {
    id: "COAL-01",
    title: "interrupt moderation",
    does: "Times and frame counts at 0, the smallest, a usual and the largest value, illegal ones, \
           adaptive on and off; interrupts and latency are measured.",
    holds: "Values read back (rounded), interrupts stay below the bound, latency follows, illegal ones are \
           refused; 0 loses no wake-up.",
    skipped: "The link has no moderation settings.",
    source: "LNST, NDISTest",
    privilege: Privilege::Admin,
    shown_on: "e1000e, igb, virtio, hardware",
    level: Level::Core,
    disruptive: false,
    opt_in: None,
    faults: &[],
    run: Run::NotOffered("this version of the suite does not have it yet"),
};
