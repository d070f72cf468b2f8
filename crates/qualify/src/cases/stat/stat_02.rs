//! STAT-02: error counters add up.

use linerate_model::qualification::Level;

use crate::case::{Case, Privilege, Run};

pub(crate) static CASE: Case = Case {
    id: "STAT-02",
    title: "error counters add up",
    does: "Giants, runts, bad lengths and bad FCS where they can be sent; all error counters are read.",
    holds: "rx_errors covers its parts; a dropped frame is in exactly one primary counter; good traffic is \
           in none; counters do not go back over down and up.",
    skipped: "Nothing wrong can be sent to the dut here.",
    source: "ksft stats, NICDRV test07, UNH",
    privilege: Privilege::Raw,
    shown_on: "emulated cards (giants, runts), hardware",
    level: Level::Quick,
    disruptive: false,
    opt_in: None,
    faults: &[],
    run: Run::NotOffered("this version of the suite does not have it yet"),
};
