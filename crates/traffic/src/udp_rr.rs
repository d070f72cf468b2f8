//! UDP request/response: several requests outstanding, lost ones noticed by time and replaced.
//!
//! A message begins with its number, little-endian, cut to the smaller of request, response and 8 bytes; the
//! responder returns it. Each place for an outstanding request has numbers of its own, `generation * places + place`, so
//! that an answer tells its place even when cut.

use std::os::fd::AsFd;
use std::sync::Arc;
use std::time::Duration;

use linerate_model::reading::UdpReading;
use linerate_model::units::Rate;
use linerate_sys::clock;
use linerate_sys::poll::{PollSet, Readiness};
use nix::errno::Errno;
use socket2::Socket;

use crate::call;
use crate::error::Result;
use crate::lane::{LaneContext, Outcome};
use crate::latency::LatencyRecorder;
use crate::pace::Schedule;
use crate::pattern::{AlignedBytes, Checker, Payload};
use crate::tcp_rr::Exchange;

/// Longest wait before the stop flag is looked at again.
const PATIENCE_NS: u64 = 50_000_000;

/// How long it must be quiet after the stop until a responder leaves.
const QUIET_NS: u64 = 250_000_000;

/// The asking end.
pub(crate) struct UdpRrAsk {
    pub(crate) socket: Arc<Socket>,
    pub(crate) exchange: Exchange,
    /// Requests that may be outstanding.
    pub(crate) in_flight: usize,
    /// The trial's rate and number of streams; none is a closed loop.
    pub(crate) rate: Option<(Rate, u32)>,
    /// Transactions to do; none is until stopped.
    pub(crate) share: Option<u64>,
    /// After this long a request counts as lost.
    pub(crate) timeout_ns: u64,
}

/// The answering end.
pub(crate) struct UdpRrAnswer {
    pub(crate) socket: Arc<Socket>,
    pub(crate) exchange: Exchange,
}

/// How many bytes of a message carry its number.
fn number_width(exchange: &Exchange) -> usize {
    exchange.request.min(exchange.response).min(8)
}

fn number_mask(width: usize) -> u64 {
    u64::MAX >> (64 - 8 * width as u32)
}

fn read_number(message: &[u8], width: usize) -> u64 {
    let mut bytes = [0; 8];
    bytes[..width].copy_from_slice(&message[..width]);
    u64::from_le_bytes(bytes)
}

/// A place for one outstanding request.
#[derive(Debug, Clone, Copy, Default)]
struct Place {
    number: u64,
    begun_ns: u64,
    sent_ns: u64,
    outstanding: bool,
    in_window: bool,
}

/// The requests that are outstanding, and which answers belong to them.
#[derive(Debug)]
struct Outstanding {
    places: Vec<Place>,
    free: Vec<usize>,
    width: usize,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Match {
    /// The answer of a request that began then.
    Answer { begun_ns: u64, in_window: bool },
    /// Answered before.
    Duplicate,
    /// Given up before, or never asked.
    Late,
}

impl Outstanding {
    /// Room for `limit` requests.
    fn new(limit: usize, width: usize) -> Self {
        // A power of two keeps a cut number's place: the cut takes multiples of the count of places away.
        let count = limit.next_power_of_two();
        let places = (0..count).map(|i| Place { number: i as u64, ..Place::default() }).collect();
        Self { places, free: (0..limit).rev().collect(), width }
    }

    fn count_free(&self) -> usize {
        self.free.len()
    }

    /// Takes a place; gives its number, cut as it goes over the wire.
    fn begin(&mut self, begun_ns: u64, sent_ns: u64, in_window: bool) -> Option<(usize, u64)> {
        let index = self.free.pop()?;
        let stride = self.places.len() as u64;
        let place = &mut self.places[index];
        *place = Place {
            number: place.number.wrapping_add(stride),
            begun_ns,
            sent_ns,
            outstanding: true,
            in_window,
        };
        Some((index, place.number & number_mask(self.width)))
    }

    /// Gives a place back whose request did not go out.
    fn cancel(&mut self, index: usize) {
        self.places[index].outstanding = false;
        self.free.push(index);
    }

    fn answered(&mut self, number: u64) -> Match {
        let index = number as usize % self.places.len();
        let place = &mut self.places[index];
        if place.number & number_mask(self.width) != number {
            return Match::Late;
        }
        if !place.outstanding {
            return if place.begun_ns == 0 { Match::Late } else { Match::Duplicate };
        }
        place.outstanding = false;
        self.free.push(index);
        Match::Answer { begun_ns: place.begun_ns, in_window: place.in_window }
    }

    /// Gives up those sent before `limit_ns`; tells of each whether it was sent in the window.
    fn expire(&mut self, limit_ns: u64, mut lost: impl FnMut(bool)) {
        for (index, place) in self.places.iter_mut().enumerate() {
            if place.outstanding && place.sent_ns <= limit_ns {
                lost(place.in_window);
                // A later answer is late, not a duplicate.
                *place = Place { number: place.number, ..Place::default() };
                self.free.push(index);
            }
        }
    }
}

struct Asker<'a> {
    job: &'a UdpRrAsk,
    context: &'a LaneContext,
    outstanding: Outstanding,
    schedule: Option<Schedule>,
    /// Transactions that may still begin.
    left: u64,
    /// Transactions still to complete until all is done.
    missing: u64,
    next_scan_ns: u64,
    message: AlignedBytes,
    payload: Payload,
    checker: Option<Checker>,
    latency: LatencyRecorder,
    reading: UdpReading,
}

impl UdpRrAsk {
    pub(crate) fn run(self, context: &LaneContext) -> Result<Outcome> {
        let width = number_width(&self.exchange);
        let payload = self.exchange.request_payload(context.stream);
        let mut message = AlignedBytes::zeroed(self.exchange.request);
        message.as_mut().copy_from_slice(payload.peek(self.exchange.request));
        let mut buffer = AlignedBytes::zeroed(self.exchange.response + 1);
        set_patience(context, &self.socket, self.timeout_ns.min(PATIENCE_NS))?;
        let start_ns = context.ready()?;
        let mut asker = Asker {
            job: &self,
            context,
            outstanding: Outstanding::new(self.in_flight, width),
            schedule: self.rate.map(|(rate, n)| Schedule::new(rate, 1, n, context.stream, start_ns)),
            left: self.share.unwrap_or(u64::MAX),
            missing: self.share.unwrap_or(u64::MAX),
            next_scan_ns: start_ns,
            message,
            payload,
            checker: self.exchange.response_checker(context.stream),
            latency: LatencyRecorder::new(),
            reading: UdpReading::default(),
        };
        asker.run(buffer.as_mut())?;
        // Whatever is still out when patience ends has been lost.
        asker.expire(u64::MAX);
        Ok(Outcome {
            udp: Some(asker.reading),
            latency: Some(asker.latency.into_data()),
            verify: asker.checker.map(|c| c.found()),
            ..Outcome::default()
        })
    }
}

impl Asker<'_> {
    fn run(&mut self, buffer: &mut [u8]) -> Result<()> {
        let mut set = PollSet::new();
        set.add(self.job.socket.as_fd(), Readiness::READ);
        let mut now = clock::monotonic_ns();
        loop {
            let stopped = self.context.control.stopped();
            let idle = self.outstanding.count_free() == self.job.in_flight;
            if self.missing == 0 || self.context.control.aborted() || (stopped && idle) {
                return Ok(());
            }
            if !stopped && !self.send_due(now)? {
                return Ok(());
            }
            if let Some(wait_ns) = self.wait_ns(now, stopped) {
                set.wait(Some(wait_ns)).map_err(|e| self.context.failed("wait", errno(&e)))?;
            }
            let received = if self.schedule.is_some() {
                call::recv_now(&*self.job.socket, buffer)
            } else {
                call::recv(&*self.job.socket, buffer)
            };
            now = clock::monotonic_ns();
            match received {
                Ok(count) => self.take(&buffer[..count], now),
                Err(Errno::EAGAIN) => {}
                Err(e) => return self.context.failed_unless_stopped("receive response", e),
            }
            if now >= self.next_scan_ns {
                self.expire(now);
            }
        }
    }

    /// Sends what may go now. False once stopped.
    fn send_due(&mut self, now: u64) -> Result<bool> {
        while self.left > 0 && self.outstanding.count_free() > 0 {
            let begun = match &self.schedule {
                Some(schedule) if schedule.due_ns() > now => break,
                Some(schedule) => schedule.due_ns(),
                None => now,
            };
            let in_window = self.context.control.in_window();
            let Some((place, number)) = self.outstanding.begin(begun, now, in_window) else { break };
            match self.send(number) {
                Ok(count) => {
                    self.context.counters.sent(count, 1);
                    self.reading.sent += u64::from(in_window);
                    self.left -= 1;
                    if let Some(schedule) = &mut self.schedule {
                        schedule.advance();
                    }
                }
                Err(Errno::ENOBUFS | Errno::EAGAIN) => {
                    self.reading.send_refused += u64::from(in_window);
                    self.outstanding.cancel(place);
                    break;
                }
                Err(e) => return self.context.failed_unless_stopped("send request", e).map(|()| false),
            }
        }
        Ok(true)
    }

    fn send(&mut self, number: u64) -> std::result::Result<usize, Errno> {
        let width = self.outstanding.width;
        let message = self.message.as_mut();
        message[..width].copy_from_slice(&number.to_le_bytes()[..width]);
        if self.checker.is_some() {
            let rest = message.len() - width;
            self.payload.seek(number.wrapping_mul(rest as u64));
            message[width..].copy_from_slice(self.payload.peek(rest));
        }
        call::send(&*self.job.socket, message)
    }

    /// How long to wait before the receive; a closed loop waits within it.
    fn wait_ns(&self, now: u64, stopped: bool) -> Option<u64> {
        let schedule = self.schedule.as_ref()?;
        if !stopped && self.left > 0 && self.outstanding.count_free() > 0 {
            return Some(schedule.due_ns().saturating_sub(now).min(PATIENCE_NS));
        }
        Some(PATIENCE_NS.min(self.job.timeout_ns))
    }

    fn take(&mut self, message: &[u8], now: u64) {
        let width = self.outstanding.width;
        if message.len() != self.job.exchange.response {
            self.context.counters.stray();
            return;
        }
        let number = read_number(message, width);
        match self.outstanding.answered(number) {
            Match::Duplicate => self.reading.duplicates += 1,
            Match::Late => self.reading.too_late += 1,
            Match::Answer { begun_ns, in_window } => {
                self.context.counters.received(message.len(), 1);
                self.context.counters.transactions(1);
                self.reading.received += u64::from(in_window);
                // Of an open loop those count that were due in the window, or a standstill at its end would leave no trace.
                if if self.schedule.is_some() { in_window } else { self.context.control.in_window() } {
                    self.latency.record(now.saturating_sub(begun_ns));
                }
                if let Some(checker) = &mut self.checker {
                    let rest = (message.len() - width) as u64;
                    checker.check_at(number.wrapping_mul(rest), &message[width..]);
                }
                self.complete(now);
            }
        }
    }

    fn complete(&mut self, now: u64) {
        self.missing = self.missing.saturating_sub(1);
        if self.missing == 0 {
            self.context.control.note_done(now);
        }
    }

    /// Gives up the requests that are out for too long, and makes room for as many more.
    fn expire(&mut self, now: u64) {
        let Self { outstanding, reading, left, job, .. } = self;
        outstanding.expire(now.saturating_sub(job.timeout_ns), |in_window| {
            reading.requests_lost += u64::from(in_window);
            *left = left.saturating_add(1);
        });
        self.next_scan_ns = now.saturating_add((self.job.timeout_ns / 4).clamp(1, PATIENCE_NS));
    }
}

impl UdpRrAnswer {
    pub(crate) fn run(self, context: &LaneContext) -> Result<Outcome> {
        let Exchange { request, response, .. } = self.exchange;
        let width = number_width(&self.exchange);
        let mut payload = self.exchange.response_payload(context.stream);
        let mut checker = self.exchange.request_checker(context.stream);
        let mut buffer = AlignedBytes::zeroed(request + 1);
        let buffer = buffer.as_mut();
        let mut message = AlignedBytes::zeroed(response);
        let message = message.as_mut();
        message.copy_from_slice(payload.peek(response));
        set_patience(context, &self.socket, PATIENCE_NS)?;
        context.ready()?;
        let mut quiet_since_ns = None;
        let mut reading = UdpReading::default();
        while !context.control.aborted() {
            let count = match call::recv(&*self.socket, buffer) {
                Ok(count) => {
                    quiet_since_ns = None;
                    count
                }
                // The client's socket is gone: it may have stopped, or died, which its own node tells.
                Err(Errno::EAGAIN | Errno::ECONNREFUSED) => {
                    let now = clock::monotonic_ns();
                    let since = *quiet_since_ns.get_or_insert(now);
                    if context.control.stopped() && now - since >= QUIET_NS {
                        break;
                    }
                    continue;
                }
                Err(e) => return Err(context.failed("receive request", e)),
            };
            if count != request {
                context.counters.stray();
                continue;
            }
            context.counters.received(count, 1);
            message[..width].copy_from_slice(&buffer[..width]);
            if let Some(checker) = &mut checker {
                let number = read_number(buffer, width);
                checker.check_at(number.wrapping_mul((request - width) as u64), &buffer[width..request]);
                payload.seek(number.wrapping_mul((response - width) as u64));
                message[width..].copy_from_slice(payload.peek(response - width));
            }
            match call::send(&*self.socket, message) {
                Ok(count) => context.counters.sent(count, 1),
                Err(Errno::ENOBUFS | Errno::EAGAIN) => reading.send_refused += 1,
                Err(Errno::ECONNREFUSED) => {}
                Err(e) => context.failed_unless_stopped("send response", e)?,
            }
        }
        Ok(Outcome { udp: Some(reading), verify: checker.map(|c| c.found()), ..Outcome::default() })
    }
}

/// Bounds how long a call on the socket waits, so that the thread looks at the stop flag in between.
fn set_patience(context: &LaneContext, socket: &Socket, ns: u64) -> Result<()> {
    let patience = Duration::from_nanos(ns.max(1_000_000));
    let outcome =
        socket.set_read_timeout(Some(patience)).and_then(|()| socket.set_write_timeout(Some(patience)));
    outcome.map_err(|e| context.failed("set timeout", errno(&e)))
}

fn errno(error: &std::io::Error) -> Errno {
    error.raw_os_error().map_or(Errno::EIO, Errno::from_raw)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn answers_are_matched_once() {
        let mut outstanding = Outstanding::new(3, 8);
        let (_, first) = outstanding.begin(10, 11, true).unwrap();
        let (_, second) = outstanding.begin(20, 21, false).unwrap();
        assert_eq!(outstanding.answered(second), Match::Answer { begun_ns: 20, in_window: false });
        assert_eq!(outstanding.answered(first), Match::Answer { begun_ns: 10, in_window: true });
        assert_eq!(outstanding.answered(first), Match::Duplicate);
        assert_eq!(outstanding.answered(999), Match::Late);
        assert_eq!(outstanding.count_free(), 3);
    }

    #[test]
    fn one_byte_tells_an_answer_from_the_one_before() {
        let mut outstanding = Outstanding::new(100, 1);
        let all: Vec<u64> = (0..100).map(|i| outstanding.begin(i + 1, i + 1, true).unwrap().1).collect();
        assert!(outstanding.begin(1, 1, true).is_none());
        assert!(all.iter().all(|&n| n < 256));
        assert!(matches!(outstanding.answered(all[7]), Match::Answer { begun_ns: 8, .. }));
        let (_, again) = outstanding.begin(200, 200, true).unwrap();
        assert_ne!(again, all[7]);
        assert_eq!(outstanding.answered(all[7]), Match::Late);
        assert!(matches!(outstanding.answered(again), Match::Answer { begun_ns: 200, .. }));
    }

    #[test]
    fn what_is_out_too_long_is_lost_and_its_answer_late() {
        let mut outstanding = Outstanding::new(2, 8);
        let (_, old) = outstanding.begin(5, 5, true).unwrap();
        let (_, young) = outstanding.begin(50, 50, false).unwrap();
        let mut lost = Vec::new();
        outstanding.expire(20, |in_window| lost.push(in_window));
        assert_eq!(lost, [true]);
        assert_eq!(outstanding.count_free(), 1);
        assert_eq!(outstanding.answered(old), Match::Late);
        assert!(matches!(outstanding.answered(young), Match::Answer { .. }));
    }

    #[test]
    fn numbers_are_cut_to_their_width() {
        assert_eq!(number_mask(1), 0xff);
        assert_eq!(number_mask(8), u64::MAX);
        assert_eq!(read_number(&[1, 2, 3], 2), 0x0201);
    }
}
