//! VLAN-01: VLAN tags both ways.

use linerate_model::qualification::Level;

use crate::case::{Case, Privilege, Run};

pub(crate) static CASE: Case = Case {
    id: "VLAN-01",
    title: "VLAN tags both ways",
    does: "Tags of eight ids with all priorities and the drop bit, with tag insertion and stripping on \
           and off, as raw frames and by VLAN links.",
    holds: "The tag on the wire, and the one received, is exactly the one sent, once; priority tags reach \
           the link itself.",
    skipped: "Without VLAN links in the kernel only raw frames are judged.",
    source: "NICDRV test08, ksft, DTS, NDISTest",
    privilege: Privilege::Admin,
    shown_on: "veth, all emulated cards, hardware",
    level: Level::Quick,
    disruptive: false,
    opt_in: None,
    faults: &[],
    run: Run::NotOffered("this version of the suite does not have it yet"),
};
