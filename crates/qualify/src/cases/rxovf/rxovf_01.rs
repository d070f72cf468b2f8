//! RXOVF-01: receive overrun.

use linerate_model::qualification::Level;

use crate::case::{Case, Privilege, Run};

pub(crate) static CASE: Case = Case {
    id: "RXOVF-01",
    title: "receive overrun",
    does: "Small frames as fast as the peer can for ten seconds while the dut is throttled or its ring at \
           the smallest; then a pause.",
    holds: "Drops are counted as such and as nothing else; everything is received again at once.",
    skipped: "",
    source: "NDISTest, RFC 2544; new",
    privilege: Privilege::Raw,
    shown_on: "all emulated cards, hardware",
    level: Level::Core,
    disruptive: false,
    opt_in: None,
    faults: &[],
    run: Run::NotOffered("this version of the suite does not have it yet"),
};
