//! RSS-01: receive side scaling.

use linerate_model::qualification::Level;

use crate::case::{Case, Privilege, Run};

pub(crate) static CASE: Case = Case {
    id: "RSS-01",
    title: "receive side scaling",
    does: "An indirection table to chosen queues and a random key; 256 flows of TCP and UDP over both IP \
           versions; the hash is worked out in software.",
    holds: "Flows go to chosen queues alone, spread as chance would, each always to the same; the hash is \
           the one worked out.",
    skipped: "The link has no indirection table.",
    source: "ksft rss_ctx and toeplitz, DTS, NDISTest",
    privilege: Privilege::Admin,
    shown_on: "igb, vmxnet3, hardware",
    level: Level::Core,
    disruptive: false,
    opt_in: None,
    faults: &[],
    run: Run::NotOffered("this version of the suite does not have it yet"),
};
