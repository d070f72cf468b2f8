//! FW-01: firmware.

use linerate_model::qualification::Level;

use crate::case::{Case, OptIn, Privilege, Run};

pub(crate) static CASE: Case = Case {
    id: "FW-01",
    title: "firmware",
    does: "Information, health, dump, flash of the same image.",
    holds: "As documented; dumps do no harm.",
    skipped: "It is not supported.",
    source: "ethtool, ksft",
    privilege: Privilege::Admin,
    shown_on: "hardware",
    level: Level::Full,
    disruptive: false,
    opt_in: Some(OptIn::Firmware),
    faults: &[],
    run: Run::NotOffered("no emulated card has firmware to flash"),
};
