//! placeholder

pub mod stats;
