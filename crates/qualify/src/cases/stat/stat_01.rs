//! STAT-01: exact counters.

use linerate_model::qualification::Level;

use crate::case::{Case, Privilege, Run};

pub(crate) static CASE: Case = Case {
    id: "STAT-01",
    title: "exact counters",
    does: "A known number of frames of 60, 61, 512 and 1514 bytes each way, one at a time; rtnetlink, \
           ethtool, queues and /proc are read before and after.",
    holds: "Packets grow by exactly that number, bytes by their lengths without FCS, by one rule for both \
           directions; queues add up.",
    skipped: "",
    source: "DTS port_stats, ksft, NICDRV",
    privilege: Privilege::Raw,
    shown_on: "veth, all emulated cards, hardware",
    level: Level::Quick,
    disruptive: false,
    opt_in: None,
    faults: &[],
    run: Run::NotOffered("this version of the suite does not have it yet"),
};
