//! Cases of the area `diag`.

pub(crate) mod diag_01;
pub(crate) mod diag_02;
