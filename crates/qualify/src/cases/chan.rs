//! Cases of the area `chan`.

pub(crate) mod chan_01;
