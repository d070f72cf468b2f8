//! Cases of the area `csum`.

pub(crate) mod csum_01;
pub(crate) mod csum_02;
pub(crate) mod csum_03;
pub(crate) mod csum_04;
pub(crate) mod csum_05;
pub(crate) mod csum_06;
pub(crate) mod csum_07;
pub(crate) mod csum_08;
pub(crate) mod csum_09;
mod deliver;
