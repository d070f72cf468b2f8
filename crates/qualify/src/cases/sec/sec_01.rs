//! SEC-01: encryption in the NIC.

use linerate_model::qualification::Level;

use crate::case::{Case, Privilege, Run};

pub(crate) static CASE: Case = Case {
    id: "SEC-01",
    title: "encryption in the NIC",
    does: "MACsec, IPsec and TLS offloads beside a software peer.",
    holds: "They work together, data is equal.",
    skipped: "It is not supported.",
    source: "ksft macsec, LNST",
    privilege: Privilege::Admin,
    shown_on: "hardware",
    level: Level::Full,
    disruptive: false,
    opt_in: None,
    faults: &[],
    run: Run::NotOffered("no emulated card encrypts"),
};
