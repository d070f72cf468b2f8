//! Why the meter can't be had at all. What only a part of it lacks is told in `MeterReading::unavailable`.

use linerate_sys::SysError;
use linerate_sys::netlink::NetlinkError;

/// Result of a call into this crate.
pub type Result<T> = std::result::Result<T, MeterError>;

/// A refusal or a text that is not what the kernel documents.
#[derive(Debug, thiserror::Error)]
pub enum MeterError {
    /// A system call failed.
    #[error(transparent)]
    System(#[from] SysError),
    /// A netlink request failed.
    #[error(transparent)]
    Netlink(#[from] NetlinkError),
    /// A file or message does not have the documented form.
    #[error("parse {object}: {detail}")]
    Malformed {
        /// The file or message.
        object: String,
        /// What is wrong with it.
        detail: String,
    },
}

impl MeterError {
    pub(crate) fn malformed(object: impl Into<String>, detail: impl Into<String>) -> Self {
        Self::Malformed { object: object.into(), detail: detail.into() }
    }
}
