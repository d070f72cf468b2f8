//! The loops of UDP streams.

use std::io::ErrorKind;
use std::os::fd::AsRawFd;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;

use linerate_sys::mmsg::{RecvBatch, SendBatch, Wait};
use linerate_sys::{SysError, clock, sockopt};
use nix::errno::Errno;
use nix::sys::socket::{self, MsgFlags, sockopt as nix_sockopt};

use super::error::TestError;
use super::lane::{Counters, Shared, Stream, failed, payload};
use super::pace::Pace;
use super::params::{Params, UDP_LEN_MAX, gso_buffer};
use super::udp::{Arrivals, Header, is_answer, is_hello};

/// Datagrams a call when several are due.
const SEND_BATCH: usize = 32;

/// Memory for received datagrams of a stream, bytes.
const RECEIVE_MEMORY: usize = 2 << 20;

/// Pause when the kernel has no room for a datagram.
const NO_ROOM_PAUSE: Duration = Duration::from_micros(50);

pub(super) fn send(stream: &Stream, params: &Params, shared: &Shared) -> Result<(), TestError> {
    if params.offload.gso {
        return send_merged(stream, params, shared);
    }
    let len = params.len as usize;
    let mut batch = SendBatch::new(SEND_BATCH, len);
    let content = payload(len, params.repeating_payload);
    for index in 0..batch.capacity() {
        batch.datagram(index).copy_from_slice(&content);
    }
    let mut pace = Pace::new(params, len);
    let mut sequence = 0;
    while shared.running() && pace.wait_due(|| shared.running()) {
        let now_ns = clock::monotonic_ns();
        let most = pace.due_units(now_ns, len, SEND_BATCH);
        let count = (0..most).take_while(|_| shared.claim(len) > 0).count();
        for index in 0..count {
            let header = Header { sent_us: now_ns / 1000, sequence: sequence + 1 + index as u64 };
            header.write(batch.datagram(index), params.counters_64bit);
        }
        let sent = send_batch(stream, shared, &mut batch, count)?;
        sequence += sent as u64;
        pace.went(sent * len);
        note_sent(&stream.counters, sent, len);
        if count < most {
            break;
        }
    }
    Ok(())
}

/// Sends `count` datagrams; returns how many went before a stop.
fn send_batch(
    stream: &Stream,
    shared: &Shared,
    batch: &mut SendBatch,
    count: usize,
) -> Result<usize, TestError> {
    let mut sent = 0;
    while sent < count {
        match batch.send(&*stream.socket, sent, count) {
            Ok(more) => sent += more,
            Err(error) => pause_or_fail(stream, error.raw_os_error().map_or(Errno::EIO, Errno::from_raw))?,
        }
        if !shared.running() {
            break;
        }
    }
    Ok(sent)
}

/// Several datagrams as one, cut by the kernel or the NIC.
fn send_merged(stream: &Stream, params: &Params, shared: &Shared) -> Result<(), TestError> {
    let len = params.len as usize;
    let unit = gso_buffer(params.len) as usize;
    let mut block = payload(unit, params.repeating_payload);
    let segment = params.len as i32;
    socket::setsockopt(&*stream.socket, nix_sockopt::UdpGsoSegment, &segment)
        .map_err(|e| SysError::new("set UDP_SEGMENT", stream.remote.to_string(), e.into()))?;
    let mut pace = Pace::new(params, unit);
    let mut sequence = 0;
    while shared.running() && pace.wait_due(|| shared.running()) {
        let claimed = (0..unit / len).take_while(|_| shared.claim(len) > 0).count() * len;
        let now_us = clock::monotonic_ns() / 1000;
        for datagram in block[..claimed].chunks_mut(len) {
            sequence += 1;
            Header { sent_us: now_us, sequence }.write(datagram, params.counters_64bit);
        }
        while claimed > 0 && shared.running() {
            match socket::send(stream.socket.as_raw_fd(), &block[..claimed], MsgFlags::MSG_NOSIGNAL) {
                Ok(_) => {
                    pace.went(claimed);
                    note_sent(&stream.counters, claimed / len, len);
                    break;
                }
                Err(error) => pause_or_fail(stream, error)?,
            }
        }
        if claimed < unit / len * len {
            break;
        }
    }
    Ok(())
}

fn note_sent(counters: &Counters, datagrams: usize, len: usize) {
    counters.bytes.fetch_add((datagrams * len) as u64, Relaxed);
    counters.packets.fetch_add(datagrams as u64, Relaxed);
}

/// A full queue, and a far end that is not there yet (or no more), end no test: the control connection tells.
fn pause_or_fail(stream: &Stream, error: Errno) -> Result<(), TestError> {
    match error {
        Errno::EINTR | Errno::EAGAIN | Errno::ECONNREFUSED => Ok(()),
        Errno::ENOBUFS => {
            std::thread::sleep(NO_ROOM_PAUSE);
            Ok(())
        }
        other => Err(failed(stream, "send", other.into())),
    }
}

pub(super) fn receive(stream: &Stream, params: &Params, shared: &Shared) -> Result<(), TestError> {
    if params.offload.gro {
        sockopt::set_udp_gro(&*stream.socket, true)?;
    }
    // The kernel's stamps: jitter then does not depend on when this thread runs.
    sockopt::set_receive_timestamps(&*stream.socket, true)?;
    let size = if params.offload.gro { UDP_LEN_MAX as usize } else { params.len as usize };
    let mut batch = RecvBatch::new((RECEIVE_MEMORY / size).clamp(1, 64), size);
    let mut arrivals = Arrivals::default();
    while !shared.leaving() {
        let count = match batch.recv(&*stream.socket, Wait::ForOne) {
            Ok(count) => count,
            Err(e) if matches!(e.kind(), ErrorKind::WouldBlock | ErrorKind::Interrupted) => continue,
            Err(e) if e.kind() == ErrorKind::ConnectionRefused => continue,
            Err(e) => return Err(failed(stream, "receive", e)),
        };
        if stream.counters.restart_jitter.swap(false, Relaxed) {
            arrivals.restart_jitter();
        }
        let mut bytes = 0;
        for index in 0..count {
            bytes += take(&batch, index, params.counters_64bit, &mut arrivals);
        }
        note_received(&stream.counters, bytes, &arrivals);
        shared.came(bytes);
    }
    Ok(())
}

/// Counts the datagrams of one message; returns their bytes.
fn take(batch: &RecvBatch, index: usize, wide: bool, arrivals: &mut Arrivals) -> usize {
    let message = batch.message(index);
    let control = batch.control(index);
    let now_us = control.timestamp_ns.unwrap_or_else(clock::realtime_ns) / 1000;
    let segment = control.segment.map_or(message.len(), usize::from).max(1);
    let mut bytes = 0;
    for datagram in message.chunks(segment) {
        // A hello or an answer that came twice is no data.
        if is_hello(datagram) || is_answer(datagram) {
            continue;
        }
        let Some(header) = Header::read(datagram, wide) else { continue };
        arrivals.note(header, now_us);
        bytes += datagram.len();
    }
    bytes
}

fn note_received(counters: &Counters, bytes: usize, arrivals: &Arrivals) {
    counters.bytes.fetch_add(bytes as u64, Relaxed);
    counters.packets.store(arrivals.highest, Relaxed);
    counters.lost.store(arrivals.lost, Relaxed);
    counters.out_of_order.store(arrivals.out_of_order, Relaxed);
    counters.duplicates.store(arrivals.duplicates, Relaxed);
    counters.jitter.store(arrivals.jitter_s.to_bits(), Relaxed);
    counters.last_ns.store(clock::monotonic_ns(), Relaxed);
}
