//! XDP-02: XDP and configuration.

use linerate_model::qualification::Level;

use crate::case::{Case, Privilege, Run};

pub(crate) static CASE: Case = Case {
    id: "XDP-02",
    title: "XDP and configuration",
    does: "Attached at MTUs up to and above what fits a buffer; MTU, rings, queues and LRO changed while \
           attached; detached while down.",
    holds: "What is refused changes nothing, what is accepted works, nothing crashes.",
    skipped: "As XDP-01.",
    source: "ksft xdp and hds; new (fbnic CVE)",
    privilege: Privilege::Bpf,
    shown_on: "veth, igb, vmxnet3, virtio, hardware",
    level: Level::Core,
    disruptive: true,
    opt_in: None,
    faults: &[],
    run: Run::NotOffered("this version of the suite does not have it yet"),
};
