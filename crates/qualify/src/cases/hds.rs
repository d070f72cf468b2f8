//! Cases of the area `hds`.

pub(crate) mod hds_01;
