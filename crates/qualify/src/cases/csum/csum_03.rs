//! CSUM-03: checksums of short frames.

use linerate_model::qualification::Level;

use crate::case::{Case, Privilege, Run};

pub(crate) static CASE: Case = Case {
    id: "CSUM-03",
    title: "checksums of short frames",
    does: "Short TCP and UDP packets over IPv4 with 0 to 17 bytes of payload, padded with bytes that are \
           not zero, good and bad; and bytes behind longer datagrams.",
    holds: "Padding is in no sum: good packets are delivered and bad ones are not.",
    skipped: "",
    source: "new (hme, r8169)",
    privilege: Privilege::Raw,
    shown_on: "all emulated cards, hardware",
    level: Level::Quick,
    disruptive: false,
    opt_in: None,
    faults: &[],
    run: Run::NotOffered("this version of the suite does not have it yet"),
};
