//! AFXDP-01: AF_XDP.

use linerate_model::qualification::Level;

use crate::case::{Case, Privilege, Run};

pub(crate) static CASE: Case = Case {
    id: "AFXDP-01",
    title: "AF_XDP",
    does: "Copy and zero-copy sockets, every length, ring wrap, rebinding under load.",
    holds: "Bytes are equal, nothing stands still.",
    skipped: "Without zero copy the copy mode is judged.",
    source: "ksft xsk, DTS, netmap",
    privilege: Privilege::Bpf,
    shown_on: "veth, igb, virtio, hardware",
    level: Level::Extended,
    disruptive: false,
    opt_in: None,
    faults: &[],
    run: Run::NotOffered("this version of the suite does not have it yet"),
};
