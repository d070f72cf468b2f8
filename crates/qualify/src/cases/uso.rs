//! Cases of the area `uso`.

pub(crate) mod uso_01;
