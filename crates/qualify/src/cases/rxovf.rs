//! Cases of the area `rxovf`.

pub(crate) mod rxovf_01;
