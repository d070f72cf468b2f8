//! PCI-05: IOMMU and bounce buffers.

use linerate_model::qualification::Level;

use crate::case::{Case, Privilege, Run};

pub(crate) static CASE: Case = Case {
    id: "PCI-05",
    title: "IOMMU and bounce buffers",
    does: "Integrity under strict IOMMU, bounce buffers, more than 4 GiB of memory.",
    holds: "Data is right, no DMA warning.",
    skipped: "The machine has no IOMMU.",
    source: "new (tg3)",
    privilege: Privilege::Root,
    shown_on: "all emulated cards, hardware",
    level: Level::Full,
    disruptive: false,
    opt_in: None,
    faults: &[],
    run: Run::NotOffered("it needs kernels started in other ways"),
};
