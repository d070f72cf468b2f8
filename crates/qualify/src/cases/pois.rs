//! Cases of the area `pois`.

pub(crate) mod pois_01;
