//! What `linerate serve` is made of, beside the doors themselves.

pub(crate) mod activation;
pub(crate) mod args;
pub(crate) mod iperf3;
pub(crate) mod protocols;
pub(crate) mod standins;
pub(crate) mod stats;
