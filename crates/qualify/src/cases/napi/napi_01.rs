//! NAPI-01: polling.

use linerate_model::qualification::Level;

use crate::case::{Case, Privilege, Run};

pub(crate) static CASE: Case = Case {
    id: "NAPI-01",
    title: "polling",
    does: "Threaded polling, deferred interrupts, flush timeouts.",
    holds: "Traffic is right, settings stay.",
    skipped: "",
    source: "ksft napi_threaded",
    privilege: Privilege::Admin,
    shown_on: "veth, all emulated cards, hardware",
    level: Level::Extended,
    disruptive: false,
    opt_in: None,
    faults: &[],
    run: Run::NotOffered("this version of the suite does not have it yet"),
};
