//! XDP-01: XDP programs.

use linerate_model::qualification::Level;

use crate::case::{Case, Privilege, Run};

pub(crate) static CASE: Case = Case {
    id: "XDP-01",
    title: "XDP programs",
    does: "Native, then generic: pass, drop, transmit, abort, redirect, each with frames of every length.",
    holds: "Counts are exact, bytes equal, nothing leaks, attaching and detaching under traffic loses no \
           more than a reset.",
    skipped: "The driver has no native XDP.",
    source: "ksft xdp, LNST",
    privilege: Privilege::Bpf,
    shown_on: "veth, igb, vmxnet3, virtio native; all generic; hardware",
    level: Level::Core,
    disruptive: true,
    opt_in: None,
    faults: &[],
    run: Run::NotOffered("this version of the suite does not have it yet"),
};
