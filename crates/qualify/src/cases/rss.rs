//! Cases of the area `rss`.

pub(crate) mod rss_01;
pub(crate) mod rss_02;
pub(crate) mod rss_03;
pub(crate) mod rss_04;
