//! Cases of the area `fcs`.

pub(crate) mod fcs_01;
