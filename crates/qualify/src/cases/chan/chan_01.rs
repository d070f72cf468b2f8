//! CHAN-01: queues.

use linerate_model::qualification::Level;

use crate::case::{Case, Privilege, Run};

pub(crate) static CASE: Case = Case {
    id: "CHAN-01",
    title: "queues",
    does: "Every legal number of queues, up and down, under traffic.",
    holds: "The number reads back, all flows go on, interrupts are given back, illegal numbers are refused.",
    skipped: "The link has one queue.",
    source: "ksft queues, LNST, DTS dynamic_queue",
    privilege: Privilege::Admin,
    shown_on: "veth, igb, vmxnet3, virtio, hardware",
    level: Level::Core,
    disruptive: true,
    opt_in: None,
    faults: &[],
    run: Run::NotOffered("this version of the suite does not have it yet"),
};
