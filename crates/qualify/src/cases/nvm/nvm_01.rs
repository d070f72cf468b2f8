//! NVM-01: guard of the EEPROM.

use linerate_model::qualification::Level;

use crate::case::{Case, OptIn, Privilege, Run};

pub(crate) static CASE: Case = Case {
    id: "NVM-01",
    title: "guard of the EEPROM",
    does: "A write without the right magic; one byte written back as it is.",
    holds: "The first is refused; contents are the same as before the suite.",
    skipped: "The EEPROM cannot be written.",
    source: "ethtool; new",
    privilege: Privilege::Root,
    shown_on: "e1000, e1000e, igb, hardware",
    level: Level::Full,
    disruptive: false,
    opt_in: Some(OptIn::Nvm),
    faults: &[],
    run: Run::NotOffered("a fault would destroy a card; the suite does not write to it yet"),
};
