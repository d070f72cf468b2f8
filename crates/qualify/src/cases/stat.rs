//! Cases of the area `stat`.

pub(crate) mod stat_01;
pub(crate) mod stat_02;
pub(crate) mod stat_03;
pub(crate) mod stat_04;
pub(crate) mod stat_05;
pub(crate) mod stat_06;
