//! Cases of the area `forw`.

pub(crate) mod forw_01;
