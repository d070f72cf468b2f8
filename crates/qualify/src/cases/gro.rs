//! Cases of the area `gro`.

pub(crate) mod gro_01;
pub(crate) mod gro_02;
pub(crate) mod gro_03;
pub(crate) mod gro_04;
