//! TSO-03: segmentation at its limits.

use linerate_model::qualification::Level;

use crate::case::{Case, Privilege, Run};

pub(crate) static CASE: Case = Case {
    id: "TSO-03",
    title: "segmentation at its limits",
    does: "Segments of 1 to 88 bytes, the largest packet, long headers, the most pieces, a first piece of \
           headers alone.",
    holds: "Bytes are right, or software steps in; nothing hangs.",
    skipped: "The link has no segmentation offload.",
    source: "new (CVE-2012-3412, ENA, r8126)",
    privilege: Privilege::Admin,
    shown_on: "e1000, e1000e, igb, 8139, vmxnet3, hardware",
    level: Level::Core,
    disruptive: false,
    opt_in: None,
    faults: &[],
    run: Run::NotOffered("this version of the suite does not have it yet"),
};
