//! Cases of the area `ntup`.

pub(crate) mod ntup_01;
