//! Cases of the area `sriov`.

pub(crate) mod sriov_01;
