//! RSS-02: scaling that stays.

use linerate_model::qualification::Level;

use crate::case::{Case, Privilege, Run};

pub(crate) static CASE: Case = Case {
    id: "RSS-02",
    title: "scaling that stays",
    does: "Table and key over down and up and queue changes; tables that do not fit.",
    holds: "They stay; what does not fit is refused.",
    skipped: "The table cannot be set.",
    source: "ksft rss_ctx, NDISTest",
    privilege: Privilege::Admin,
    shown_on: "igb, vmxnet3, hardware",
    level: Level::Extended,
    disruptive: true,
    opt_in: None,
    faults: &[],
    run: Run::NotOffered("this version of the suite does not have it yet"),
};
