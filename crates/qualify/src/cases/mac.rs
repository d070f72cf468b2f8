//! Cases of the area `mac`.

pub(crate) mod mac_01;
pub(crate) mod mac_02;
