//! Cases of the area `pause`.

pub(crate) mod pause_01;
pub(crate) mod pause_02;
