//! TCP connect, request, response, close: a new connection for every transaction.
//!
//! The server closes first, so that TIME_WAIT (RFC 9293, section 3.6) stays with it and the client's ports are free again
//! at once. A connection must come from an address that a prover connection has named, and its request must begin with
//! the trial's token, as much of it as fits.

use std::net::{IpAddr, SocketAddr};
use std::os::fd::AsFd;
use std::sync::Arc;
use std::time::Duration;

use linerate_model::units::Rate;
use linerate_model::workload::Workload;
use linerate_sys::clock;
use linerate_sys::poll::{PollSet, Readiness};
use nix::errno::Errno;
use socket2::Socket;

use crate::call;
use crate::error::Result;
use crate::lane::{LaneContext, Outcome};
use crate::latency::LatencyRecorder;
use crate::pace::Schedule;
use crate::pattern::{AlignedBytes, Checker};
use crate::side::Token;
use crate::socket;
use crate::tcp_rr::{Exchange, send_whole};

/// How long a call waits before the stop flag is looked at again.
pub(crate) const PATIENCE: Duration = Duration::from_millis(200);

/// How long the thread that accepted a connection waits for its request before it turns to others.
const PROMPT_NS: u64 = 1_000_000;

/// How long a connection may take over its request.
const REQUEST_LIMIT_NS: u64 = 5_000_000_000;

/// Connections with an unfinished request; a newer one pushes out the oldest.
const SLOW_MAX: usize = 64;

/// The asking end.
pub(crate) struct CrrAsk {
    pub(crate) local: SocketAddr,
    pub(crate) server: SocketAddr,
    pub(crate) workload: Workload,
    pub(crate) token: Token,
    pub(crate) exchange: Exchange,
    /// The trial's rate and number of streams; none is a closed loop.
    pub(crate) rate: Option<(Rate, u32)>,
    /// Transactions to do; none is until stopped.
    pub(crate) share: Option<u64>,
}

/// The answering end; several threads share the listener.
pub(crate) struct CrrAnswer {
    pub(crate) listener: Arc<Socket>,
    pub(crate) allowed: Vec<IpAddr>,
    pub(crate) token: Token,
    pub(crate) exchange: Exchange,
}

/// A request as it must be: token first, then payload.
fn request_bytes(exchange: &Exchange, stream: u32, token: &Token) -> Vec<u8> {
    let mut bytes = exchange.request_payload(stream).peek(exchange.request).to_vec();
    let proof = exchange.request.min(Token::LEN);
    bytes[..proof].copy_from_slice(&token.bytes()[..proof]);
    bytes
}

impl CrrAsk {
    pub(crate) fn run(self, context: &LaneContext) -> Result<Outcome> {
        // Each connection carries the same bytes: the server can't know which stream it belongs to.
        let request = request_bytes(&self.exchange, 0, &self.token);
        let mut response = AlignedBytes::zeroed(self.exchange.response + 1);
        let mut checker = self.exchange.response_checker(0);
        let mut latency = LatencyRecorder::new();
        let start_ns = context.ready()?;
        let mut schedule =
            self.rate.map(|(rate, streams)| Schedule::new(rate, 1, streams, context.stream, start_ns));
        let mut left = self.share.unwrap_or(u64::MAX);
        let mut last = clock::monotonic_ns();
        while left > 0 && !context.control.stopped() {
            let begun = match &mut schedule {
                None => last,
                Some(schedule) => {
                    let due = schedule.due_ns();
                    if !schedule.take_turn(&context.control) {
                        break;
                    }
                    due
                }
            };
            if !self.transact(context, &request, response.as_mut())? {
                break;
            }
            last = clock::monotonic_ns();
            context.counters.transactions(1);
            if context.control.in_window() {
                latency.record(last.saturating_sub(begun));
            }
            if let Some(checker) = &mut checker {
                checker.check_at(0, &response.as_ref()[..self.exchange.response]);
            }
            left -= 1;
            if left == 0 {
                context.control.note_done(last);
            }
        }
        Ok(Outcome {
            latency: Some(latency.into_data()),
            verify: checker.map(|c| c.found()),
            ..Outcome::default()
        })
    }

    /// One transaction; false if the trial was stopped in its midst.
    fn transact(&self, context: &LaneContext, request: &[u8], response: &mut [u8]) -> Result<bool> {
        let connection = socket::new_tcp_client(self.local, &self.workload)?;
        let timeouts = connection
            .set_write_timeout(Some(PATIENCE))
            .and_then(|()| connection.set_read_timeout(Some(PATIENCE)));
        timeouts.map_err(|e| context.failed("set timeout", errno(&e)))?;
        if !self.connect(context, &connection)? {
            return Ok(false);
        }
        let mut sent = 0;
        while sent < request.len() {
            match call::send(&connection, &request[sent..]) {
                Ok(count) => sent += count,
                Err(Errno::EAGAIN) if !context.control.stopped() => {}
                Err(e) => return context.failed_unless_stopped("send request", e).map(|()| false),
            }
        }
        context.counters.sent(sent, 1);
        self.read_to_end(context, &connection, response)
    }

    fn connect(&self, context: &LaneContext, connection: &Socket) -> Result<bool> {
        let address = self.server.into();
        let deadline_ns = clock::monotonic_ns() + socket::CONNECT_LIMIT.as_nanos() as u64;
        loop {
            let Err(error) = connection.connect(&address) else { return Ok(true) };
            match errno(&error) {
                // With a send timeout a connect that takes longer can be waited for again (socket(7), SO_SNDTIMEO).
                Errno::EINPROGRESS | Errno::EALREADY | Errno::EINTR => {}
                Errno::EISCONN => return Ok(true),
                _ if context.control.stopped() => return Ok(false),
                _ => return Err(socket::connect_error(self.server, error)),
            }
            if context.control.stopped() {
                return Ok(false);
            }
            if clock::monotonic_ns() > deadline_ns {
                return Err(socket::connect_error(self.server, std::io::ErrorKind::TimedOut.into()));
            }
        }
    }

    /// Reads the response and the end of the connection.
    fn read_to_end(&self, context: &LaneContext, connection: &Socket, response: &mut [u8]) -> Result<bool> {
        let mut filled = 0;
        loop {
            match call::recv(connection, &mut response[filled..]) {
                Ok(0) if filled == self.exchange.response => break,
                Ok(0) => return context.closed(filled as u64).map(|()| false),
                Ok(count) => filled += count,
                Err(Errno::EAGAIN) if !context.control.stopped() => {}
                Err(e) => return context.failed_unless_stopped("receive response", e).map(|()| false),
            }
            if filled > self.exchange.response {
                return Err(context.failed("receive response", Errno::EMSGSIZE));
            }
        }
        context.counters.received(filled, 1);
        Ok(true)
    }
}

struct Visitor {
    socket: Socket,
    deadline_ns: u64,
    request: Vec<u8>,
    filled: usize,
}

enum Progress {
    More,
    Whole,
    Stranger,
}

struct Responder<'a> {
    job: &'a CrrAnswer,
    context: &'a LaneContext,
    response: Vec<u8>,
    checker: Option<Checker>,
    /// A spare buffer, so that a prompt connection costs no allocation.
    spare: Vec<u8>,
}

impl CrrAnswer {
    pub(crate) fn run(self, context: &LaneContext) -> Result<Outcome> {
        let response = self.exchange.response_payload(0).peek(self.exchange.response).to_vec();
        let checker = self.exchange.request_checker(0);
        let spare = vec![0; self.exchange.request];
        let mut responder = Responder { job: &self, context, response, checker, spare };
        context.ready()?;
        responder.run()?;
        Ok(Outcome { verify: responder.checker.map(|c| c.found()), ..Outcome::default() })
    }
}

impl Responder<'_> {
    fn run(&mut self) -> Result<()> {
        let mut slow: Vec<Visitor> = Vec::new();
        while !self.context.control.aborted() {
            if !slow.is_empty() && !self.attend(&mut slow)? {
                continue;
            }
            let Some(mut visitor) = self.accept()? else { continue };
            if !self.prompt(&visitor.socket)? {
                self.keep(&mut slow, visitor);
                continue;
            }
            match self.read(&mut visitor) {
                Progress::More => self.keep(&mut slow, visitor),
                other => self.settle(visitor, &other),
            }
        }
        Ok(())
    }

    /// Waits for the listener and the slow ones, and serves those of them that are ready; true when someone new knocks.
    fn attend(&mut self, slow: &mut Vec<Visitor>) -> Result<bool> {
        let mut set = PollSet::new();
        let door = set.add(self.job.listener.as_fd(), Readiness::READ);
        for visitor in slow.iter() {
            set.add(visitor.socket.as_fd(), Readiness::READ);
        }
        self.wait(&mut set, PATIENCE.as_nanos() as u64)?;
        let ready: Vec<bool> = (0..slow.len()).map(|i| set.ready(door + 1 + i).readable).collect();
        let knocked = set.ready(door).readable;
        let now = clock::monotonic_ns();
        for (mut visitor, readable) in std::mem::take(slow).into_iter().zip(ready) {
            let progress = if readable { self.read(&mut visitor) } else { Progress::More };
            match progress {
                Progress::More if now < visitor.deadline_ns => slow.push(visitor),
                Progress::More => self.context.counters.stray(),
                other => self.settle(visitor, &other),
            }
        }
        Ok(knocked)
    }

    /// The next connection from an address that may come; none when there was nobody or a stranger.
    fn accept(&mut self) -> Result<Option<Visitor>> {
        let (socket, from) = match self.job.listener.accept() {
            Ok((socket, from)) => (socket, from.as_socket()),
            Err(e) => return self.accept_failed(errno(&e)),
        };
        if !from.is_some_and(|a| self.job.allowed.contains(&a.ip())) {
            self.context.counters.stray();
            return Ok(None);
        }
        let request = std::mem::take(&mut self.spare);
        let request = if request.is_empty() { vec![0; self.job.exchange.request] } else { request };
        Ok(Some(Visitor {
            socket,
            deadline_ns: clock::monotonic_ns() + REQUEST_LIMIT_NS,
            request,
            filled: 0,
        }))
    }

    fn accept_failed(&self, cause: Errno) -> Result<Option<Visitor>> {
        match cause {
            // The listener's timeout, a connection that went away again, or the end of the trial.
            Errno::EAGAIN | Errno::EINTR | Errno::ECONNABORTED | Errno::EPROTO => Ok(None),
            _ if self.context.control.aborted() => Ok(None),
            other => Err(self.context.failed("accept", other)),
        }
    }

    /// Waits a little for the request, which as a rule follows on the heels of the connection.
    fn prompt(&self, socket: &Socket) -> Result<bool> {
        let mut set = PollSet::new();
        let entry = set.add(socket.as_fd(), Readiness::READ);
        self.wait(&mut set, PROMPT_NS)?;
        Ok(set.ready(entry).readable)
    }

    fn wait(&self, set: &mut PollSet<'_>, timeout_ns: u64) -> Result<()> {
        set.wait(Some(timeout_ns)).map_err(|e| self.context.failed("wait", errno(&e)))?;
        Ok(())
    }

    fn keep(&mut self, slow: &mut Vec<Visitor>, visitor: Visitor) {
        if slow.len() == SLOW_MAX {
            slow.remove(0);
            self.context.counters.stray();
        }
        slow.push(visitor);
    }

    /// Reads what is there of the request; a wrong token is noticed as soon as it is whole.
    fn read(&self, visitor: &mut Visitor) -> Progress {
        loop {
            match call::recv_now(&visitor.socket, &mut visitor.request[visitor.filled..]) {
                Ok(0) => return Progress::Stranger,
                Ok(count) => visitor.filled += count,
                Err(Errno::EAGAIN) => return Progress::More,
                Err(_) => return Progress::Stranger,
            }
            let proof = visitor.request.len().min(Token::LEN);
            if visitor.filled >= proof && !self.job.token.matches(&visitor.request[..proof]) {
                return Progress::Stranger;
            }
            if visitor.filled == visitor.request.len() {
                return Progress::Whole;
            }
        }
    }

    /// Answers a whole request and closes; drops a stranger.
    fn settle(&mut self, visitor: Visitor, progress: &Progress) {
        if !matches!(progress, Progress::Whole) {
            self.context.counters.stray();
            return;
        }
        self.context.counters.received(visitor.filled, 1);
        if let Some(checker) = &mut self.checker {
            let proof = visitor.request.len().min(Token::LEN);
            checker.check_at(proof as u64, &visitor.request[proof..]);
        }
        // A client that has gone away in the meantime shows in its own result.
        if send_whole(&visitor.socket, &self.response).is_ok() {
            self.context.counters.sent(self.response.len(), 1);
        }
        self.spare = visitor.request;
    }
}

fn errno(error: &std::io::Error) -> Errno {
    error.raw_os_error().map_or(Errno::EIO, Errno::from_raw)
}
