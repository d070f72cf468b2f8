//! CSUM-05: checksums of fragments.

use linerate_model::qualification::Level;

use crate::case::{Case, Privilege, Run};

pub(crate) static CASE: Case = Case {
    id: "CSUM-05",
    title: "checksums of fragments",
    does: "First, middle and last fragments of both IP versions, one whose bytes sum up by chance.",
    holds: "No fragment is called good; the datagram is checked once whole.",
    skipped: "",
    source: "NDISTest; new",
    privilege: Privilege::Raw,
    shown_on: "e1000e, igb, hardware",
    level: Level::Extended,
    disruptive: false,
    opt_in: None,
    faults: &[],
    run: Run::NotOffered("this version of the suite does not have it yet"),
};
