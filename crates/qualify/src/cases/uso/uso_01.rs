//! USO-01: UDP segmentation.

use linerate_model::qualification::Level;

use crate::case::{Case, Privilege, Run};

pub(crate) static CASE: Case = Case {
    id: "USO-01",
    title: "UDP segmentation",
    does: "1 to 64 segments by UDP_SEGMENT, whole and partial tails, both IP versions, checksums on and off.",
    holds: "Each datagram's length and data is right, and there are as many as there must be.",
    skipped: "Without the offload the stack's own is judged.",
    source: "ksft uso",
    privilege: Privilege::None,
    shown_on: "veth, igb, hardware",
    level: Level::Extended,
    disruptive: false,
    opt_in: None,
    faults: &[],
    run: Run::NotOffered("this version of the suite does not have it yet"),
};
