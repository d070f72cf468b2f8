//! LIFE-03: module unloaded and loaded.

use linerate_model::qualification::Level;

use crate::case::{Case, Privilege, Run};

pub(crate) static CASE: Case = Case {
    id: "LIFE-03",
    title: "module unloaded and loaded",
    does: "The driver's module is unloaded and loaded 50 times, with the link up and down.",
    holds: "It loads each time; memory grows by less than 500 KiB over 50 rounds; nothing is left in /proc \
           and /sys.",
    skipped: "The driver is built in, or not in a module of its own.",
    source: "NICDRV test10, NDISTest",
    privilege: Privilege::Root,
    shown_on: "all emulated cards, hardware",
    level: Level::Core,
    disruptive: true,
    opt_in: None,
    faults: &[],
    run: Run::NotOffered("this version of the suite does not have it yet"),
};
