//! CSUM-06: IPv4 header checksum.

use linerate_model::qualification::Level;

use crate::case::{Case, Privilege, Run};

pub(crate) static CASE: Case = Case {
    id: "CSUM-06",
    title: "IPv4 header checksum",
    does: "Packets with a wrong IP header checksum and a right one behind it.",
    holds: "They reach no socket, are counted, and are not called good.",
    skipped: "",
    source: "DTS, NDISTest",
    privilege: Privilege::Raw,
    shown_on: "all emulated cards, hardware",
    level: Level::Extended,
    disruptive: false,
    opt_in: None,
    faults: &[],
    run: Run::NotOffered("this version of the suite does not have it yet"),
};
