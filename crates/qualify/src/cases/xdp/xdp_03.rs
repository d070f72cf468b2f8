//! XDP-03: XDP that changes frames.

use linerate_model::qualification::Level;

use crate::case::{Case, Privilege, Run};

pub(crate) static CASE: Case = Case {
    id: "XDP-03",
    title: "XDP that changes frames",
    does: "Head and tail moved, grown to the limit, many buffers, metadata.",
    holds: "Data is right or the program is told no.",
    skipped: "As XDP-01.",
    source: "ksft xdp",
    privilege: Privilege::Bpf,
    shown_on: "veth, igb, vmxnet3, virtio, hardware",
    level: Level::Extended,
    disruptive: false,
    opt_in: None,
    faults: &[],
    run: Run::NotOffered("this version of the suite does not have it yet"),
};
