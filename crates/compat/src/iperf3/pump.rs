//! The control connection as the drivers use it: whole writes, reads when something came, waits with a limit.

use std::io::{ErrorKind, Read, Write};
use std::os::fd::AsFd;
use std::time::Duration;

use linerate_sys::poll::{PollSet, Readiness};
use linerate_sys::{SysError, clock};
use socket2::Socket;

use super::error::TestError;

/// How long a peer may refuse to take a control message.
const WRITE_LIMIT: Duration = Duration::from_secs(10);

/// Longest wait before a stop is looked at, nanoseconds.
const LONGEST_WAIT_NS: u64 = 100_000_000;

/// What came on the control connection.
pub(super) enum Came {
    /// These bytes.
    Bytes(Vec<u8>),
    /// Its end.
    End,
    /// Nothing yet.
    Nothing,
}

/// A control connection.
#[derive(Debug)]
pub(super) struct Pump {
    socket: Socket,
}

impl Pump {
    pub(super) fn new(socket: Socket) -> Result<Self, TestError> {
        let describe = |e| SysError::new("set SO_SNDTIMEO", "control connection", e);
        socket.set_nonblocking(false).map_err(describe)?;
        socket.set_write_timeout(Some(WRITE_LIMIT)).map_err(describe)?;
        Ok(Self { socket })
    }

    pub(super) fn socket(&self) -> &Socket {
        &self.socket
    }

    /// Sends a whole message.
    pub(super) fn send(&self, bytes: &[u8]) -> Result<(), TestError> {
        (&self.socket).write_all(bytes).map_err(|e| match e.kind() {
            ErrorKind::BrokenPipe | ErrorKind::ConnectionReset => TestError::ControlClosed,
            _ => SysError::new("send", "control connection", e).into(),
        })
    }

    /// Waits for input here or on `wake` until `until_ns` (CLOCK_MONOTONIC), but not for long; says what came here.
    pub(super) fn wait(&self, wake: Option<&dyn AsFdObject>, until_ns: u64) -> Result<Came, TestError> {
        let now_ns = clock::monotonic_ns();
        let timeout_ns = until_ns.saturating_sub(now_ns).min(LONGEST_WAIT_NS);
        let mut set = PollSet::new();
        let own = set.add(self.socket.as_fd(), Readiness::READ);
        if let Some(wake) = wake {
            set.add(wake.fd(), Readiness::READ);
        }
        set.wait(Some(timeout_ns)).map_err(|e| SysError::new("poll", "control connection", e))?;
        if !set.ready(own).readable {
            return Ok(Came::Nothing);
        }
        self.read()
    }

    fn read(&self) -> Result<Came, TestError> {
        let mut buffer = [0; 16 << 10];
        match (&self.socket).read(&mut buffer) {
            Ok(0) => Ok(Came::End),
            Ok(count) => Ok(Came::Bytes(buffer[..count].to_vec())),
            Err(e) => match e.kind() {
                ErrorKind::WouldBlock | ErrorKind::Interrupted => Ok(Came::Nothing),
                ErrorKind::ConnectionReset => Ok(Came::End),
                _ => Err(SysError::new("receive", "control connection", e).into()),
            },
        }
    }
}

/// Something that can be polled.
pub(super) trait AsFdObject {
    fn fd(&self) -> std::os::fd::BorrowedFd<'_>;
}

impl<T: AsFd> AsFdObject for T {
    fn fd(&self) -> std::os::fd::BorrowedFd<'_> {
        self.as_fd()
    }
}
