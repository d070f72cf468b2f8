//! Cases of the area `tx`.

pub(crate) mod tx_01;
pub(crate) mod tx_02;
pub(crate) mod tx_03;
