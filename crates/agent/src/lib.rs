//! The agent, and the handle to one.
//!
//! A node is always a `linerate agent` that speaks one protocol over a byte stream (design ruling 1): a pipe for
//! `local` and `netns:`, ssh's stdio for `ssh:`, a socket for `tcp:`.
//!
//! - [`frame`], [`protocol`], [`auth`]: what crosses the stream.
//! - [`mod@bench`]: what a qualification asks of a node.
//! - [`changes`]: settings that a session has changed, put back at its end.
//! - [`session`]: the agent's end of one stream; [`window`] takes its samples, [`reading`] puts them together.
//! - [`server`]: `linerate serve`, many sessions at once, with limits.
//! - [`node`]: the controller's end; [`launch`] starts an agent at each kind of place.

pub mod auth;
pub mod bench;
pub mod changes;
pub mod frame;
pub mod fuzz;
pub mod guest;
pub mod launch;
pub mod node;
pub mod protocol;
pub mod reading;
pub mod server;
pub mod session;
pub mod stranger;
pub mod trial;
pub mod window;
