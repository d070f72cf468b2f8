//! Every unsafe block of linerate: thin, safe wrappers over Linux system calls.
//!
//! No policy lives here. Each call reports a refusal as a [`SysError`] that names the operation and its object.

pub mod error;
pub mod netlink;

pub use error::{Result, SysError};
