//! Cases of the area `xdp`.

pub(crate) mod xdp_01;
pub(crate) mod xdp_02;
pub(crate) mod xdp_03;
