//! Cases of the area `sec`.

pub(crate) mod sec_01;
