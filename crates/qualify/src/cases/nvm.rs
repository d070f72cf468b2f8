//! Cases of the area `nvm`.

pub(crate) mod nvm_01;
