//! Why a guest could not be had.

use std::io;

/// What went wrong on the way to a guest; names the operation, its object, and the cause.
#[derive(Debug, thiserror::Error)]
pub enum VmError {
    /// No profile of this name, and no file.
    #[error("no profile {name}: there are {}; or give the path of a file", .known.join(", "))]
    NoProfile {
        /// The name asked for.
        name: String,
        /// Those that are shipped.
        known: Vec<String>,
    },
    /// A profile's text is not what a profile has.
    #[error("read profile {name}: {why}")]
    BadProfile {
        /// Its name or path.
        name: String,
        /// What is wrong.
        why: String,
    },
    /// QEMU is missing, or lacks what the profile wants.
    #[error("{0}")]
    Qemu(String),
    /// No kernel, or not the one asked for.
    #[error("{0}")]
    Kernel(String),
    /// A module that the profile names is not in the kernel.
    #[error("kernel {kernel} has no module {module}")]
    NoModule {
        /// The module.
        module: String,
        /// The kernel's version.
        kernel: String,
    },
    /// A file could not be used.
    #[error("{operation} {object}: {cause}")]
    File {
        /// What was tried.
        operation: &'static str,
        /// On which file.
        object: String,
        /// The system's answer.
        cause: io::Error,
    },
    /// The guest did not come up, or went down.
    #[error("{0}")]
    Guest(String),
}

impl VmError {
    pub(super) fn file(operation: &'static str, object: impl ToString, cause: io::Error) -> Self {
        Self::File { operation, object: object.to_string(), cause }
    }
}

/// Result of preparing a guest.
pub type Result<T> = std::result::Result<T, VmError>;
