//! STRESS-04: load of a file server.

use linerate_model::qualification::Level;

use crate::case::{Case, Privilege, Run};

pub(crate) static CASE: Case = Case {
    id: "STRESS-04",
    title: "load of a file server",
    does: "NFS copied and compared.",
    holds: "Equal.",
    skipped: "There is no NFS server.",
    source: "NICDRV test03",
    privilege: Privilege::Root,
    shown_on: "all emulated cards, hardware",
    level: Level::Full,
    disruptive: false,
    opt_in: None,
    faults: &[],
    run: Run::NotOffered("DATA-01 and STRESS-02 compare the same bytes without a file server"),
};
