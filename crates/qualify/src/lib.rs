//! Qualifies a link and its driver: the catalogue of cases, the bench they run on, and the runner.
//!
//! - [`catalogue`] has all cases, each a file below `cases/`; [`selection`] chooses among them.
//! - [`mod@bench`] is what a case works with: two [`station`]s, what it finds, and the means that cases share.
//! - [`frame`] builds what is sent; [`must`] works out what must arrive.
//! - [`connect`] brings the ends together, [`runner`] runs the cases between their guards; nothing here prints.

pub mod bench;
mod calibrate;
mod capture;
pub mod case;
mod cases;
pub mod catalogue;
pub mod connect;
pub mod environment;
mod event;
pub mod expected;
mod finding;
pub mod frame;
pub mod glob;
mod guard;
pub mod inject;
mod liveness;
mod lock;
pub mod must;
mod privilege;
mod random;
mod record;
mod restore;
pub mod runner;
pub mod selection;
pub mod station;
pub mod topology;
mod trouble;
mod watch;

pub use capture::CapturedFrame;
pub use event::Event;
pub use finding::{Finding, Findings};
pub use lock::LockError;
pub use random::Rng;
pub use trouble::Trouble;
