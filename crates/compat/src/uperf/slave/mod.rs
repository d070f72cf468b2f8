//! The slave: does what a master's workorder says, for one control connection.

mod machine;
mod serve;

pub use machine::{SlaveAction, SlaveMachine, Workorder};
pub(crate) use serve::serve_watched;
pub use serve::{Limits, SlaveSummary, serve_connection};
