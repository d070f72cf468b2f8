//! DIAG-02: dumps do no harm.

use linerate_model::qualification::Level;

use crate::case::{Case, Privilege, Run};

pub(crate) static CASE: Case = Case {
    id: "DIAG-02",
    title: "dumps do no harm",
    does: "Registers, EEPROM whole and beyond its end, module memory, driver facts and statistics, many \
           times, under traffic, while down, and while going down and up.",
    holds: "No crash, no effect on data; reads repeat; beyond the end is refused; lengths are as told; \
           counters are not cleared.",
    skipped: "The operation is not supported.",
    source: "ethtool; new (e1000e NVM)",
    privilege: Privilege::Admin,
    shown_on: "e1000, e1000e, igb, e100, pcnet, 8139, hardware",
    level: Level::Quick,
    disruptive: true,
    opt_in: None,
    faults: &[],
    run: Run::NotOffered("this version of the suite does not have it yet"),
};
