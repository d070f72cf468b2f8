//! Cases of the area `ts`.

pub(crate) mod ts_01;
pub(crate) mod ts_02;
