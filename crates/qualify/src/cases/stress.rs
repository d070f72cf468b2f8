//! Cases of the area `stress`.

pub(crate) mod stress_01;
pub(crate) mod stress_02;
pub(crate) mod stress_03;
pub(crate) mod stress_04;
pub(crate) mod stress_05;
