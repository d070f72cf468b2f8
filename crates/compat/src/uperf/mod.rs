//! uperf: profiles of groups, transactions and flowops, run by a master together with its slaves.

mod front;
pub mod master;
mod mirror;
pub mod profile;
pub mod slave;
mod strand;
mod text;
pub mod wire;
pub mod workload;

pub use linerate_model::profile as workorder;

pub use front::{Io, Options, OptionsError, Role, Served, main};
pub use mirror::mirror;
pub use strand::{Durations, Total};

/// TCP port of control connections where none is given.
pub const DEFAULT_PORT: u16 = 20000;

#[cfg(test)]
mod pair_tests;
