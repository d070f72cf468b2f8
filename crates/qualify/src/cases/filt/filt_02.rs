//! FILT-02: multicast filter.

use linerate_model::qualification::Level;

use crate::case::{Case, Privilege, Run};

pub(crate) static CASE: Case = Case {
    id: "FILT-02",
    title: "multicast filter",
    does: "Groups that are not joined, groups that fall in each bucket of known hash tables, joined and \
           left in random order, 1 to 300 at once, all-multicast, IPv6 groups.",
    holds: "Every joined group is received, always; others no more often than a full hash table predicts; \
           all-multicast takes all; after leaving all it is as before.",
    skipped: "The link has no multicast filter (veth).",
    source: "NICDRV test04, ksft, DTS, NDISTest",
    privilege: Privilege::Admin,
    shown_on: "all emulated cards, hardware",
    level: Level::Quick,
    disruptive: false,
    opt_in: None,
    faults: &[],
    run: Run::NotOffered("this version of the suite does not have it yet"),
};
