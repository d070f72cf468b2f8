//! Cases of the area `ring`.

pub(crate) mod ring_01;
