//! Cases of the area `napi`.

pub(crate) mod napi_01;
