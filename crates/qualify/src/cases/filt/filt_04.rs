//! FILT-04: more unicast addresses.

use linerate_model::qualification::Level;

use crate::case::{Case, Privilege, Run};

pub(crate) static CASE: Case = Case {
    id: "FILT-04",
    title: "more unicast addresses",
    does: "1 to 600 additional addresses, beyond what the filter holds.",
    holds: "Each is received; when the filter is full the link takes all; when they are removed it filters \
           again.",
    skipped: "The link has no receive filter (veth).",
    source: "DTS mac_filter, ksft",
    privilege: Privilege::Admin,
    shown_on: "e1000, e1000e, igb, virtio, hardware",
    level: Level::Extended,
    disruptive: false,
    opt_in: None,
    faults: &[],
    run: Run::NotOffered("this version of the suite does not have it yet"),
};
