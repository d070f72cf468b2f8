//! ENV-01: identity and inventory.

use linerate_model::qualification::Level;

use crate::case::{Case, Privilege, Run};

pub(crate) static CASE: Case = Case {
    id: "ENV-01",
    title: "identity and inventory",
    does: "Driver, versions, bus, ids, firmware, features, limits, and every get of ethtool, by netlink \
           and by ioctl.",
    holds: "Every get works or is not supported; both ways agree; the log stays quiet.",
    skipped: "",
    source: "ethtool, NDISTest, rhcert",
    privilege: Privilege::None,
    shown_on: "veth, all emulated cards, hardware",
    level: Level::Quick,
    disruptive: false,
    opt_in: None,
    faults: &[],
    run: Run::NotOffered("this version of the suite does not have it yet"),
};
