//! Experiment in, records out.
//!
//! - [`connect`]: the two nodes of a test, and the private lab where none are named.
//! - [`path`]: which links and addresses the traffic takes.
//! - [`clock`]: how the two nodes' clocks relate, so that both sample at the same two instants.
//! - [`runner`]: runs trials and tells events; prints nothing.
//! - [`join`]: two readings into a record, with [`limit`] and [`hazard`].
//! - [`stats`]: intervals, stop rule, verdicts and change points; pure functions on numbers.

pub mod clock;
pub mod connect;
pub mod hazard;
pub mod join;
pub mod limit;
pub mod path;
pub mod runner;
pub mod stats;
