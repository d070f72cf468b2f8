//! The one error of this crate: which operation failed, on what, and what the kernel said.

use std::io;

/// Result of a call into this crate.
pub type Result<T> = std::result::Result<T, SysError>;

/// A system call that the kernel refused.
///
/// Displays as `operation on object: cause`; an empty object leaves out the middle.
#[derive(Debug, thiserror::Error)]
#[error("{operation}{}: {source}", on(.object))]
pub struct SysError {
    /// What was attempted, as a verb phrase ("set TCP_MAXSEG").
    pub operation: &'static str,
    /// What it was attempted on ("socket 7", "/proc/net/dev"); may be empty.
    pub object: String,
    /// What the kernel answered.
    pub source: io::Error,
}

fn on(object: &str) -> String {
    if object.is_empty() { String::new() } else { format!(" on {object}") }
}

impl SysError {
    /// Wraps `source`, the cause of a failed `operation` on `object`.
    pub fn new(operation: &'static str, object: impl Into<String>, source: io::Error) -> Self {
        Self { operation, object: object.into(), source }
    }

    /// Wraps the calling thread's `errno`; call it right after the failed system call.
    pub fn last(operation: &'static str, object: impl Into<String>) -> Self {
        // Read errno before `object` is converted: an allocation may change it.
        let source = io::Error::last_os_error();
        Self::new(operation, object, source)
    }

    /// The `errno` value, if the cause came from the kernel.
    pub fn raw_os_error(&self) -> Option<i32> {
        self.source.raw_os_error()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_operation_object_and_cause() {
        let error = SysError::new("set TCP_MAXSEG", "socket 7", io::Error::from_raw_os_error(libc::EINVAL));
        assert_eq!(error.to_string(), "set TCP_MAXSEG on socket 7: Invalid argument (os error 22)");
        assert_eq!(error.raw_os_error(), Some(libc::EINVAL));
    }

    #[test]
    fn an_empty_object_is_left_out() {
        let error = SysError::new("fork", "", io::Error::from_raw_os_error(libc::EAGAIN));
        assert!(error.to_string().starts_with("fork: "));
    }
}
