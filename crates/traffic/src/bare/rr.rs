//! Request and response over one TCP connection.

use std::collections::VecDeque;
use std::os::fd::AsFd;

use linerate_sys::clock;
use linerate_sys::poll::{PollSet, Readiness};
use nix::errno::Errno;
use socket2::Socket;

use super::{Buffer, End, Latencies, MoveError, Pace, Pacer, Result, TICK, Tally, recv_whole, send_whole};
use crate::call;
use crate::pattern::AlignedBytes;

/// Least room to read into when several messages may be waiting.
const BATCH_BYTES: usize = 64 << 10;

/// How the asking end asks.
#[derive(Debug, Clone, Default)]
pub struct AskPlan {
    /// Response bytes, at least 1. The request's are its buffer's.
    pub response: usize,
    /// Requests that may be outstanding (0 is 1).
    pub in_flight: usize,
    /// Transactions to do; none is until stopped.
    pub total: Option<u64>,
    /// When requests may go.
    pub pace: Option<Pace>,
}

/// Asks, waits for the answer, asks again; or keeps `in_flight` requests outstanding. `latencies` get the time from
/// a request to its response.
///
/// # Errors
/// What the kernel said.
pub fn ask(
    tally: &Tally,
    socket: &Socket,
    request: &Buffer,
    plan: &AskPlan,
    latencies: Option<&mut Latencies>,
) -> Result<End> {
    if plan.in_flight > 1 {
        Pipeline::new(tally, socket, request.as_ref(), plan, latencies).run(plan.response.max(1))
    } else {
        ask_one_by_one(tally, socket, request.as_ref(), plan, latencies)
    }
}

fn ask_one_by_one(
    tally: &Tally,
    socket: &Socket,
    request: &[u8],
    plan: &AskPlan,
    mut latencies: Option<&mut Latencies>,
) -> Result<End> {
    let mut response = AlignedBytes::zeroed(plan.response.max(1));
    let mut pacer = plan.pace.map(|pace| Pacer::new(pace, request.len(), clock::monotonic_ns()));
    let mut left = plan.total.unwrap_or(u64::MAX);
    while left > 0 {
        if tally.stopped() || pacer.as_mut().is_some_and(|p| !p.take_turn(tally)) {
            return Ok(End::Stopped);
        }
        let begun_ns = latencies.as_ref().map(|_| clock::monotonic_ns());
        if !send_whole(tally, socket, request)? {
            return Ok(End::Stopped);
        }
        match recv_whole(tally, socket, response.as_mut())? {
            End::Done => tally.transactions(1),
            other => return Ok(other),
        }
        if let (Some(latencies), Some(begun_ns)) = (&mut latencies, begun_ns) {
            latencies.record(clock::monotonic_ns().saturating_sub(begun_ns));
        }
        left -= 1;
    }
    Ok(End::Done)
}

/// Several outstanding: writes and reads without waiting for either, so that large messages can't lock each other up.
struct Pipeline<'a> {
    tally: &'a Tally,
    socket: &'a Socket,
    request: &'a [u8],
    in_flight: usize,
    pacer: Option<Pacer>,
    latencies: Option<&'a mut Latencies>,
    /// When each outstanding request began, oldest first.
    begun: VecDeque<u64>,
    /// Requests still to begin.
    left: u64,
    /// Responses still to come.
    missing: u64,
    /// Bytes of the newest request that the kernel has not taken.
    unsent: usize,
    /// Bytes of the oldest response that have come.
    partial: usize,
}

impl<'a> Pipeline<'a> {
    fn new(
        tally: &'a Tally,
        socket: &'a Socket,
        request: &'a [u8],
        plan: &AskPlan,
        latencies: Option<&'a mut Latencies>,
    ) -> Self {
        let total = plan.total.unwrap_or(u64::MAX);
        Self {
            tally,
            socket,
            request,
            in_flight: plan.in_flight,
            pacer: plan.pace.map(|pace| Pacer::new(pace, request.len(), clock::monotonic_ns())),
            latencies,
            begun: VecDeque::new(),
            left: total,
            missing: total,
            unsent: 0,
            partial: 0,
        }
    }

    fn run(&mut self, response: usize) -> Result<End> {
        let mut buffer = AlignedBytes::zeroed(response.max(BATCH_BYTES));
        let buffer = buffer.as_mut();
        let mut set = PollSet::new();
        let entry = set.add(self.socket.as_fd(), Readiness::READ);
        while self.missing > 0 {
            if self.tally.stopped() {
                return Ok(End::Stopped);
            }
            let due_ns = self.send_due()?;
            if self.unsent > 0 || due_ns.is_some() {
                set.set(entry, if self.unsent > 0 { Readiness::BOTH } else { Readiness::READ });
                let tick_ns = TICK.as_nanos() as u64;
                let wait_ns =
                    due_ns.map_or(tick_ns, |due| due.saturating_sub(clock::monotonic_ns()).min(tick_ns));
                set.wait(Some(wait_ns)).map_err(|e| MoveError::new("wait", e))?;
                if !set.ready(entry).readable {
                    continue;
                }
            }
            match call::recv(self.socket, buffer) {
                Ok(0) => return Ok(End::Closed),
                Ok(count) => self.take(count, response),
                Err(Errno::EAGAIN) => {}
                Err(e) => return Err(MoveError::new("receive response", e)),
            }
        }
        Ok(End::Done)
    }

    /// Begins every request that may go now, as far as the socket has room. When the next is due, if only time is missing.
    fn send_due(&mut self) -> Result<Option<u64>> {
        loop {
            if self.unsent == 0 {
                if self.left == 0 || self.begun.len() >= self.in_flight {
                    return Ok(None);
                }
                let now = clock::monotonic_ns();
                if let Some(due) = self.pacer.as_mut().and_then(|p| p.due_after(now)) {
                    return Ok(Some(due));
                }
                self.begun.push_back(now);
                self.left -= 1;
                self.unsent = self.request.len();
            }
            match call::send_now(self.socket, &self.request[self.request.len() - self.unsent..]) {
                Ok(count) => {
                    self.unsent -= count;
                    self.tally.sent(count, u64::from(self.unsent == 0));
                }
                Err(Errno::EAGAIN) => return Ok(None),
                Err(e) => return Err(MoveError::new("send request", e)),
            }
        }
    }

    fn take(&mut self, count: usize, response: usize) {
        self.partial += count;
        let whole = self.partial / response;
        self.partial %= response;
        self.tally.received(count, whole as u64);
        self.tally.transactions(whole as u64);
        let now = clock::monotonic_ns();
        for begun in self.begun.drain(..whole.min(self.begun.len())) {
            if let Some(latencies) = &mut self.latencies {
                latencies.record(now.saturating_sub(begun));
            }
        }
        self.missing = self.missing.saturating_sub(whole as u64);
    }
}

/// Answers each request of `request` bytes as soon as it is whole, until `total` are answered, the other end closes or
/// stopped. Requests that came beyond `total` are left unanswered.
///
/// # Errors
/// What the kernel said.
pub fn answer(
    tally: &Tally,
    socket: &Socket,
    request: usize,
    response: &Buffer,
    total: Option<u64>,
) -> Result<End> {
    let request = request.max(1);
    let mut buffer = AlignedBytes::zeroed(request.max(BATCH_BYTES));
    let buffer = buffer.as_mut();
    let mut pending = 0;
    let mut left = total.unwrap_or(u64::MAX);
    while left > 0 {
        if tally.stopped() {
            return Ok(End::Stopped);
        }
        let count = match call::recv(socket, buffer) {
            Ok(0) => return Ok(End::Closed),
            Ok(count) => count,
            Err(Errno::EAGAIN) => continue,
            Err(e) => return Err(MoveError::new("receive request", e)),
        };
        pending += count;
        let whole = ((pending / request) as u64).min(left);
        pending %= request;
        tally.received(count, whole);
        for _ in 0..whole {
            if !send_whole(tally, socket, response.as_ref())? {
                return Ok(End::Stopped);
            }
            tally.transactions(1);
        }
        left -= whole;
    }
    Ok(End::Done)
}
