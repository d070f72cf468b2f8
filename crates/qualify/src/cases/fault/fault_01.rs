//! FAULT-01: transmit timeout.

use linerate_model::qualification::Level;

use crate::case::{Case, Privilege, Run};

pub(crate) static CASE: Case = Case {
    id: "FAULT-01",
    title: "transmit timeout",
    does: "The wire side stops draining while the transmit queue is kept full for longer than the \
           watchdog waits, then goes on.",
    holds: "The watchdog fires at most once a period, the driver recovers by itself within ten seconds, \
           its counter grows by one.",
    skipped: "The driver has no transmit timeout, or none can be provoked.",
    source: "new",
    privilege: Privilege::Admin,
    shown_on: "virtio in a guest, hardware",
    level: Level::Core,
    disruptive: true,
    opt_in: None,
    faults: &[],
    run: Run::NotOffered("this version of the suite does not have it yet"),
};
