//! FILT-03: filter modes under traffic.

use linerate_model::qualification::Level;

use crate::case::{Case, Privilege, Run};

pub(crate) static CASE: Case = Case {
    id: "FILT-03",
    title: "filter modes under traffic",
    does: "Promiscuous and all-multicast modes go on and off every 10 to 200 ms during TCP and counted \
           multicast.",
    holds: "No joined multicast is lost once the mode stands, no link loss, no reset, data right.",
    skipped: "",
    source: "NICDRV netstress; new (sfc)",
    privilege: Privilege::Admin,
    shown_on: "veth, all emulated cards, hardware",
    level: Level::Core,
    disruptive: false,
    opt_in: None,
    faults: &[],
    run: Run::NotOffered("this version of the suite does not have it yet"),
};
