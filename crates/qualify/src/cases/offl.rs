//! Cases of the area `offl`.

pub(crate) mod offl_01;
