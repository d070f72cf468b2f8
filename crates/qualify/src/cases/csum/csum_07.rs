//! CSUM-07: checksums in tunnels.

use linerate_model::qualification::Level;

use crate::case::{Case, Privilege, Run};

pub(crate) static CASE: Case = Case {
    id: "CSUM-07",
    title: "checksums in tunnels",
    does: "TCP and UDP within VXLAN, GRE, IPIP and SIT, with outer checksums and without; checksum and \
           segmentation of the inner packet left to the NIC.",
    holds: "Inner and outer checksums are right; what the NIC cannot do the stack does.",
    skipped: "The kernel has no such tunnel.",
    source: "ksft tso, LNST",
    privilege: Privilege::Admin,
    shown_on: "veth, igb, hardware",
    level: Level::Extended,
    disruptive: false,
    opt_in: None,
    faults: &[],
    run: Run::NotOffered("this version of the suite does not have it yet"),
};
