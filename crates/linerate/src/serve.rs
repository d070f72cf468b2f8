//! What `linerate serve` is made of, beside the doors themselves.

pub(crate) mod activation;
pub(crate) mod stats;
