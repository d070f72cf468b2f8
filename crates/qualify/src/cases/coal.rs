//! Cases of the area `coal`.

pub(crate) mod coal_01;
