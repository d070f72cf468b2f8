//! VLAN-02: VLAN filter.

use linerate_model::qualification::Level;

use crate::case::{Case, Privilege, Run};

pub(crate) static CASE: Case = Case {
    id: "VLAN-02",
    title: "VLAN filter",
    does: "With the filter on: frames of ids without a link, with one, and of one removed; ids 0 and \
           4095; over down and up, MTU changes and promiscuous mode.",
    holds: "An id that is there is always received, one that is gone is not; 4095 is refused.",
    skipped: "The link has no VLAN filter, or it is fixed.",
    source: "NICDRV, ksft, DTS",
    privilege: Privilege::Admin,
    shown_on: "e1000, e1000e, igb, vmxnet3, virtio, hardware",
    level: Level::Core,
    disruptive: true,
    opt_in: None,
    faults: &[],
    run: Run::NotOffered("this version of the suite does not have it yet"),
};
