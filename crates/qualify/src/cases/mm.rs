//! Cases of the area `mm`.

pub(crate) mod mm_01;
