//! TSO-02: segmentation that is used.

use linerate_model::qualification::Level;

use crate::case::{Case, Privilege, Run};

pub(crate) static CASE: Case = Case {
    id: "TSO-02",
    title: "segmentation that is used",
    does: "TCP streams with segmentation offload on and off, IPv4, IPv6, VLAN; counters tell whether it \
           was used.",
    holds: "Data is equal; on, at least 90 % of bytes go in large packets, off, less than 5 %; few \
           segments are sent again.",
    skipped: "The link has no segmentation offload.",
    source: "ksft tso, NDISTest",
    privilege: Privilege::Admin,
    shown_on: "e1000, e1000e, igb, 8139, vmxnet3, hardware",
    level: Level::Core,
    disruptive: false,
    opt_in: None,
    faults: &[],
    run: Run::NotOffered("this version of the suite does not have it yet"),
};
