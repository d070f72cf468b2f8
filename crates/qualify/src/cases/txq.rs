//! Cases of the area `txq`.

pub(crate) mod txq_01;
pub(crate) mod txq_02;
