//! FILT-05: groups of the link.

use linerate_model::qualification::Level;

use crate::case::{Case, Privilege, Run};

pub(crate) static CASE: Case = Case {
    id: "FILT-05",
    title: "groups of the link",
    does: "Frames to the addresses of STP, LLDP, LACP, PTP and PAUSE.",
    holds: "Joined ones are received; PAUSE never reaches the stack where it is obeyed.",
    skipped: "The link has no multicast filter (veth).",
    source: "ksft local_termination",
    privilege: Privilege::Admin,
    shown_on: "all emulated cards, hardware",
    level: Level::Extended,
    disruptive: false,
    opt_in: None,
    faults: &[],
    run: Run::NotOffered("this version of the suite does not have it yet"),
};
