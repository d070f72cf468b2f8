//! TCP request/response with one request outstanding, and the answering end of every TCP request/response.

use std::net::Shutdown;
use std::sync::Arc;

use linerate_sys::clock;
use nix::errno::Errno;
use socket2::Socket;

use crate::call;
use crate::error::Result;
use crate::lane::{LaneContext, Outcome};
use crate::latency::LatencyRecorder;
use crate::pattern::{AlignedBytes, Checker, Pattern, Payload};

/// Least room that a responder reads into when several requests may be waiting.
const BATCH_BYTES: usize = 64 << 10;

/// Sizes and payload of both directions.
#[derive(Clone)]
pub(crate) struct Exchange {
    /// Request bytes.
    pub(crate) request: usize,
    /// Response bytes.
    pub(crate) response: usize,
    /// Request payload.
    pub(crate) requests: Arc<Pattern>,
    /// Response payload.
    pub(crate) responses: Arc<Pattern>,
    /// Whether each receiver checks.
    pub(crate) verified: bool,
}

impl Exchange {
    pub(crate) fn request_payload(&self, stream: u32) -> Payload {
        Payload::new(self.requests.clone(), stream, self.verified)
    }

    pub(crate) fn response_payload(&self, stream: u32) -> Payload {
        Payload::new(self.responses.clone(), stream, self.verified)
    }

    pub(crate) fn request_checker(&self, stream: u32) -> Option<Checker> {
        self.verified.then(|| Checker::new(self.requests.clone(), stream))
    }

    pub(crate) fn response_checker(&self, stream: u32) -> Option<Checker> {
        self.verified.then(|| Checker::new(self.responses.clone(), stream))
    }
}

/// Asks, waits for the answer, asks again.
pub(crate) struct RrAsk {
    pub(crate) socket: Arc<Socket>,
    pub(crate) exchange: Exchange,
    /// Transactions to do; none is until stopped.
    pub(crate) share: Option<u64>,
}

/// Answers each request as soon as it is whole.
pub(crate) struct RrAnswer {
    pub(crate) socket: Arc<Socket>,
    pub(crate) exchange: Exchange,
    /// Transactions that will come; none is until the end of the connection.
    pub(crate) share: Option<u64>,
    /// Whether several requests may wait at once.
    pub(crate) batched: bool,
}

impl RrAsk {
    pub(crate) fn run(self, context: &LaneContext) -> Result<Outcome> {
        let Exchange { request, response, .. } = self.exchange;
        let mut payload = self.exchange.request_payload(context.stream);
        let mut checker = self.exchange.response_checker(context.stream);
        let mut latency = LatencyRecorder::new();
        let mut buffer = AlignedBytes::zeroed(response);
        let buffer = buffer.as_mut();
        context.ready()?;
        let mut left = self.share.unwrap_or(u64::MAX);
        let mut last = clock::monotonic_ns();
        while left > 0 && !context.control.stopped() {
            if let Err(e) = send_whole(&self.socket, payload.peek(request)) {
                context.failed_unless_stopped("send request", e)?;
                break;
            }
            context.counters.sent(request, 1);
            match recv_whole(&self.socket, buffer) {
                Ok(true) => {}
                Ok(false) => {
                    context.closed(context.counters.read().received_bytes)?;
                    break;
                }
                Err(e) => {
                    context.failed_unless_stopped("receive response", e)?;
                    break;
                }
            }
            // The end of one transaction is the beginning of the next: one clock read serves both.
            let now = clock::monotonic_ns();
            context.counters.received(response, 1);
            context.counters.transactions(1);
            if context.control.in_window() {
                latency.record(now - last);
            }
            if let Some(checker) = &mut checker {
                checker.check(buffer);
                payload.advance(request);
            }
            last = now;
            left -= 1;
            if left == 0 {
                context.control.note_done(now);
            }
        }
        // Tells the responder that no more will come. The stop may have done so before.
        let _already = self.socket.shutdown(Shutdown::Write);
        Ok(Outcome {
            latency: Some(latency.into_data()),
            verify: checker.map(|c| c.found()),
            ..Outcome::default()
        })
    }
}

impl RrAnswer {
    pub(crate) fn run(self, context: &LaneContext) -> Result<Outcome> {
        let request = self.exchange.request;
        let mut payload = self.exchange.response_payload(context.stream);
        let mut checker = self.exchange.request_checker(context.stream);
        let room = if self.batched { request.max(BATCH_BYTES) } else { request };
        let mut buffer = AlignedBytes::zeroed(room);
        let buffer = buffer.as_mut();
        context.ready()?;
        let outcome = self.answer_all(context, &mut payload, &mut checker, buffer);
        // A client that still waits learns that no more will come.
        let _already = self.socket.shutdown(Shutdown::Write);
        outcome?;
        Ok(Outcome { verify: checker.map(|c| c.found()), ..Outcome::default() })
    }

    fn answer_all(
        &self,
        context: &LaneContext,
        payload: &mut Payload,
        checker: &mut Option<Checker>,
        buffer: &mut [u8],
    ) -> Result<()> {
        let Exchange { request, response, .. } = self.exchange;
        let mut pending = 0;
        let mut answered = 0;
        loop {
            let count = match call::recv(&*self.socket, buffer) {
                Ok(0) => {
                    if self.share != Some(answered) {
                        context.closed(context.counters.read().received_bytes)?;
                    }
                    return Ok(());
                }
                Ok(count) => count,
                Err(e) => return context.failed_unless_stopped("receive request", e),
            };
            if let Some(checker) = checker {
                checker.check(&buffer[..count]);
            }
            pending += count;
            let whole = pending / request;
            pending %= request;
            context.counters.received(count, whole as u64);
            answered += whole as u64;
            for _ in 0..whole {
                if let Err(e) = send_whole(&self.socket, payload.peek(response)) {
                    return context.failed_unless_stopped("send response", e);
                }
                payload.advance(response);
                context.counters.sent(response, 1);
            }
        }
    }
}

/// Sends all of `bytes`.
pub(crate) fn send_whole(socket: &Socket, mut bytes: &[u8]) -> std::result::Result<(), Errno> {
    loop {
        let count = call::send(socket, bytes)?;
        bytes = &bytes[count..];
        if bytes.is_empty() {
            return Ok(());
        }
    }
}

/// Fills `buffer`; false when the other end closed before it was full.
pub(crate) fn recv_whole(socket: &Socket, buffer: &mut [u8]) -> std::result::Result<bool, Errno> {
    let mut filled = 0;
    loop {
        let count = call::recv(socket, &mut buffer[filled..])?;
        if count == 0 {
            return Ok(false);
        }
        filled += count;
        if filled == buffer.len() {
            return Ok(true);
        }
    }
}
