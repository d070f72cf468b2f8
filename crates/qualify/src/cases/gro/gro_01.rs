//! GRO-01: merged segments.

use linerate_model::qualification::Level;

use crate::case::{Case, Privilege, Run};

pub(crate) static CASE: Case = Case {
    id: "GRO-01",
    title: "merged segments",
    does: "The peer sends trains of segments: in order, with gaps, reordered, with other flags, windows, \
           options, IP fields, one-byte tails, a bad checksum within.",
    holds: "What must not be merged is not; merged headers are right; the stream's bytes are equal.",
    skipped: "GRO is off and fixed.",
    source: "ksft gro, NDISTest RSC",
    privilege: Privilege::Raw,
    shown_on: "veth, all emulated cards (software), vmxnet3 (LRO), hardware",
    level: Level::Quick,
    disruptive: false,
    opt_in: None,
    faults: &[],
    run: Run::NotOffered("this version of the suite does not have it yet"),
};
