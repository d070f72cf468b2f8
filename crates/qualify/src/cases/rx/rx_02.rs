//! RX-02: giant frames and life after them.

use linerate_model::qualification::Level;

use crate::case::{Case, Privilege, Run};

pub(crate) static CASE: Case = Case {
    id: "RX-02",
    title: "giant frames and life after them",
    does: "The peer, with a larger MTU, sends single frames too long for the dut; after each one the \
           dut's ring is filled twice with ordinary frames; at last the link goes down and up.",
    holds: "A giant is delivered whole, or dropped and counted; never cut short or mangled. Every ordinary \
           frame arrives.",
    skipped: "The peer cannot send more than the dut's MTU (veth).",
    source: "UNH 4.1.3, NDISTest; new",
    privilege: Privilege::Admin,
    shown_on: "all emulated cards, hardware",
    level: Level::Quick,
    disruptive: true,
    opt_in: None,
    faults: &[],
    run: Run::NotOffered("this version of the suite does not have it yet"),
};
