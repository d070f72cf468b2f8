//! GRO-03: merged datagrams.

use linerate_model::qualification::Level;

use crate::case::{Case, Privilege, Run};

pub(crate) static CASE: Case = Case {
    id: "GRO-03",
    title: "merged datagrams",
    does: "UDP_GRO sockets and forwarding, zero checksums, mixed sizes.",
    holds: "Boundaries are kept and the size told is right.",
    skipped: "",
    source: "ksft",
    privilege: Privilege::Admin,
    shown_on: "veth, all emulated cards, hardware",
    level: Level::Extended,
    disruptive: false,
    opt_in: None,
    faults: &[],
    run: Run::NotOffered("this version of the suite does not have it yet"),
};
