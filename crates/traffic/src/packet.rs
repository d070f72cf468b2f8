//! Whole frames out and in: ports for frames that a case made, generators and tallies for probe frames by the million.
//!
//! What was asked for and what came of it are the plain types of [`linerate_model::bench`]. All work on the network
//! namespace of the thread that opens them.

mod generator;
mod offload;
mod port;
mod sequence;
mod tally;

use linerate_sys::SysError;

pub use generator::Generator;
pub use port::{Port, Received};
pub use tally::TallyRun;

/// Why frames could not be sent or captured.
#[derive(Debug, thiserror::Error)]
pub enum PacketError {
    /// The kernel refused.
    #[error(transparent)]
    System(#[from] SysError),
    /// The request makes no sense.
    #[error("{what}: {why}")]
    Invalid {
        /// What was asked.
        what: String,
        /// What is wrong with it.
        why: String,
    },
    /// A background thread ended before it could tell what it did.
    #[error("{0} ended in the middle: a bug")]
    Broken(&'static str),
}

impl PacketError {
    fn invalid(what: impl Into<String>, why: impl Into<String>) -> Self {
        Self::Invalid { what: what.into(), why: why.into() }
    }

    /// The kernel's error number, where it refused.
    pub fn raw_os_error(&self) -> Option<i32> {
        match self {
            Self::System(error) => error.raw_os_error(),
            _ => None,
        }
    }
}

/// Result of a call into this module.
pub type Result<T> = std::result::Result<T, PacketError>;

#[cfg(test)]
mod tests;
