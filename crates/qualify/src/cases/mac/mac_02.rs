//! MAC-02: where the address comes from.

use linerate_model::qualification::Level;

use crate::case::{Case, Privilege, Run};

pub(crate) static CASE: Case = Case {
    id: "MAC-02",
    title: "where the address comes from",
    does: "How the address was assigned, whether ports share it, whether it stays.",
    holds: "The kernel's word fits the address; no two links of the machine share it by chance.",
    skipped: "",
    source: "ksft",
    privilege: Privilege::None,
    shown_on: "all emulated cards, hardware",
    level: Level::Extended,
    disruptive: false,
    opt_in: None,
    faults: &[],
    run: Run::NotOffered("this version of the suite does not have it yet"),
};
