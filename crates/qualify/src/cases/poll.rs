//! Cases of the area `poll`.

pub(crate) mod poll_01;
