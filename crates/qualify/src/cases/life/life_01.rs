//! LIFE-01: down and up under traffic.

use linerate_model::qualification::Level;

use crate::case::{Case, Privilege, Run};

pub(crate) static CASE: Case = Case {
    id: "LIFE-01",
    title: "down and up under traffic",
    does: "The link goes down and up 200 times, 0 to 500 ms apart, while TCP and UDP flows run both ways.",
    holds: "It comes back each time, TCP goes on or connects again with right data, nothing leaks.",
    skipped: "",
    source: "NICDRV test10, ksft, NDISTest",
    privilege: Privilege::Admin,
    shown_on: "veth, all emulated cards, hardware",
    level: Level::Core,
    disruptive: true,
    opt_in: None,
    faults: &[],
    run: Run::NotOffered("this version of the suite does not have it yet"),
};
