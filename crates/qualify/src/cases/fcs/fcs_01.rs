//! FCS-01: frame check sequences.

use linerate_model::qualification::Level;

use crate::case::{Case, Privilege, Run};

pub(crate) static CASE: Case = Case {
    id: "FCS-01",
    title: "frame check sequences",
    does: "Received FCS kept, bad frames taken, frames sent without FCS.",
    holds: "The four bytes are the frame's true CRC; bad frames are delivered where asked for.",
    skipped: "It is not supported.",
    source: "ethtool, UNH",
    privilege: Privilege::Admin,
    shown_on: "e1000, e1000e, e100, hardware",
    level: Level::Full,
    disruptive: false,
    opt_in: None,
    faults: &[],
    run: Run::NotOffered("this version of the suite does not have it yet"),
};
