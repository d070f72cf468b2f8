//! Cases of the area `fault`.

pub(crate) mod fault_01;
pub(crate) mod fault_02;
pub(crate) mod fault_03;
