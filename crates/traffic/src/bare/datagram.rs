//! Datagrams over connected UDP sockets.

use std::io;
use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

use linerate_sys::clock;
use linerate_sys::mmsg::{RecvBatch, Wait};
use nix::errno::Errno;
use socket2::Socket;

use super::{Buffer, End, Latencies, MoveError, Pace, Pacer, Result, Tally};
use crate::call;
use crate::pattern::AlignedBytes;

/// Room for the datagrams of one receive call, bytes; and how many at most.
const BATCH_BYTES: usize = 1 << 20;
const BATCH_MAX: usize = 64;

/// How long an answer may take before anything is known of the path.
const FIRST_PATIENCE_NS: u64 = 250_000_000;

/// Bounds of the time after which a request counts as lost: this much, or eight usual round trips.
const PATIENCE_NS: std::ops::RangeInclusive<u64> = 10_000_000..=1_000_000_000;

/// How datagrams are sent.
#[derive(Debug, Clone, Default)]
pub struct DatagramPlan {
    /// Bytes to send; none is until stopped. The last datagram carries what is left.
    pub total_bytes: Option<u64>,
    /// Datagrams to send; none is until stopped.
    pub total_messages: Option<u64>,
    /// None is as fast as the socket takes them.
    pub pace: Option<Pace>,
}

/// Sends datagrams of the buffer's length. `stamp` may write into each before it goes: it gets the number of datagrams
/// sent before, and the datagram. One that the kernel does not take for want of room is counted as refused; the
/// next one takes its number.
///
/// # Errors
/// What the kernel said: `ECONNREFUSED` when nobody listens there.
pub fn send_datagrams(
    tally: &Tally,
    socket: &Socket,
    buffer: &mut Buffer,
    plan: &DatagramPlan,
    mut stamp: impl FnMut(u64, &mut [u8]),
) -> Result<End> {
    let datagram = buffer.as_mut();
    let mut pacer = plan.pace.map(|pace| Pacer::new(pace, datagram.len(), clock::monotonic_ns()));
    let mut bytes_left = plan.total_bytes.unwrap_or(u64::MAX);
    let messages = plan.total_messages.unwrap_or(u64::MAX);
    let mut number = 0;
    while bytes_left > 0 && number < messages {
        if tally.stopped() || pacer.as_mut().is_some_and(|p| !p.take_turn(tally)) {
            return Ok(End::Stopped);
        }
        let length = datagram.len().min(usize::try_from(bytes_left).unwrap_or(usize::MAX));
        stamp(number, &mut datagram[..length]);
        match call::send(socket, &datagram[..length]) {
            Ok(count) => {
                tally.sent(count, 1);
                number += 1;
                bytes_left -= length as u64;
            }
            Err(Errno::ENOBUFS | Errno::EAGAIN) => tally.refused(),
            Err(e) => return Err(MoveError::new("send", e)),
        }
    }
    Ok(End::Done)
}

/// What a datagram was to the protocol.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Took {
    /// Payload: counted.
    Payload,
    /// Did not belong: counted as a stray.
    Stray,
    /// The sign that no more will come.
    End,
}

/// Receives datagrams of up to `room` bytes, many a call, until `take` says that one was the end, or stopped.
///
/// # Errors
/// What the kernel said.
pub fn receive_datagrams(
    tally: &Tally,
    socket: &Socket,
    room: usize,
    mut take: impl FnMut(&[u8]) -> Took,
) -> Result<End> {
    let room = room.max(1);
    let mut batch = RecvBatch::new((BATCH_BYTES / room).clamp(1, BATCH_MAX), room);
    while !tally.stopped() {
        let count = match batch.recv(socket, Wait::ForOne) {
            Ok(count) => count,
            Err(e) => match errno(&e) {
                Errno::EAGAIN | Errno::EINTR | Errno::ECONNREFUSED => continue,
                _ => return Err(MoveError::new("receive", e)),
            },
        };
        let (mut bytes, mut messages) = (0, 0);
        let mut ended = false;
        for index in 0..count {
            let datagram = batch.message(index);
            match take(datagram) {
                Took::Payload => {
                    bytes += datagram.len();
                    messages += 1;
                }
                Took::Stray => tally.stray(),
                Took::End => {
                    ended = true;
                    break;
                }
            }
        }
        tally.received(bytes, messages);
        if ended {
            return Ok(End::Closed);
        }
    }
    Ok(End::Stopped)
}

/// Waits for the first datagram from `peer` (any port), connects the socket to its source and leaves it to be received.
/// Datagrams from elsewhere are counted as strays and dropped. None once stopped.
///
/// # Errors
/// What the kernel said.
pub fn adopt_peer(tally: &Tally, socket: &Socket, peer: IpAddr) -> Result<Option<SocketAddr>> {
    let mut byte = [0];
    while !tally.stopped() {
        let source = match socket.peek_sender() {
            Ok(source) => source.as_socket(),
            Err(e) => match errno(&e) {
                Errno::EAGAIN | Errno::EINTR => continue,
                _ => return Err(MoveError::new("receive", e)),
            },
        };
        if let Some(source) = source.filter(|s| s.ip().to_canonical() == peer.to_canonical()) {
            socket.connect(&source.into()).map_err(|e| MoveError::new("connect to sender", e))?;
            return Ok(Some(source));
        }
        tally.stray();
        let _dropped = call::recv_now(socket, &mut byte);
    }
    Ok(None)
}

/// How the asking end of UDP request/response asks.
#[derive(Debug, Clone, Default)]
pub struct DatagramAsk {
    /// Most bytes of a response.
    pub response: usize,
    /// Requests that may be outstanding (0 is 1).
    pub in_flight: usize,
    /// Transactions to do; none is until stopped.
    pub total: Option<u64>,
    /// When requests may go.
    pub pace: Option<Pace>,
    /// After how long a request counts as lost; none is eight usual round trips, 10 ms to 1 s.
    pub patience: Option<Duration>,
}

/// Asks and waits for the answer; a request or answer that was lost is counted, and the next one asked. `latencies` get
/// the time from a request to its response.
///
/// # Errors
/// What the kernel said: `ECONNREFUSED` when nobody listens there (any more).
pub fn ask_datagrams(
    tally: &Tally,
    socket: &Socket,
    request: &Buffer,
    plan: &DatagramAsk,
    mut latencies: Option<&mut Latencies>,
) -> Result<End> {
    let mut buffer = AlignedBytes::zeroed(plan.response.max(1));
    let mut pacer = plan.pace.map(|pace| Pacer::new(pace, request.as_ref().len(), clock::monotonic_ns()));
    let mut patience = Patience::new(plan.patience);
    let mut begun = std::collections::VecDeque::new();
    let mut left = plan.total.unwrap_or(u64::MAX);
    while left > 0 {
        while begun.len() < plan.in_flight.max(1).min(usize::try_from(left).unwrap_or(usize::MAX)) {
            if tally.stopped() || pacer.as_mut().is_some_and(|p| !p.take_turn(tally)) {
                return Ok(End::Stopped);
            }
            begun.push_back(clock::monotonic_ns());
            match call::send(socket, request.as_ref()) {
                Ok(count) => tally.sent(count, 1),
                Err(Errno::ENOBUFS | Errno::EAGAIN) => {
                    begun.pop_back();
                    tally.refused();
                }
                Err(e) => return Err(MoveError::new("send request", e)),
            }
        }
        match call::recv(socket, buffer.as_mut()) {
            Ok(count) => {
                let now = clock::monotonic_ns();
                tally.received(count, 1);
                let Some(begun_ns) = begun.pop_front() else {
                    continue;
                };
                tally.transactions(1);
                patience.learn(now - begun_ns);
                if let Some(latencies) = &mut latencies {
                    latencies.record(now - begun_ns);
                }
                left -= 1;
            }
            Err(Errno::EAGAIN) => {
                if tally.stopped() {
                    return Ok(End::Stopped);
                }
                let waited_ns = begun.front().map_or(0, |b| clock::monotonic_ns().saturating_sub(*b));
                if waited_ns >= patience.ns() {
                    tally.lost(begun.len() as u64);
                    begun.clear();
                    // What comes too late must not pass for the answer of the next request.
                    while call::recv_now(socket, buffer.as_mut()).is_ok() {
                        tally.stray();
                    }
                }
            }
            Err(e) => return Err(MoveError::new("receive response", e)),
        }
    }
    Ok(End::Done)
}

/// When to give a request up.
struct Patience {
    fixed_ns: Option<u64>,
    /// Usual round trip, once one is known; moves by an eighth of the difference each time.
    usual_ns: Option<u64>,
}

impl Patience {
    fn new(fixed: Option<Duration>) -> Self {
        Self { fixed_ns: fixed.map(|f| f.as_nanos() as u64), usual_ns: None }
    }

    fn learn(&mut self, ns: u64) {
        self.usual_ns = Some(self.usual_ns.map_or(ns, |usual| usual - usual / 8 + ns / 8));
    }

    fn ns(&self) -> u64 {
        let learnt = || self.usual_ns.map_or(FIRST_PATIENCE_NS, |usual| usual.saturating_mul(8));
        self.fixed_ns.unwrap_or_else(|| learnt().clamp(*PATIENCE_NS.start(), *PATIENCE_NS.end()))
    }
}

/// Answers each datagram, until `total` are answered, an empty one comes, or stopped.
///
/// # Errors
/// What the kernel said.
pub fn answer_datagrams(
    tally: &Tally,
    socket: &Socket,
    room: usize,
    response: &Buffer,
    total: Option<u64>,
) -> Result<End> {
    let mut buffer = AlignedBytes::zeroed(room.max(1));
    let mut left = total.unwrap_or(u64::MAX);
    while left > 0 {
        if tally.stopped() {
            return Ok(End::Stopped);
        }
        match call::recv(socket, buffer.as_mut()) {
            Ok(0) => return Ok(End::Closed),
            Ok(count) => tally.received(count, 1),
            Err(Errno::EAGAIN | Errno::ECONNREFUSED) => continue,
            Err(e) => return Err(MoveError::new("receive request", e)),
        }
        match call::send(socket, response.as_ref()) {
            Ok(count) => tally.sent(count, 1),
            Err(Errno::ENOBUFS | Errno::EAGAIN) => tally.refused(),
            Err(Errno::ECONNREFUSED) => {}
            Err(e) => return Err(MoveError::new("send response", e)),
        }
        tally.transactions(1);
        left -= 1;
    }
    Ok(End::Done)
}

fn errno(error: &io::Error) -> Errno {
    error.raw_os_error().map_or(Errno::EIO, Errno::from_raw)
}
