//! MAC-01: hardware address.

use linerate_model::qualification::Level;

use crate::case::{Case, Privilege, Run};

pub(crate) static CASE: Case = Case {
    id: "MAC-01",
    title: "hardware address",
    does: "A valid address set live and down, then a multicast, the zero and the broadcast address, then \
           the old one; source of frames, filter and ARP are looked at.",
    holds: "A valid one is accepted (or wants the link down), others are refused; the old one is received \
           no more; it stays over down and up and MTU changes; the permanent one does not change.",
    skipped: "",
    source: "NICDRV test10, DTS mac_filter, ksft",
    privilege: Privilege::Admin,
    shown_on: "veth, all emulated cards, hardware",
    level: Level::Quick,
    disruptive: true,
    opt_in: None,
    faults: &[],
    run: Run::NotOffered("this version of the suite does not have it yet"),
};
