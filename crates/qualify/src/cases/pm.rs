//! Cases of the area `pm`.

pub(crate) mod pm_01;
pub(crate) mod pm_02;
pub(crate) mod pm_03;
