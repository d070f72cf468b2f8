//! Cases of the area `life`.

pub(crate) mod life_01;
pub(crate) mod life_02;
pub(crate) mod life_03;
