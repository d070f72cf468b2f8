//! Cases of the area `frag`.

pub(crate) mod frag_01;
