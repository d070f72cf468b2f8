//! Cases of the area `tso`.

pub(crate) mod tso_01;
pub(crate) mod tso_02;
pub(crate) mod tso_03;
