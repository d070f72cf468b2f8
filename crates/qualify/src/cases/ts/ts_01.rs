//! TS-01: time stamps.

use linerate_model::qualification::Level;

use crate::case::{Case, Privilege, Run};

pub(crate) static CASE: Case = Case {
    id: "TS-01",
    title: "time stamps",
    does: "Stamps of what is sent and received, every filter, 1000 frames.",
    holds: "Each frame sent has one stamp, in order; received ones have one, not in the future; filters \
           read back.",
    skipped: "Without stamps of the NIC the stack's are judged.",
    source: "ksft nic_timestamp",
    privilege: Privilege::Admin,
    shown_on: "veth (software), e1000e, igb, hardware",
    level: Level::Extended,
    disruptive: false,
    opt_in: None,
    faults: &[],
    run: Run::NotOffered("this version of the suite does not have it yet"),
};
