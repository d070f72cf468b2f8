//! LINK-02: carrier lost and back.

use linerate_model::qualification::Level;

use crate::case::{Case, Privilege, Run};

pub(crate) static CASE: Case = Case {
    id: "LINK-02",
    title: "carrier lost and back",
    does: "The peer's link, or the emulator's, goes off and on 50 times, for 1 ms to seconds, with \
           traffic queued.",
    holds: "Carrier follows, no more stale frames come than a queue holds, traffic goes on, no watchdog.",
    skipped: "Carrier cannot be controlled.",
    source: "NDISTest, LNST",
    privilege: Privilege::Admin,
    shown_on: "veth, e1000, igb, hardware",
    level: Level::Core,
    disruptive: true,
    opt_in: None,
    faults: &[],
    run: Run::NotOffered("this version of the suite does not have it yet"),
};
