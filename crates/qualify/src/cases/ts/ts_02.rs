//! TS-02: the NIC's clock.

use linerate_model::qualification::Level;

use crate::case::{Case, Privilege, Run};

pub(crate) static CASE: Case = Case {
    id: "TS-02",
    title: "the NIC's clock",
    does: "Read, set, adjusted and steered.",
    holds: "Its error stays below a microsecond and the time of a read.",
    skipped: "The NIC has no clock.",
    source: "ksft; new",
    privilege: Privilege::Root,
    shown_on: "e1000e, igb, hardware",
    level: Level::Extended,
    disruptive: false,
    opt_in: None,
    faults: &[],
    run: Run::NotOffered("this version of the suite does not have it yet"),
};
