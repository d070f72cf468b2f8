//! Waiting for a few descriptors with a nanosecond timeout (ppoll(2)).

use std::io;
use std::os::fd::{AsRawFd, BorrowedFd};

use crate::clock::timespec;

/// What to wait for on one descriptor, and what came.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Readiness {
    /// Readable, at end of stream, or broken: a read will not block.
    pub readable: bool,
    /// Writable or broken: a write will not block.
    pub writable: bool,
}

impl Readiness {
    /// Wait for input.
    pub const READ: Self = Self { readable: true, writable: false };
    /// Wait for room to write.
    pub const WRITE: Self = Self { readable: false, writable: true };
    /// Wait for either.
    pub const BOTH: Self = Self { readable: true, writable: true };
    /// Wait for neither: only a broken connection is reported.
    pub const NONE: Self = Self { readable: false, writable: false };

    fn events(self) -> i16 {
        let read = if self.readable { libc::POLLIN } else { 0 };
        let write = if self.writable { libc::POLLOUT } else { 0 };
        read | write
    }

    fn came(events: i16) -> Self {
        let broken = events & (libc::POLLERR | libc::POLLHUP | libc::POLLNVAL) != 0;
        Self {
            readable: broken || events & libc::POLLIN != 0,
            writable: broken || events & libc::POLLOUT != 0,
        }
    }
}

/// A set of descriptors to wait for; keeps its array between calls, so that waiting does not allocate.
#[derive(Default)]
pub struct PollSet<'fd> {
    entries: Vec<libc::pollfd>,
    borrowed: std::marker::PhantomData<BorrowedFd<'fd>>,
}

impl<'fd> PollSet<'fd> {
    /// An empty set.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a descriptor; returns its index.
    pub fn add(&mut self, fd: BorrowedFd<'fd>, interest: Readiness) -> usize {
        self.entries.push(libc::pollfd { fd: fd.as_raw_fd(), events: interest.events(), revents: 0 });
        self.entries.len() - 1
    }

    /// Changes what the descriptor at `index` is waited for.
    pub fn set(&mut self, index: usize, interest: Readiness) {
        self.entries[index].events = interest.events();
    }

    /// Waits until a descriptor is ready, `timeout_ns` has passed (`None`: without end) or a signal came; returns how many
    /// are ready. Hot call: plain `io::Result`; a signal counts as a timeout.
    pub fn wait(&mut self, timeout_ns: Option<u64>) -> io::Result<usize> {
        let timeout = timeout_ns.map(timespec);
        let pointer = timeout.as_ref().map_or(std::ptr::null(), std::ptr::from_ref);
        let length = self.entries.len() as libc::nfds_t;
        // SAFETY: `entries` holds `length` records, `pointer` is null or points to `timeout`, which outlives the call.
        let ready = unsafe { libc::ppoll(self.entries.as_mut_ptr(), length, pointer, std::ptr::null()) };
        if ready >= 0 {
            return Ok(ready as usize);
        }
        let error = io::Error::last_os_error();
        if error.kind() != io::ErrorKind::Interrupted {
            return Err(error);
        }
        for entry in &mut self.entries {
            entry.revents = 0;
        }
        Ok(0)
    }

    /// What the last [`PollSet::wait`] found on the descriptor at `index`.
    pub fn ready(&self, index: usize) -> Readiness {
        Readiness::came(self.entries[index].revents)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::clock::monotonic_ns;
    use std::io::Write;
    use std::os::fd::AsFd;
    use std::os::unix::net::UnixStream;

    #[test]
    fn tells_what_is_ready() {
        let (a, b) = UnixStream::pair().unwrap();
        let mut set = PollSet::new();
        let first = set.add(a.as_fd(), Readiness::READ);
        let second = set.add(b.as_fd(), Readiness::BOTH);
        assert_eq!(set.wait(Some(0)).unwrap(), 1);
        assert_eq!(set.ready(first), Readiness::NONE);
        assert_eq!(set.ready(second), Readiness::WRITE);
        set.set(second, Readiness::READ);
        (&b).write_all(b"x").unwrap();
        assert_eq!(set.wait(None).unwrap(), 1);
        assert!(set.ready(first).readable);
    }

    #[test]
    fn a_timeout_passes() {
        let (a, _b) = UnixStream::pair().unwrap();
        let mut set = PollSet::new();
        set.add(a.as_fd(), Readiness::READ);
        let start = monotonic_ns();
        assert_eq!(set.wait(Some(3_000_000)).unwrap(), 0);
        assert!(monotonic_ns() - start >= 3_000_000);
    }

    #[test]
    fn a_closed_peer_is_ready() {
        let (a, b) = UnixStream::pair().unwrap();
        drop(b);
        let mut set = PollSet::new();
        let index = set.add(a.as_fd(), Readiness::NONE);
        set.wait(Some(1_000_000_000)).unwrap();
        assert!(set.ready(index).readable);
    }
}
