//! Cases of the area `rx`.

pub(crate) mod rx_01;
pub(crate) mod rx_02;
