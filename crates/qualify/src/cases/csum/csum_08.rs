//! CSUM-08: other protocols.

use linerate_model::qualification::Level;

use crate::case::{Case, Privilege, Run};

pub(crate) static CASE: Case = Case {
    id: "CSUM-08",
    title: "other protocols",
    does: "SCTP good and bad, UDP-Lite, ICMP, unknown protocols, routing headers, MPLS, PPPoE, LLC.",
    holds: "SCTP's CRC is right; all others are delivered untouched and not called good.",
    skipped: "The link has no SCTP checksum.",
    source: "DTS, NDISTest",
    privilege: Privilege::Raw,
    shown_on: "igb, e1000e, hardware",
    level: Level::Extended,
    disruptive: false,
    opt_in: None,
    faults: &[],
    run: Run::NotOffered("this version of the suite does not have it yet"),
};
