//! PAUSE-02: flow control at work.

use linerate_model::qualification::Level;

use crate::case::{Case, Privilege, Run};

pub(crate) static CASE: Case = Case {
    id: "PAUSE-02",
    title: "flow control at work",
    does: "The peer sends PAUSE frames; the dut's sending stops for as long.",
    holds: "Sending stops and goes on in time, nothing hangs; off, there is no effect.",
    skipped: "PAUSE does not pass the medium.",
    source: "UNH, NDISTest, ksft",
    privilege: Privilege::Admin,
    shown_on: "hardware",
    level: Level::Extended,
    disruptive: false,
    opt_in: None,
    faults: &[],
    run: Run::NotOffered("no emulated card obeys PAUSE frames, and veth carries them as any frame"),
};
