//! FILT-01: unicast filter.

use linerate_model::qualification::Level;

use crate::case::{Case, Privilege, Run};

pub(crate) static CASE: Case = Case {
    id: "FILT-01",
    title: "unicast filter",
    does: "Frames to the dut's own address, to another's, to all, and to a macvlan's; promiscuous mode \
           off, on, and off.",
    holds: "Frames to others are not seen unless promiscuous, and then all are; two users of the mode are \
           counted.",
    skipped: "The link has no receive filter (veth).",
    source: "ksft local_termination, DTS promiscuous, NICDRV, NDISTest",
    privilege: Privilege::Admin,
    shown_on: "all emulated cards, hardware",
    level: Level::Quick,
    disruptive: false,
    opt_in: None,
    faults: &[],
    run: Run::NotOffered("this version of the suite does not have it yet"),
};
