//! Byte streams in one direction, and whole messages over them.

use std::os::fd::{AsFd, OwnedFd};

use linerate_sys::{clock, memfd};
use nix::errno::Errno;
use socket2::Socket;

use super::{Buffer, End, Latencies, MoveError, Pace, Pacer, Result, Tally};
use crate::call;
use crate::pattern::AlignedBytes;

/// How a byte stream is sent.
#[derive(Debug, Clone, Default)]
pub struct SendPlan {
    /// Bytes a call, at least 1.
    pub size: usize,
    /// Bytes to send; none is until stopped.
    pub total_bytes: Option<u64>,
    /// None is as fast as the socket takes them.
    pub pace: Option<Pace>,
    /// `sendfile(2)` from a file in memory instead of `send(2)`.
    pub sendfile: bool,
}

/// Sends `buffer` again and again, the next `size` bytes of it each call (a buffer of n x `size` is a ring of n).
///
/// # Errors
/// What the kernel said, when it was anything but a signal or a full socket.
pub fn send_stream(
    tally: &Tally,
    socket: &Socket,
    buffer: &Buffer,
    plan: &SendPlan,
    mut latencies: Option<&mut Latencies>,
) -> Result<End> {
    let bytes = buffer.as_ref();
    let size = plan.size.clamp(1, bytes.len().max(1));
    let file = if plan.sendfile { Some(file_of(bytes)?) } else { None };
    let mut pacer = plan.pace.map(|pace| Pacer::new(pace, size, clock::monotonic_ns()));
    let mut left = plan.total_bytes.unwrap_or(u64::MAX);
    let mut offset = 0;
    while left > 0 {
        if tally.stopped() || pacer.as_mut().is_some_and(|p| !p.take_turn(tally)) {
            return Ok(End::Stopped);
        }
        let length = size.min(usize::try_from(left).unwrap_or(usize::MAX));
        let begun_ns = latencies.as_ref().map(|_| clock::monotonic_ns());
        let whole = match &file {
            Some(file) => send_from_file(tally, socket, file, offset, length)?,
            None => send_whole(tally, socket, &bytes[offset..offset + length])?,
        };
        if !whole {
            return Ok(End::Stopped);
        }
        if let (Some(latencies), Some(begun_ns)) = (&mut latencies, begun_ns) {
            latencies.record(clock::monotonic_ns().saturating_sub(begun_ns));
        }
        left -= length as u64;
        offset += size;
        if offset + size > bytes.len() {
            offset = 0;
        }
    }
    Ok(End::Done)
}

fn file_of(bytes: &[u8]) -> Result<OwnedFd> {
    memfd::memfd_with("linerate-payload", bytes)
        .map_err(|e| MoveError::new("make file to send", std::io::Error::other(e)))
}

/// Sends all of `bytes` as one message; false once stopped.
///
/// # Errors
/// What the kernel said, when it was anything but a signal or a full socket.
pub fn send_whole(tally: &Tally, socket: &Socket, mut bytes: &[u8]) -> Result<bool> {
    loop {
        match call::send(socket, bytes) {
            Ok(count) => {
                bytes = &bytes[count..];
                tally.sent(count, u64::from(bytes.is_empty()));
                if bytes.is_empty() {
                    return Ok(true);
                }
            }
            Err(Errno::EAGAIN) => {}
            Err(e) => return Err(MoveError::new("send", e)),
        }
        if tally.stopped() {
            return Ok(false);
        }
    }
}

fn send_from_file(
    tally: &Tally,
    socket: &Socket,
    file: &OwnedFd,
    mut offset: usize,
    mut left: usize,
) -> Result<bool> {
    loop {
        match memfd::send_file(socket.as_fd(), file, offset as u64, left) {
            Ok(count) => {
                offset += count;
                left -= count;
                tally.sent(count, u64::from(left == 0));
                if left == 0 {
                    return Ok(true);
                }
            }
            Err(e) => match Errno::from_raw(e.raw_os_error().unwrap_or_default()) {
                Errno::EAGAIN | Errno::EINTR => {}
                _ => return Err(MoveError::new("sendfile", e)),
            },
        }
        if tally.stopped() {
            return Ok(false);
        }
    }
}

/// Receives into a buffer of `room` bytes until `total_bytes` have come, the other end closes, or stopped.
/// `latencies` get the time of each call.
///
/// # Errors
/// What the kernel said.
pub fn receive_stream(
    tally: &Tally,
    socket: &Socket,
    room: usize,
    total_bytes: Option<u64>,
    mut latencies: Option<&mut Latencies>,
) -> Result<End> {
    let mut buffer = AlignedBytes::zeroed(room.max(1));
    let buffer = buffer.as_mut();
    let mut left = total_bytes.unwrap_or(u64::MAX);
    while left > 0 {
        if tally.stopped() {
            return Ok(End::Stopped);
        }
        let begun_ns = latencies.as_ref().map(|_| clock::monotonic_ns());
        match call::recv(socket, buffer) {
            Ok(0) => return Ok(End::Closed),
            Ok(count) => {
                tally.received(count, 1);
                left = left.saturating_sub(count as u64);
                if let (Some(latencies), Some(begun_ns)) = (&mut latencies, begun_ns) {
                    latencies.record(clock::monotonic_ns().saturating_sub(begun_ns));
                }
            }
            Err(Errno::EAGAIN) => {}
            Err(e) => return Err(MoveError::new("receive", e)),
        }
    }
    Ok(End::Done)
}

/// Receives what there is, at least 1 byte; `Done` with the count, or why nothing came.
///
/// # Errors
/// What the kernel said.
pub fn recv_some(
    tally: &Tally,
    socket: &Socket,
    buffer: &mut [u8],
) -> Result<std::result::Result<usize, End>> {
    loop {
        match call::recv(socket, buffer) {
            Ok(0) => return Ok(Err(End::Closed)),
            Ok(count) => {
                tally.received(count, 1);
                return Ok(Ok(count));
            }
            Err(Errno::EAGAIN) if tally.stopped() => return Ok(Err(End::Stopped)),
            Err(Errno::EAGAIN) => {}
            Err(e) => return Err(MoveError::new("receive", e)),
        }
    }
}

/// Fills `buffer`: one message. `Done` when it is full.
///
/// # Errors
/// What the kernel said.
pub fn recv_whole(tally: &Tally, socket: &Socket, buffer: &mut [u8]) -> Result<End> {
    let mut filled = 0;
    while filled < buffer.len() {
        match call::recv(socket, &mut buffer[filled..]) {
            Ok(0) => return Ok(End::Closed),
            Ok(count) => {
                filled += count;
                tally.received(count, u64::from(filled == buffer.len()));
            }
            Err(Errno::EAGAIN) if tally.stopped() => return Ok(End::Stopped),
            Err(Errno::EAGAIN) => {}
            Err(e) => return Err(MoveError::new("receive", e)),
        }
    }
    Ok(End::Done)
}
