//! RSS-03: what is hashed.

use linerate_model::qualification::Level;

use crate::case::{Case, Privilege, Run};

pub(crate) static CASE: Case = Case {
    id: "RSS-03",
    title: "what is hashed",
    does: "Each choice of hashed fields by protocol.",
    holds: "Flows that differ in them spread, others do not.",
    skipped: "It is not supported.",
    source: "ksft rss_input_xfrm, LNST",
    privilege: Privilege::Admin,
    shown_on: "igb, hardware",
    level: Level::Extended,
    disruptive: false,
    opt_in: None,
    faults: &[],
    run: Run::NotOffered("this version of the suite does not have it yet"),
};
