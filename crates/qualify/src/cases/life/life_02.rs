//! LIFE-02: driver taken off and given back.

use linerate_model::qualification::Level;

use crate::case::{Case, Privilege, Run};

pub(crate) static CASE: Case = Case {
    id: "LIFE-02",
    title: "driver taken off and given back",
    does: "The driver is unbound from the device and bound again, 50 times idle and 20 times under \
           traffic with open sockets.",
    holds: "The link goes and comes back each time with the same permanent address and resources; nothing \
           holds the old one; traffic flows afterwards.",
    skipped: "The device is on no bus with bind (veth).",
    source: "NICDRV test10 and test11; new",
    privilege: Privilege::Root,
    shown_on: "all emulated cards, hardware",
    level: Level::Core,
    disruptive: true,
    opt_in: None,
    faults: &[],
    run: Run::NotOffered("this version of the suite does not have it yet"),
};
