//! uperf's command line and what it prints.

mod main;
mod netstat;
mod options;
mod progress;
mod record;
mod tables;

pub use main::{Io, Served, main};
pub use options::{Options, OptionsError, Role};
