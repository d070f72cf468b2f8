//! Cases of the area `env`.

pub(crate) mod env_01;
