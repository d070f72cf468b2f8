//! Cases of the area `data`.

pub(crate) mod data_01;
