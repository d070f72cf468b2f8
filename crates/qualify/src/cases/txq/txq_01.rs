//! TXQ-01: transmit scheduling.

use linerate_model::qualification::Level;

use crate::case::{Case, Privilege, Run};

pub(crate) static CASE: Case = Case {
    id: "TXQ-01",
    title: "transmit scheduling",
    does: "Launch times, queue choice, shaping and queue length.",
    holds: "Order and time within tolerance; the map is obeyed.",
    skipped: "The queueing discipline is not there.",
    source: "ksft so_txtime",
    privilege: Privilege::Admin,
    shown_on: "veth, all emulated cards, hardware",
    level: Level::Extended,
    disruptive: false,
    opt_in: None,
    faults: &[],
    run: Run::NotOffered("this version of the suite does not have it yet"),
};
