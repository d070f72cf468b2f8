//! Cases of the area `afxdp`.

pub(crate) mod afxdp_01;
