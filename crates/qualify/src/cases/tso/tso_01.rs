//! TSO-01: segments as they must be.

use linerate_model::qualification::Level;

use crate::case::{Case, Privilege, Run};

pub(crate) static CASE: Case = Case {
    id: "TSO-01",
    title: "segments as they must be",
    does: "Packets to cut by the NIC: IPv4 and IPv6, segments of 33 to 1460 bytes, 1 byte to 64 KiB of \
           payload, multiples and one more or less, with options, FIN and PSH, CWR, and a VLAN tag.",
    holds: "As many segments as there must be, each with its length, sequence number, IP identification, \
           flags and checksum right; all bytes in place.",
    skipped: "Without segmentation offload the stack's own is judged instead.",
    source: "NDISTest, ksft; new",
    privilege: Privilege::Raw,
    shown_on: "veth with tso off (the stack's code), e1000, e1000e, igb, 8139, vmxnet3, virtio over a tap, \
           hardware",
    level: Level::Quick,
    disruptive: false,
    opt_in: None,
    faults: &[],
    run: Run::NotOffered("this version of the suite does not have it yet"),
};
