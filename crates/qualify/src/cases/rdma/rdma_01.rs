//! RDMA-01: RDMA.

use linerate_model::qualification::Level;

use crate::case::{Case, Privilege, Run};

pub(crate) static CASE: Case = Case {
    id: "RDMA-01",
    title: "RDMA",
    does: "rping and copied files.",
    holds: "It works.",
    skipped: "There is no RDMA.",
    source: "rhcert, LNST",
    privilege: Privilege::Root,
    shown_on: "hardware",
    level: Level::Full,
    disruptive: false,
    opt_in: None,
    faults: &[],
    run: Run::NotOffered("RDMA is outside what a network link's driver is judged by here"),
};
