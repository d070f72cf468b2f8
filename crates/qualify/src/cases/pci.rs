//! Cases of the area `pci`.

pub(crate) mod pci_01;
pub(crate) mod pci_02;
pub(crate) mod pci_03;
pub(crate) mod pci_04;
pub(crate) mod pci_05;
