//! UDP datagrams in one direction: the sender's loop and the receiver's with its accounting.
//!
//! A datagram begins with 16 bytes, little-endian: a word of phase (2 bits), tag (14 bits of the trial's token) and
//! sequence number (48 bits, over the whole trial), and the sender's CLOCK_MONOTONIC in nanoseconds.

use std::io::IoSlice;
use std::sync::Arc;
use std::time::Duration;

use linerate_model::reading::UdpReading;
use linerate_model::units::Rate;
use linerate_model::workload::UDP_STREAM_HEADER;
use linerate_sys::mmsg::{RecvBatch, Wait};
use linerate_sys::{clock, sockopt};
use nix::errno::Errno;
use socket2::Socket;

use crate::call;
use crate::control::Phase;
use crate::error::Result;
use crate::lane::{LaneContext, Outcome};
use crate::loss::{Jitter, Tracker};
use crate::pace::Schedule;
use crate::pattern::{AlignedBytes, Checker, Pattern, Payload};

const HEADER: usize = UDP_STREAM_HEADER as usize;
const SEQUENCE_BITS: u32 = 48;
const SEQUENCE_MASK: u64 = (1 << SEQUENCE_BITS) - 1;

/// How long a receiver waits for a datagram before it looks at the stop flag.
const PATIENCE: Duration = Duration::from_millis(50);

/// How long it must be quiet after the stop until no more datagrams are expected.
const QUIET_NS: u64 = 250_000_000;

/// Room for the datagrams of one receive call, bytes; and how many at least and at most.
const BATCH_BYTES: usize = 1 << 20;
const BATCH_MIN: usize = 8;
const BATCH_MAX: usize = 64;

/// The sending end.
pub(crate) struct UdpSend {
    pub(crate) socket: Arc<Socket>,
    /// Payload bytes of a datagram, header included.
    pub(crate) size: usize,
    pub(crate) tag: u16,
    /// The trial's rate and number of streams.
    pub(crate) rate: Option<(Rate, u32)>,
    /// Bytes to send; none is until stopped.
    pub(crate) share: Option<u64>,
    pub(crate) pattern: Arc<Pattern>,
    pub(crate) verified: bool,
}

/// The receiving end.
pub(crate) struct UdpRecv {
    pub(crate) socket: Arc<Socket>,
    pub(crate) size: usize,
    pub(crate) tag: u16,
    /// Whether a count ends the trial.
    pub(crate) counted: bool,
    /// What the bytes behind the header must be, if they are checked.
    pub(crate) pattern: Option<Arc<Pattern>>,
}

/// A datagram's header.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Header {
    phase: Phase,
    sequence: u64,
    sent_ns: u64,
}

fn encode(header: Header, tag: u16) -> [u8; HEADER] {
    let marks = (header.phase as u64) << 62 | u64::from(tag & 0x3fff) << SEQUENCE_BITS;
    let mut bytes = [0; HEADER];
    bytes[..8].copy_from_slice(&(marks | header.sequence & SEQUENCE_MASK).to_le_bytes());
    bytes[8..].copy_from_slice(&header.sent_ns.to_le_bytes());
    bytes
}

fn decode(datagram: &[u8], tag: u16) -> Option<Header> {
    let word = u64::from_le_bytes(datagram.get(..8)?.try_into().ok()?);
    let sent_ns = u64::from_le_bytes(datagram.get(8..HEADER)?.try_into().ok()?);
    if (word >> SEQUENCE_BITS) as u16 & 0x3fff != tag {
        return None;
    }
    Some(Header { phase: Phase::from_number((word >> 62) as u8)?, sequence: word & SEQUENCE_MASK, sent_ns })
}

/// For fuzzers: reads any bytes as a datagram whose tag is whatever it says.
pub(crate) fn fuzz_decode(datagram: &[u8]) {
    let tag = datagram.get(6..8).map_or(0, |b| u16::from_le_bytes([b[0], b[1]]) & 0x3fff);
    if let Some(header) = decode(datagram, tag) {
        assert_eq!(encode(header, tag), datagram[..HEADER], "a header has one form");
        let _ = offset(header.sequence, datagram.len());
    }
}

/// Where the payload of datagram `sequence` begins in the stream's; a stranger's number may be any.
fn offset(sequence: u64, size: usize) -> u64 {
    sequence.wrapping_mul((size - HEADER) as u64)
}

impl UdpSend {
    pub(crate) fn run(self, context: &LaneContext) -> Result<Outcome> {
        let mut payload = Payload::new(self.pattern.clone(), context.stream, self.verified);
        let mut datagram = AlignedBytes::zeroed(self.size);
        datagram.as_mut()[HEADER..].copy_from_slice(payload.peek(self.size - HEADER));
        // Keeps a send into a link that takes nothing from outlasting the stop.
        self.socket
            .set_write_timeout(Some(PATIENCE))
            .map_err(|e| context.failed("set timeout", errno(&e)))?;
        let start_ns = context.ready()?;
        let mut schedule = self
            .rate
            .map(|(rate, streams)| Schedule::new(rate, self.size as u64, streams, context.stream, start_ns));
        let mut left = self.share.unwrap_or(u64::MAX);
        let mut sequence = 0;
        let mut reading = UdpReading::default();
        while left > 0 {
            if let Some(schedule) = &mut schedule
                && !schedule.take_turn(&context.control)
            {
                break;
            }
            let Some(phase) = context.control.phase() else { break };
            // The last datagram of a count carries what is left, but never less than its header.
            let length = self.size.min(usize::try_from(left).unwrap_or(usize::MAX)).max(HEADER);
            let header = encode(Header { phase, sequence, sent_ns: clock::monotonic_ns() }, self.tag);
            let outcome = if self.verified {
                payload.seek(offset(sequence, self.size));
                self.send_slices(&header, payload.peek(length - HEADER))
            } else {
                let bytes = datagram.as_mut();
                bytes[..HEADER].copy_from_slice(&header);
                call::send(&*self.socket, &bytes[..length])
            };
            match outcome {
                Ok(count) => {
                    context.counters.sent(count, 1);
                    reading.sent += u64::from(phase == Phase::Window);
                    sequence += 1;
                    left = left.saturating_sub(length as u64);
                }
                // Not lost: the kernel refused it, and the next one takes its number.
                Err(Errno::ENOBUFS | Errno::EAGAIN) => {
                    reading.send_refused += u64::from(phase == Phase::Window);
                }
                Err(e) => {
                    context.failed_unless_stopped("send", e)?;
                    break;
                }
            }
        }
        if left == 0 {
            context.control.note_done(clock::monotonic_ns());
        }
        Ok(Outcome { udp: Some(reading), ..Outcome::default() })
    }

    fn send_slices(&self, header: &[u8], payload: &[u8]) -> std::result::Result<usize, Errno> {
        self.socket.send_vectored(&[IoSlice::new(header), IoSlice::new(payload)]).map_err(|e| errno(&e))
    }
}

/// What a receiver keeps from one batch to the next.
struct Accounts {
    tag: u16,
    size: usize,
    tracker: Tracker,
    jitter: Jitter,
    drops: WindowDrops,
    checker: Option<Checker>,
}

/// The kernel's count of drops at the socket, around the window.
///
/// A datagram carries the count of the moment at which it was queued (net/core/sock.c, `sock_recv_drops`): so the last one
/// of the warm-up tells what was dropped before the window, and the first one after it what was dropped until its end.
#[derive(Debug, Default)]
struct WindowDrops {
    before: u32,
    after: Option<u32>,
}

impl WindowDrops {
    fn arrived(&mut self, phase: Phase, drops: u32) {
        match phase {
            Phase::Warmup => self.before = drops,
            Phase::Window => {}
            Phase::Tail => {
                self.after.get_or_insert(drops);
            }
        }
    }

    /// Drops in the window, where `now` is the count now.
    fn count(&self, now: u32) -> u64 {
        u64::from(self.after.unwrap_or(now).wrapping_sub(self.before))
    }
}

impl UdpRecv {
    pub(crate) fn run(self, context: &LaneContext) -> Result<Outcome> {
        let socket = &*self.socket;
        sockopt::set_report_drops(socket, true)?;
        sockopt::set_receive_timestamps(socket, true)?;
        socket.set_read_timeout(Some(PATIENCE)).map_err(|e| context.failed("set timeout", errno(&e)))?;
        // One byte more than a datagram shows one that is too long.
        let count = (BATCH_BYTES / self.size).clamp(BATCH_MIN, BATCH_MAX);
        let mut batch = RecvBatch::new(count, self.size + 1);
        let mut accounts = Accounts {
            tag: self.tag,
            size: self.size,
            tracker: Tracker::new(),
            jitter: Jitter::default(),
            drops: WindowDrops::default(),
            checker: self.pattern.clone().map(|p| Checker::new(p, context.stream)),
        };
        context.ready()?;
        let mut quiet_since_ns = None;
        let mut last_ns = None;
        while !context.control.aborted() {
            match batch.recv(socket, Wait::ForOne) {
                Ok(count) => {
                    quiet_since_ns = None;
                    // The window of a trial that a count ends is over with its last datagram: nobody else can tell when.
                    last_ns = self.counted.then(clock::monotonic_ns);
                    accounts.take(&batch, count, context);
                }
                Err(e) => match errno(&e) {
                    Errno::EAGAIN | Errno::EINTR | Errno::ECONNREFUSED => {
                        quiet_since_ns.get_or_insert_with(clock::monotonic_ns);
                    }
                    other => return Err(context.failed("receive", other)),
                },
            }
            if context.control.stopped() && accounts.complete(context, quiet_since_ns) {
                break;
            }
        }
        Ok(Outcome { last_received_ns: last_ns, ..accounts.outcome(sockopt::drops(socket)?) })
    }
}

impl Accounts {
    fn take(&mut self, batch: &RecvBatch, count: usize, context: &LaneContext) {
        let mut bytes = 0;
        let mut datagrams = 0;
        for index in 0..count {
            let datagram = batch.message(index);
            let control = batch.control(index);
            let header = decode(datagram, self.tag).filter(|_| datagram.len() <= self.size);
            let Some(header) = header else {
                context.counters.stray();
                continue;
            };
            bytes += datagram.len();
            datagrams += 1;
            self.tracker.arrived(header.sequence, header.phase);
            // Without a count in it, a datagram was queued before anything was dropped.
            self.drops.arrived(header.phase, control.drops.unwrap_or(0));
            if let Some(arrived_ns) = control.timestamp_ns {
                self.jitter.arrived(header.sent_ns, arrived_ns);
            }
            if let Some(checker) = &mut self.checker {
                checker.check_at(offset(header.sequence, self.size), &datagram[HEADER..]);
            }
        }
        context.counters.received(bytes, datagrams);
    }

    /// Whether all of the window has come, or nothing has for a while.
    fn complete(&self, context: &LaneContext, quiet_since_ns: Option<u64>) -> bool {
        let received = self.tracker.arrivals(Phase::Window).received;
        context.control.expected(context.stream).is_some_and(|e| received >= e)
            || quiet_since_ns.is_some_and(|since| clock::monotonic_ns().saturating_sub(since) >= QUIET_NS)
    }

    /// What was found; `drops` is the socket's count at the end.
    fn outcome(self, drops: u32) -> Outcome {
        let window = self.tracker.arrivals(Phase::Window);
        let reading = UdpReading {
            received: window.received,
            duplicates: window.duplicates,
            reordered: window.reordered,
            too_late: window.too_late,
            jitter_ns: self.jitter.ns(),
            socket_drops: self.drops.count(drops),
            ..UdpReading::default()
        };
        Outcome { udp: Some(reading), verify: self.checker.map(|c| c.found()), ..Outcome::default() }
    }
}

fn errno(error: &std::io::Error) -> Errno {
    error.raw_os_error().map_or(Errno::EIO, Errno::from_raw)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn headers_survive_the_wire() {
        for phase in [Phase::Warmup, Phase::Window, Phase::Tail] {
            let header = Header { phase, sequence: SEQUENCE_MASK - 1, sent_ns: u64::MAX };
            let bytes = encode(header, 0x2fff);
            assert_eq!(decode(&bytes, 0x2fff), Some(header));
            assert_eq!(decode(&bytes, 0x2ffe), None);
            assert_eq!(decode(&bytes[..15], 0x2fff), None);
        }
        assert_eq!(decode(&[0; 16], 0), None);
    }

    #[test]
    fn no_bytes_upset_the_decoder() {
        for length in 0..200 {
            for fill in 0..=255 {
                let bytes = vec![fill; length];
                let tag = u16::from_le_bytes([fill, fill]) & 0x3fff;
                assert_eq!(decode(&bytes, tag).is_some(), length >= HEADER && fill >> 6 != 0);
            }
        }
    }
}
