//! MTU-02: traffic at each MTU.

use linerate_model::qualification::Level;

use crate::case::{Case, Privilege, Run};

pub(crate) static CASE: Case = Case {
    id: "MTU-02",
    title: "traffic at each MTU",
    does: "At each of many MTUs: frames of the 64 longest lengths both ways, pings one byte below, at and \
           above it, and TCP.",
    holds: "Frames of full size pass both ways, one byte more is refused by the sender.",
    skipped: "The MTU is fixed, or the value beyond its bounds.",
    source: "NICDRV, ksft, DTS, NDISTest",
    privilege: Privilege::Admin,
    shown_on: "veth, e1000, e1000e, igb, vmxnet3, virtio, 8139, hardware",
    level: Level::Core,
    disruptive: true,
    opt_in: None,
    faults: &[],
    run: Run::NotOffered("this version of the suite does not have it yet"),
};
