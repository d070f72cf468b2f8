//! Cases of the area `mtu`.

pub(crate) mod mtu_01;
pub(crate) mod mtu_02;
