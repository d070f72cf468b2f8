//! TX-03: scattered buffers.

use linerate_model::qualification::Level;

use crate::case::{Case, Privilege, Run};

pub(crate) static CASE: Case = Case {
    id: "TX-03",
    title: "scattered buffers",
    does: "TCP from pages at every offset, 1 to more than 17 pieces, one-byte pieces, pieces over page \
           borders, by sendfile, splice and zero copy.",
    holds: "Bytes are equal, nothing hangs, checksums over odd pieces are right.",
    skipped: "Without scatter and gather the stack's copy is judged instead.",
    source: "new (atlantic, tg3, hme)",
    privilege: Privilege::None,
    shown_on: "veth, e1000, e1000e, igb, 8139, vmxnet3, hardware",
    level: Level::Core,
    disruptive: false,
    opt_in: None,
    faults: &[],
    run: Run::NotOffered("this version of the suite does not have it yet"),
};
