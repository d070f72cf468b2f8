//! PM-01: suspend and resume.

use linerate_model::qualification::Level;

use crate::case::{Case, OptIn, Privilege, Run};

pub(crate) static CASE: Case = Case {
    id: "PM-01",
    title: "suspend and resume",
    does: "The machine sleeps and wakes ten times, with the link up and settings changed.",
    holds: "Traffic flows within ten seconds, every setting is kept, the kernel does not warn.",
    skipped: "The machine cannot suspend to memory.",
    source: "NDISTest, HCTS 5.7",
    privilege: Privilege::Root,
    shown_on: "e1000e, igb, hardware",
    level: Level::Core,
    disruptive: true,
    opt_in: Some(OptIn::Pm),
    faults: &[],
    run: Run::NotOffered("this version of the suite does not have it yet"),
};
