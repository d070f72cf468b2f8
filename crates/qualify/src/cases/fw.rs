//! Cases of the area `fw`.

pub(crate) mod fw_01;
