//! CSUM-04: checksums of zero.

use linerate_model::qualification::Level;

use crate::case::{Case, Privilege, Run};

pub(crate) static CASE: Case = Case {
    id: "CSUM-04",
    title: "checksums of zero",
    does: "Data whose checksum comes to zero, TCP and UDP over both IP versions; UDP over IPv4 without a \
           checksum, over IPv6 with zero.",
    holds: "UDP is sent with 0xffff; without a checksum it is delivered over IPv4 and dropped over IPv6.",
    skipped: "",
    source: "ksft csum",
    privilege: Privilege::Raw,
    shown_on: "veth with tx off, all emulated cards, hardware",
    level: Level::Extended,
    disruptive: false,
    opt_in: None,
    faults: &[],
    run: Run::NotOffered("this version of the suite does not have it yet"),
};
