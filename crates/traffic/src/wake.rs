//! Wakes a thread that waits in ppoll(2) (eventfd(2)).

use std::os::fd::{AsFd, BorrowedFd};

use linerate_sys::SysError;
use nix::sys::eventfd::{EfdFlags, EventFd};

use crate::error::Result;

/// Readable once [`Wake::ring`] was called, and from then on.
#[derive(Debug)]
pub(crate) struct Wake(EventFd);

impl Wake {
    pub(crate) fn new() -> Result<Self> {
        let event = EventFd::from_flags(EfdFlags::EFD_CLOEXEC | EfdFlags::EFD_NONBLOCK)
            .map_err(|e| SysError::new("create eventfd", "", e.into()))?;
        Ok(Self(event))
    }

    pub(crate) fn ring(&self) {
        // It can only fail when the counter is full, and then it is readable already.
        let _full = self.0.write(1);
    }

    pub(crate) fn fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}
