//! Experiment in, records out.
//!
//! - [`connect`]: the two nodes of a test, and the private lab where none are named.
//! - [`path`]: which links and addresses the traffic takes.
//! - [`clock`]: how the two nodes' clocks relate, so that both sample at the same two instants.
//! - [`plan`]: which combinations run, in which order, and when it is enough.
//! - [`course`]: runs a plan, block by block; [`standing`] tells how well each figure is known.
//! - [`runner`]: runs one trial after the other and tells events; prints nothing.
//! - [`settings`]: what a trial wants changed on its nodes, rehearsed before any traffic.
//! - [`join`]: two readings into a record, with [`limit`] and [`hazard`].
//! - [`verdicts`]: what changed between two runs, or two levels of a factor, in the [`figures`] that matter.
//! - [`stats`]: intervals, stop rule, verdicts and change points; pure functions on numbers.

pub mod bench;
pub mod clock;
pub mod connect;
pub mod course;
mod emulation;
pub mod figures;
pub mod hazard;
pub mod join;
pub mod limit;
mod one_trial;
pub mod path;
pub mod plan;
pub mod runner;
pub mod settings;
pub mod standing;
pub mod stats;
mod together;
pub mod verdict_table;
pub mod verdicts;
