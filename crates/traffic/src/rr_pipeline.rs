//! TCP request/response with several requests outstanding, or with requests that are due at given times (open loop).
//!
//! One thread writes and reads without waiting for either, so that large requests and responses can't lock each other up.

use std::collections::VecDeque;
use std::net::Shutdown;
use std::os::fd::AsFd;
use std::sync::Arc;

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

/// Least room to read responses into.
const BATCH_BYTES: usize = 64 << 10;

/// Longest wait before the stop flag is looked at again.
const LONGEST_WAIT_NS: u64 = 50_000_000;

/// The asking end.
pub(crate) struct RrPipeline {
    pub(crate) socket: Arc<Socket>,
    pub(crate) exchange: Exchange,
    /// Requests that may be outstanding.
    pub(crate) in_flight: usize,
    /// The trial's rate and number of streams; none is a closed loop.
    pub(crate) rate: Option<(Rate, u32)>,
    /// Transactions to do; none is until stopped.
    pub(crate) share: Option<u64>,
}

/// A request that is out.
#[derive(Debug, Clone, Copy)]
struct Begun {
    /// When it was due (open loop) or sent, nanoseconds.
    at_ns: u64,
    /// Whether it was sent within the window.
    in_window: bool,
}

struct Pipeline<'a> {
    context: &'a LaneContext,
    socket: &'a Socket,
    request: usize,
    response: usize,
    in_flight: usize,
    schedule: Option<Schedule>,
    /// When each outstanding request began (was due or was sent), oldest first.
    begun: VecDeque<Begun>,
    /// Requests still to begin.
    left: u64,
    /// Responses still to come until all is done.
    missing: u64,
    /// Bytes of the newest request that the kernel has not taken.
    unsent: usize,
    /// Bytes of the oldest response that have come.
    partial: usize,
    payload: Payload,
    checker: Option<Checker>,
    latency: LatencyRecorder,
}

impl RrPipeline {
    pub(crate) fn run(self, context: &LaneContext) -> Result<Outcome> {
        let mut buffer = AlignedBytes::zeroed(self.exchange.response.max(BATCH_BYTES));
        let mut pipeline = Pipeline {
            context,
            socket: &self.socket,
            request: self.exchange.request,
            response: self.exchange.response,
            in_flight: self.in_flight,
            schedule: None,
            begun: VecDeque::with_capacity(self.in_flight),
            left: self.share.unwrap_or(u64::MAX),
            missing: self.share.unwrap_or(u64::MAX),
            unsent: 0,
            partial: 0,
            payload: self.exchange.request_payload(context.stream),
            checker: self.exchange.response_checker(context.stream),
            latency: LatencyRecorder::new(),
        };
        let start_ns = context.ready()?;
        pipeline.schedule =
            self.rate.map(|(rate, streams)| Schedule::new(rate, 1, streams, context.stream, start_ns));
        pipeline.run(buffer.as_mut())?;
        pipeline.record_unanswered(clock::monotonic_ns());
        // Tells the responder that no more will come. The stop may have done so before.
        let _already = self.socket.shutdown(Shutdown::Write);
        Ok(Outcome {
            latency: Some(pipeline.latency.into_data()),
            verify: pipeline.checker.map(|c| c.found()),
            ..Outcome::default()
        })
    }
}

impl Pipeline<'_> {
    fn run(&mut self, buffer: &mut [u8]) -> Result<()> {
        let mut set = PollSet::new();
        let entry = set.add(self.socket.as_fd(), Readiness::READ);
        let mut now = clock::monotonic_ns();
        loop {
            let stopped = self.context.control.stopped();
            if self.missing == 0 || self.context.control.aborted() || (stopped && self.begun.is_empty()) {
                return Ok(());
            }
            if !stopped && !self.send_due(now)? {
                return Ok(());
            }
            // A closed loop that has sent all it may can only wait for input: no need for ppoll.
            let waits_for_input = self.unsent == 0 && (self.schedule.is_none() || self.left == 0);
            if !waits_for_input || stopped {
                let interest = if self.unsent > 0 && !stopped { Readiness::BOTH } else { Readiness::READ };
                set.set(entry, interest);
                if let Err(e) = set.wait(Some(self.wait_ns(now))) {
                    let cause = e.raw_os_error().map_or(Errno::EIO, Errno::from_raw);
                    return Err(self.context.failed("wait", cause));
                }
                if !set.ready(entry).readable {
                    now = clock::monotonic_ns();
                    continue;
                }
            }
            match call::recv(self.socket, buffer) {
                Ok(0) => return self.context.closed(self.context.counters.read().received_bytes),
                Ok(count) => {
                    now = clock::monotonic_ns();
                    self.take(&buffer[..count], now);
                }
                Err(e) => return self.context.failed_unless_stopped("receive response", e),
            }
        }
    }

    /// Begins every request that may go now, as far as the socket has room. False once stopped.
    fn send_due(&mut self, now: u64) -> Result<bool> {
        loop {
            if self.unsent == 0 {
                let Some(begun) = self.next_begin(now) else { return Ok(true) };
                self.begun.push_back(Begun { at_ns: begun, in_window: self.context.control.in_window() });
                self.left -= 1;
                self.unsent = self.request;
            }
            let bytes = self.payload.peek(self.unsent);
            match call::send_now(self.socket, bytes) {
                Ok(count) => {
                    self.payload.advance(count);
                    self.unsent -= count;
                    self.context.counters.sent(count, u64::from(self.unsent == 0));
                }
                Err(Errno::EAGAIN) => return Ok(true),
                Err(e) => {
                    self.context.failed_unless_stopped("send request", e)?;
                    return Ok(false);
                }
            }
        }
    }

    /// Requests of an open loop that were due in the window and have no answer yet took at least so long.
    fn record_unanswered(&mut self, now: u64) {
        if self.schedule.is_none() {
            return;
        }
        for begun in self.begun.drain(..).filter(|begun| begun.in_window) {
            self.latency.record(now.saturating_sub(begun.at_ns));
        }
    }

    /// When the next request counts as begun, if it may begin now.
    fn next_begin(&mut self, now: u64) -> Option<u64> {
        if self.left == 0 || self.begun.len() >= self.in_flight {
            return None;
        }
        let Some(schedule) = &mut self.schedule else { return Some(now) };
        let due = schedule.due_ns();
        if due > now {
            return None;
        }
        schedule.advance();
        Some(due)
    }

    /// How long to wait for the socket at most.
    fn wait_ns(&self, now: u64) -> u64 {
        match &self.schedule {
            Some(schedule) if self.unsent == 0 && self.left > 0 && self.begun.len() < self.in_flight => {
                schedule.due_ns().saturating_sub(now).min(LONGEST_WAIT_NS)
            }
            _ => LONGEST_WAIT_NS,
        }
    }

    /// Takes bytes of responses that came at `now`.
    fn take(&mut self, bytes: &[u8], now: u64) {
        if let Some(checker) = &mut self.checker {
            checker.check(bytes);
        }
        self.partial += bytes.len();
        let whole = self.partial / self.response;
        self.partial %= self.response;
        self.context.counters.received(bytes.len(), whole as u64);
        self.context.counters.transactions(whole as u64);
        let ends_in_window = self.context.control.in_window();
        for begun in self.begun.drain(..whole.min(self.begun.len())) {
            // Of a closed loop those count that end in the window; of an open one those that were due in it, for else
            // a standstill at its end would leave no trace.
            if if self.schedule.is_some() { begun.in_window } else { ends_in_window } {
                self.latency.record(now.saturating_sub(begun.at_ns));
            }
        }
        if whole > 0 {
            self.missing = self.missing.saturating_sub(whole as u64);
            if self.missing == 0 {
                self.context.control.note_done(now);
            }
        }
    }
}
