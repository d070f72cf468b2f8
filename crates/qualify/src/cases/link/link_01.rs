//! LINK-01: what is told of the link.

use linerate_model::qualification::Level;

use crate::case::{Case, Privilege, Run};

pub(crate) static CASE: Case = Case {
    id: "LINK-01",
    title: "what is told of the link",
    does: "Carrier, operational state, speed, duplex and autonegotiation by netlink, ioctl and sysfs, and \
           the peer's view.",
    holds: "All agree; carrier does not change for a while.",
    skipped: "A virtual link tells no speed.",
    source: "NICDRV test06, rhcert, ksft",
    privilege: Privilege::None,
    shown_on: "veth, all emulated cards, hardware",
    level: Level::Quick,
    disruptive: false,
    opt_in: None,
    faults: &[],
    run: Run::NotOffered("this version of the suite does not have it yet"),
};
