//! The hot calls: send and receive, repeated when a signal comes between.

use std::os::fd::{AsRawFd, RawFd};

use nix::errno::Errno;
use nix::sys::socket::{self, MsgFlags};

/// `send(2)`, waiting for room.
pub(crate) fn send(socket: &impl AsRawFd, bytes: &[u8]) -> Result<usize, Errno> {
    send_flags(socket.as_raw_fd(), bytes, MsgFlags::MSG_NOSIGNAL)
}

/// `send(2)`; `EAGAIN` when there is no room.
pub(crate) fn send_now(socket: &impl AsRawFd, bytes: &[u8]) -> Result<usize, Errno> {
    send_flags(socket.as_raw_fd(), bytes, MsgFlags::MSG_NOSIGNAL | MsgFlags::MSG_DONTWAIT)
}

/// `recv(2)`, waiting for input.
pub(crate) fn recv(socket: &impl AsRawFd, buffer: &mut [u8]) -> Result<usize, Errno> {
    recv_flags(socket.as_raw_fd(), buffer, MsgFlags::empty())
}

/// `recv(2)`; `EAGAIN` when there is no input.
pub(crate) fn recv_now(socket: &impl AsRawFd, buffer: &mut [u8]) -> Result<usize, Errno> {
    recv_flags(socket.as_raw_fd(), buffer, MsgFlags::MSG_DONTWAIT)
}

fn send_flags(fd: RawFd, bytes: &[u8], flags: MsgFlags) -> Result<usize, Errno> {
    loop {
        match socket::send(fd, bytes, flags) {
            Err(Errno::EINTR) => {}
            other => return other,
        }
    }
}

fn recv_flags(fd: RawFd, buffer: &mut [u8], flags: MsgFlags) -> Result<usize, Errno> {
    loop {
        match socket::recv(fd, buffer, flags) {
            Err(Errno::EINTR) => {}
            other => return other,
        }
    }
}
