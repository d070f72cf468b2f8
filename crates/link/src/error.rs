//! The one error of this crate.

use std::collections::BTreeMap;
use std::io;
use std::net::IpAddr;
use std::time::Duration;

use linerate_sys::SysError;
use linerate_sys::netlink::NetlinkError;
use linerate_sys::netns::NetnsError;

/// Result of a call into this crate.
pub type Result<T> = std::result::Result<T, LinkError>;

/// Why something about a link could not be read or changed. Names the operation, its object, and the cause.
#[derive(Debug, thiserror::Error)]
pub enum LinkError {
    /// No link of this name in the namespace.
    #[error("no link {link}{place}: there are {}", .known.join(", "))]
    NoSuchLink {
        /// The name asked for.
        link: String,
        /// " in netns NAME" where the namespace has a name, else empty.
        place: String,
        /// The links that are there.
        known: Vec<String>,
    },
    /// The kernel has no way to the destination.
    #[error("find the route to {destination}: {cause}")]
    NoRoute {
        /// Where to.
        destination: IpAddr,
        /// The kernel's answer.
        cause: NetlinkError,
    },
    /// The kernel took the request and the driver kept a feature as it was.
    #[error("{operation}: the driver keeps {} as it was", .kept.join(", "))]
    FeatureKept {
        /// What was asked.
        operation: String,
        /// The features that did not change.
        kept: Vec<String>,
        /// Those that did all the same, with their new state.
        changed: BTreeMap<String, bool>,
    },
    /// The kernel took a value and the driver made another of it.
    #[error("{what}: the kernel took it and made it {now}")]
    NotTaken {
        /// The setting with its value.
        what: String,
        /// What it reads as.
        now: String,
    },
    /// A living linerate has changed the same.
    #[error("change {what}: linerate with process id {owner} has changed it and still runs")]
    InUse {
        /// What both want to change.
        what: String,
        /// The other's process id.
        owner: u32,
    },
    /// A dead linerate has left it changed, and it could not be put back.
    #[error("put back what linerate with process id {owner} had changed: {why}; see `linerate restore`")]
    NotPutBack {
        /// The other's process id.
        owner: u32,
        /// What did not go back, and why.
        why: String,
    },
    /// A netlink request failed.
    #[error(transparent)]
    Netlink(#[from] NetlinkError),
    /// A system call failed.
    #[error(transparent)]
    System(#[from] SysError),
    /// A namespace could not be made, entered or removed.
    #[error(transparent)]
    Netns(#[from] NetnsError),
    /// A file below `/proc`, `/sys` or `/run` could not be used.
    #[error("{operation} {object}: {cause}")]
    File {
        /// What was attempted, as a verb.
        operation: &'static str,
        /// The file.
        object: String,
        /// What the kernel said.
        cause: io::Error,
    },
    /// A reply lacks what it must have, or has what it can't have.
    #[error("{operation}: unexpected reply: {detail}")]
    Unexpected {
        /// What was asked.
        operation: String,
        /// What is wrong.
        detail: String,
    },
    /// An argument makes no sense.
    #[error("{what}: {why}")]
    Invalid {
        /// The argument with its value.
        what: String,
        /// What would be right.
        why: String,
    },
    /// Something did not happen in time.
    #[error("{what}: not within {limit:?}")]
    Timeout {
        /// What was waited for.
        what: String,
        /// For how long.
        limit: Duration,
    },
}

impl LinkError {
    pub(crate) fn file(operation: &'static str, object: impl Into<String>, cause: io::Error) -> Self {
        Self::File { operation, object: object.into(), cause }
    }

    pub(crate) fn unexpected(operation: &str, detail: impl Into<String>) -> Self {
        Self::Unexpected { operation: operation.to_owned(), detail: detail.into() }
    }

    /// What the kernel said, without the operation: its extended text where it gave one.
    pub(crate) fn cause_text(&self) -> String {
        match self {
            Self::Netlink(NetlinkError::Refused { refusal, .. }) => refusal.to_string(),
            Self::System(cause) => cause.source.to_string(),
            Self::File { cause, .. } => cause.to_string(),
            Self::Invalid { why, .. } => why.clone(),
            other => other.to_string(),
        }
    }

    /// The `errno` value behind this error, if there is one.
    pub fn raw_os_error(&self) -> Option<i32> {
        match self {
            Self::Netlink(cause) | Self::NoRoute { cause, .. } => cause.raw_os_error(),
            Self::System(cause) => cause.raw_os_error(),
            Self::Netns(NetnsError::System(cause) | NetnsError::UserNamespaceForbidden { cause, .. }) => {
                cause.raw_os_error()
            }
            Self::File { cause, .. } => cause.raw_os_error(),
            _ => None,
        }
    }

    /// Whether the kernel or the driver says that it can't do this at all (`EOPNOTSUPP`).
    pub fn is_unsupported(&self) -> bool {
        self.raw_os_error() == Some(nix::libc::EOPNOTSUPP)
    }

    /// Whether permission is what lacks (`EPERM`, `EACCES`).
    pub fn is_forbidden(&self) -> bool {
        matches!(self.raw_os_error(), Some(nix::libc::EPERM | nix::libc::EACCES))
    }
}
