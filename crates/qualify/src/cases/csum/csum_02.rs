//! CSUM-02: receive checksums.

use linerate_model::qualification::Level;

use crate::case::{Case, Privilege, Run};

pub(crate) static CASE: Case = Case {
    id: "CSUM-02",
    title: "receive checksums",
    does: "The peer sends TCP and UDP over IPv4 and IPv6 with good and bad checksums: one bit flipped, \
           off by a carry, zero; a tap and a socket read at the dut.",
    holds: "A bad packet is never called good and never reaches a socket; a good one always does, and is \
           called good where receive checksums are on.",
    skipped: "Receive checksums are off and fixed: then only delivery is judged.",
    source: "NICDRV netstat sums, ksft csum, DTS, NDISTest",
    privilege: Privilege::Raw,
    shown_on: "e1000e, igb, hardware; elsewhere only delivery",
    level: Level::Quick,
    disruptive: false,
    opt_in: None,
    faults: &[],
    run: Run::NotOffered("this version of the suite does not have it yet"),
};
