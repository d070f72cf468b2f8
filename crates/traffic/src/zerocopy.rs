//! Sending a stream with `MSG_ZEROCOPY`, and counting what the kernel says of it.
//!
//! A program that sends without a copy may not touch a buffer before its completion is told. The payload here never
//! changes, but the completions are read all the same and the calls under way bounded: that is part of what it costs.

use std::io;
use std::os::fd::AsFd;

use linerate_model::reading::ZeroCopyReading;
use linerate_sys::clock;
use linerate_sys::poll::{PollSet, Readiness};
use linerate_sys::zerocopy;
use nix::errno::Errno;
use socket2::Socket;

use crate::error::Result;
use crate::pattern::Payload;
use crate::tcp_stream::Method;

/// Calls whose completion may be outstanding, as of a program with a ring of so many buffers.
const MOST_OUTSTANDING: u64 = 512;
/// Completions are read after so many calls: one read often brings many.
const READ_EVERY: u64 = 16;
/// How long the completion of one call may take before it is given up: the kernel's own limits come first.
const WAIT_NS: u64 = 10_000_000_000;
/// How long the last completions are waited for at the end.
const LAST_NS: u64 = 200_000_000;

/// The state of one sender.
#[derive(Debug)]
pub(crate) struct ZeroCopy {
    sent_calls: u64,
    found: ZeroCopyReading,
}

impl Method for ZeroCopy {
    fn send(
        &mut self,
        socket: &Socket,
        payload: &Payload,
        length: usize,
    ) -> std::result::Result<usize, Errno> {
        if self.sent_calls.is_multiple_of(READ_EVERY) {
            self.read_completions(socket)?;
        }
        while self.outstanding() >= MOST_OUTSTANDING {
            self.wait_for_completion(socket, WAIT_NS)?;
        }
        loop {
            match zerocopy::send(socket, payload.peek(length)) {
                Ok(count) => {
                    self.sent_calls += u64::from(count > 0);
                    return Ok(count);
                }
                Err(error) => match errno(&error) {
                    Errno::EINTR => return Ok(0),
                    // The kernel has no room for more notices of completion (net.core.optmem_max, RLIMIT_MEMLOCK).
                    Errno::ENOBUFS if self.outstanding() > 0 => self.wait_for_completion(socket, WAIT_NS)?,
                    other => return Err(other),
                },
            }
        }
    }
}

impl ZeroCopy {
    /// # Errors
    /// Where the kernel does not know `SO_ZEROCOPY`.
    pub(crate) fn new(socket: &Socket) -> Result<Self> {
        zerocopy::enable(socket)?;
        Ok(Self { sent_calls: 0, found: ZeroCopyReading::default() })
    }

    /// Waits a little for the completions that are outstanding; what is not told by then stays uncounted.
    pub(crate) fn finish(mut self, socket: &Socket) -> ZeroCopyReading {
        let end_ns = clock::monotonic_ns() + LAST_NS;
        while self.outstanding() > 0 {
            let left_ns = end_ns.saturating_sub(clock::monotonic_ns());
            if left_ns == 0 || self.wait_for_completion(socket, left_ns).is_err() {
                break;
            }
        }
        self.found
    }

    fn outstanding(&self) -> u64 {
        self.sent_calls.saturating_sub(self.found.completed_calls)
    }

    fn wait_for_completion(&mut self, socket: &Socket, limit_ns: u64) -> std::result::Result<(), Errno> {
        let before = self.found.completed_calls;
        self.read_completions(socket)?;
        if self.found.completed_calls > before {
            return Ok(());
        }
        let mut set = PollSet::new();
        set.add(socket.as_fd(), Readiness::NONE);
        let ready = set.wait(Some(limit_ns)).map_err(|e| errno(&e))?;
        self.read_completions(socket)?;
        // Woken without a completion: the connection is broken, or was shut down.
        if ready > 0 && self.found.completed_calls == before {
            return Err(Errno::EPIPE);
        }
        if ready == 0 { Err(Errno::ETIMEDOUT) } else { Ok(()) }
    }

    fn read_completions(&mut self, socket: &Socket) -> std::result::Result<(), Errno> {
        while let Some(done) = zerocopy::completed(socket).map_err(|e| errno(&e))? {
            self.found.completed_calls += done.calls();
            self.found.copied_calls += if done.copied { done.calls() } else { 0 };
        }
        Ok(())
    }
}

fn errno(error: &io::Error) -> Errno {
    error.raw_os_error().map_or(Errno::EIO, Errno::from_raw)
}
