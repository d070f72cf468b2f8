//! TX-02: runts and what pads them.

use linerate_model::qualification::Level;

use crate::case::{Case, Privilege, Run};

pub(crate) static CASE: Case = Case {
    id: "TX-02",
    title: "runts and what pads them",
    does: "The dut sends a long frame of 0x5a, then one of 14 to 59 bytes of 0xa5, for each length, four \
           rounds.",
    holds: "On the wire frames have at least 60 bytes, and every byte of padding is zero.",
    skipped: "The medium carries runts as they are: then only padding that is there is judged.",
    source: "NICDRV test02; new",
    privilege: Privilege::Raw,
    shown_on: "veth, all emulated cards, hardware",
    level: Level::Quick,
    disruptive: false,
    opt_in: None,
    faults: &[],
    run: Run::NotOffered("this version of the suite does not have it yet"),
};
