//! Cases of the area `link`.

pub(crate) mod link_01;
pub(crate) mod link_02;
pub(crate) mod link_03;
pub(crate) mod link_04;
pub(crate) mod link_05;
pub(crate) mod link_06;
