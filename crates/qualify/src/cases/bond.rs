//! Cases of the area `bond`.

pub(crate) mod bond_01;
