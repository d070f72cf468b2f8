//! The server's end of the data: a socket that waits for the client, then one of the loops of `linerate_traffic::bare`.

use std::net::{IpAddr, Shutdown, SocketAddr};
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use linerate_model::units::{Rate, RateUnit};
use linerate_sys::clock;
use linerate_traffic::bare::{
    self, Buffer, DatagramPlan, End, MoveError, Pace, SendPlan, TICK, Tally, Took, adopt_peer,
    answer_datagrams, receive_datagrams, receive_stream, recv_whole, send_datagrams, send_stream, send_whole,
};
use nix::errno::Errno;
use nix::sys::socket::{MsgFlags, recv};
use socket2::Socket;
use std::os::fd::AsRawFd;

use super::cpu::CpuWatch;
use super::reply::{Response, Results};
use super::request::{Length, Pattern, Request, Transport};
use super::sockets::{self, TcpEnd, Wish};

/// What netperf fills its buffers with.
pub(crate) const PAYLOAD: &[u8] = b"netperf\0";

/// Largest message, and largest socket buffer, that a client may ask for.
const SIZE_MAX: i32 = 64 << 20;

/// Largest datagram over IPv4.
const DATAGRAM_MAX: i32 = 65_507;

/// Size of a call where the socket does not tell its buffer.
const SIZE_FALLBACK: i32 = 4096;

/// Connections that may wait to be accepted, as netserver has it for tests with one connection and with many.
const BACKLOG: [i32; 2] = [5, 128];

/// How long the client may take to close after the server is done.
const CLOSE_LIMIT: Duration = Duration::from_secs(2);

/// Why a test can't be served, and the number that the client is told.
#[derive(Debug, thiserror::Error)]
#[error("{reason}")]
pub(crate) struct TestError {
    /// An errno.
    pub(crate) errno: i32,
    /// In words, for the server's log.
    pub(crate) reason: String,
}

impl TestError {
    pub(crate) fn new(errno: Errno, reason: impl Into<String>) -> Self {
        Self { errno: errno as i32, reason: reason.into() }
    }
}

impl From<linerate_sys::SysError> for TestError {
    fn from(error: linerate_sys::SysError) -> Self {
        Self { errno: error.raw_os_error().unwrap_or(Errno::EIO as i32), reason: error.to_string() }
    }
}

impl From<MoveError> for TestError {
    fn from(error: MoveError) -> Self {
        Self { errno: error.source.raw_os_error().unwrap_or(Errno::EIO as i32), reason: error.to_string() }
    }
}

/// Addresses of the control connection.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Ends {
    pub(crate) local: IpAddr,
    pub(crate) peer: IpAddr,
}

/// What the loop tells the session thread while it runs.
#[derive(Debug)]
pub(crate) struct Progress {
    begun_ns: AtomicU64,
    cpu: Mutex<Option<CpuWatch>>,
}

impl Progress {
    pub(crate) fn new(cpu: Option<CpuWatch>) -> Self {
        Self { begun_ns: AtomicU64::new(0), cpu: Mutex::new(cpu) }
    }

    /// The first data has come.
    pub(crate) fn begin(&self) {
        if self.begun_ns().is_none() {
            self.with_cpu(CpuWatch::begin);
            self.begun_ns.store(clock::monotonic_ns(), Relaxed);
        }
    }

    /// The timed part is over; later calls change nothing.
    pub(crate) fn end(&self) {
        self.with_cpu(CpuWatch::end);
    }

    pub(crate) fn begun_ns(&self) -> Option<u64> {
        Some(self.begun_ns.load(Relaxed)).filter(|&ns| ns != 0)
    }

    fn with_cpu<T>(&self, act: impl FnOnce(&mut CpuWatch) -> T) -> Option<T> {
        self.cpu.lock().unwrap_or_else(PoisonError::into_inner).as_mut().map(act)
    }

    /// Adds the CPU shares to the results.
    pub(crate) fn add_cpu(&self, results: &mut Results) {
        if let Some((shares, cpus)) = self.with_cpu(|cpu| cpu.shares()).flatten() {
            results.cpu = Some(shares);
            results.cpus = cpus;
        }
    }
}

/// A test whose data socket is open.
#[derive(Debug)]
pub(crate) struct DataServer {
    pub(crate) socket: Arc<Socket>,
    pub(crate) response: Response,
    request: Request,
    ends: Ends,
    /// Most bits a second that the server sends.
    rate_limit: Option<u64>,
}

impl DataServer {
    /// Opens the socket and says how to reach it.
    pub(crate) fn open(mut request: Request, ends: Ends, rate_limit: Option<u64>) -> Result<Self, TestError> {
        check(&request, ends)?;
        let wish = Wish {
            transport: request.transport,
            send_buffer: request.send_buffer,
            receive_buffer: request.receive_buffer,
            nodelay: request.nodelay,
            routing: request.routing || request.transport == Transport::Tcp,
            keepalive: request.keepalive,
            priority: request.priority,
            tos: request.tos,
            congestion: request.congestion.clone(),
        };
        let ip = request.server_address.unwrap_or(ends.local);
        let socket = sockets::open(&wish, ip)?;
        match request.transport {
            Transport::Tcp => {
                // A port that is taken is no error: another one is told in the response.
                if sockets::bind(&socket, SocketAddr::new(ip, request.port)).is_err() {
                    sockets::bind(&socket, SocketAddr::new(ip, 0))?;
                }
                let many = matches!(request.pattern, Pattern::Crr | Pattern::Cc);
                let listening = socket.listen(BACKLOG[usize::from(many)]);
                listening.map_err(|e| sockets::named("listen", "data socket", e))?;
            }
            Transport::Udp => sockets::bind(&socket, SocketAddr::new(ip, request.port))?,
        }
        let response = respond(&mut request, &socket)?;
        Ok(Self { socket: Arc::new(socket), response, request, ends, rate_limit })
    }

    /// Moves the data until the client is done, or stopped; what was counted.
    pub(crate) fn run(&self, tally: &Tally, progress: &Progress) -> Result<Results, TestError> {
        let moved = match (self.request.transport, self.request.pattern) {
            (Transport::Tcp, Pattern::Crr | Pattern::Cc) => self.many_connections(tally, progress),
            (Transport::Tcp, _) => self.one_connection(tally, progress),
            (Transport::Udp, _) => self.datagrams(tally, progress),
        };
        progress.end();
        let (end, buffers) = moved?;
        let count = tally.count();
        let begun_ns = progress.begun_ns().unwrap_or(count.at_ns);
        let calls = |calls: u64| u32::try_from(calls).unwrap_or(u32::MAX);
        Ok(Results {
            received_bytes: count.received.bytes,
            receive_calls: calls(count.received.messages),
            receive_buffer: buffers.1,
            sent_bytes: count.sent.bytes,
            send_calls: calls(count.sent.messages),
            send_buffer: buffers.0,
            transactions: calls(count.transactions),
            elapsed: (count.at_ns.saturating_sub(begun_ns) as f64 / 1e9) as f32,
            cpu: None,
            cpus: 0,
            retransmits: end.retransmits,
            congestion: end.congestion,
        })
    }

    fn one_connection(&self, tally: &Tally, progress: &Progress) -> Result<(TcpEnd, (i32, i32)), TestError> {
        let Some(socket) = self.accept(tally)? else {
            return Ok((TcpEnd::unknown(), sockets::buffers(&self.socket)));
        };
        progress.begin();
        let moved = self.move_stream(tally, &socket);
        progress.end();
        let end = TcpEnd::of(&socket, Transport::Tcp);
        let buffers = sockets::buffers(&socket);
        let moved = moved?;
        let _closed_before = socket.shutdown(Shutdown::Write);
        if self.request.pattern == Pattern::Maerts || moved == End::Done {
            // A close over unread requests, or over data that the client has not read, would reset what is on its way.
            drain(&socket);
        }
        Ok((end, buffers))
    }

    fn move_stream(&self, tally: &Tally, socket: &Socket) -> Result<End, TestError> {
        let done = match self.request.pattern {
            Pattern::Stream => receive_stream(tally, socket, size(self.response.receive_size), None, None),
            Pattern::Maerts => {
                let plan = SendPlan {
                    size: size(self.response.send_size),
                    total_bytes: self.count(),
                    pace: self.pace(self.response.send_size),
                    sendfile: false,
                };
                let buffer = Buffer::repeated(plan.size, PAYLOAD);
                send_stream(tally, socket, &buffer, &plan, None)
            }
            Pattern::Rr | Pattern::Crr | Pattern::Cc => {
                let response = Buffer::repeated(size(self.request.response_size), PAYLOAD);
                bare::answer(tally, socket, size(self.request.request_size), &response, self.count())
            }
        };
        // A client may close while data comes: that ends the test, and nothing is wrong.
        closed_is_an_end(done)
    }

    fn many_connections(
        &self,
        tally: &Tally,
        progress: &Progress,
    ) -> Result<(TcpEnd, (i32, i32)), TestError> {
        let response = Buffer::repeated(size(self.request.response_size), PAYLOAD);
        let mut request = vec![0; size(self.request.request_size)];
        let mut left = self.count().unwrap_or(u64::MAX);
        let mut buffers = sockets::buffers(&self.socket);
        while left > 0 {
            let Some(socket) = self.accept(tally)? else { break };
            progress.begin();
            if self.request.pattern == Pattern::Crr {
                let done = recv_whole(tally, &socket, &mut request);
                match closed_is_an_end(done)? {
                    End::Done => {}
                    End::Closed => continue,
                    End::Stopped => break,
                }
                match send_whole(tally, &socket, response.as_ref()) {
                    Ok(true) => {}
                    Ok(false) => break,
                    Err(e) => {
                        closed_is_an_end(Err(e))?;
                        continue;
                    }
                }
            }
            if left == 1 {
                buffers = sockets::buffers(&socket);
            }
            tally.transactions(1);
            left -= 1;
        }
        Ok((TcpEnd::unknown(), buffers))
    }

    fn datagrams(&self, tally: &Tally, progress: &Progress) -> Result<(TcpEnd, (i32, i32)), TestError> {
        let socket = &*self.socket;
        let done = match self.request.pattern {
            Pattern::Maerts => {
                let client = SocketAddr::new(self.ends.peer, self.request.client_port);
                socket.connect(&client.into()).map_err(|e| MoveError::new("connect data socket", e))?;
                progress.begin();
                let plan = DatagramPlan {
                    total_bytes: self.count(),
                    total_messages: None,
                    pace: self.pace(self.response.send_size),
                };
                let mut buffer = Buffer::repeated(size(self.response.send_size), PAYLOAD);
                send_datagrams(tally, socket, &mut buffer, &plan, |_, _| {})
            }
            pattern => {
                // Datagrams are answered only where the control connection comes from.
                let stated = self.request.client_address.filter(|_| pattern == Pattern::Stream);
                if adopt_peer(tally, socket, stated.unwrap_or(self.ends.peer))?.is_none() {
                    return Ok((TcpEnd::unknown(), sockets::buffers(socket)));
                }
                progress.begin();
                if pattern == Pattern::Stream {
                    receive_datagrams(tally, socket, size(self.response.receive_size), |datagram| {
                        if datagram.is_empty() { Took::End } else { Took::Payload }
                    })
                } else {
                    let response = Buffer::repeated(size(self.request.response_size), PAYLOAD);
                    answer_datagrams(tally, socket, size(self.request.request_size), &response, self.count())
                }
            }
        };
        closed_is_an_end(done)?;
        Ok((TcpEnd::unknown(), sockets::buffers(socket)))
    }

    /// The next connection; from the control connection's host, unless the client named an address to bind.
    fn accept(&self, tally: &Tally) -> Result<Option<Socket>, TestError> {
        while !tally.stopped() {
            let (socket, from) = match self.socket.accept() {
                Ok(accepted) => accepted,
                Err(e) => match e.raw_os_error().map(Errno::from_raw) {
                    Some(Errno::EAGAIN | Errno::EINTR | Errno::ECONNABORTED) => continue,
                    _ => return Err(MoveError::new("accept data connection", e).into()),
                },
            };
            let from = from.as_socket().map(|from| from.ip().to_canonical());
            let expected = [Some(self.ends.peer.to_canonical()), self.request.client_address];
            if from.is_none() || !(expected.contains(&from) || self.request.server_address.is_some()) {
                tally.stray();
                continue;
            }
            let timed =
                socket.set_read_timeout(Some(TICK)).and_then(|()| socket.set_write_timeout(Some(TICK)));
            timed.map_err(|e| sockets::named("set timeouts", "data socket", e))?;
            return Ok(Some(socket));
        }
        Ok(None)
    }

    fn count(&self) -> Option<u64> {
        match self.request.length {
            Length::Count(count) => Some(count),
            Length::Seconds(_) | Length::Unlimited => None,
        }
    }

    fn pace(&self, send_size: i32) -> Option<Pace> {
        let [messages, micros] = self.request.interval;
        let asked = (messages > 0 && micros > 0)
            .then(|| Pace::Every { interval: Duration::from_micros(micros.into()), messages });
        let Some(limit) = self.rate_limit else { return asked };
        let asked_bits = u64::from(messages) * 8_000_000 * u64::from(send_size.unsigned_abs());
        match asked {
            Some(pace) if asked_bits / u64::from(micros) <= limit => Some(pace),
            _ => {
                Some(Pace::Rate { rate: Rate { per_second: limit, unit: RateUnit::BitsPerSecond }, burst: 1 })
            }
        }
    }
}

/// Refuses what a server must not do for a stranger.
fn check(request: &Request, ends: Ends) -> Result<(), TestError> {
    if !request.fill_file.is_empty() {
        let reason = format!("fill file {:?}: a server opens no file for a client", request.fill_file);
        return Err(TestError::new(Errno::EACCES, reason));
    }
    let sizes = [
        request.send_buffer,
        request.receive_buffer,
        request.send_size,
        request.receive_size,
        request.request_size,
        request.response_size,
    ];
    if let Some(size) = sizes.into_iter().find(|&size| size > SIZE_MAX) {
        return Err(TestError::new(Errno::EINVAL, format!("{size} bytes: at most {SIZE_MAX} are served")));
    }
    if request.no_checksum {
        return Err(TestError::new(Errno::EOPNOTSUPP, "datagrams without checksum are not offered"));
    }
    let sends_unasked = request.transport == Transport::Udp && request.pattern == Pattern::Maerts;
    let elsewhere = request.client_address.is_some_and(|a| a.to_canonical() != ends.peer.to_canonical());
    if sends_unasked && (elsewhere || request.client_port == 0) {
        let reason = "UDP is sent only to the address of the control connection, and to a port that was told";
        return Err(TestError::new(Errno::EACCES, reason));
    }
    Ok(())
}

/// Fills in the sizes that the client left open, and says what was got.
fn respond(request: &mut Request, socket: &Socket) -> Result<Response, TestError> {
    let (send_buffer, receive_buffer) = sockets::buffers(socket);
    let udp = request.transport == Transport::Udp;
    let chosen = |asked: i32, buffer: i32, most: i32| match asked {
        1.. => asked,
        _ if buffer > 0 => buffer.min(most),
        _ => SIZE_FALLBACK,
    };
    let most = if udp { DATAGRAM_MAX } else { SIZE_MAX };
    let (sends, receives) = match request.pattern {
        Pattern::Stream => (None, Some(chosen(request.receive_size, receive_buffer, SIZE_MAX))),
        Pattern::Maerts => (Some(chosen(request.send_size, send_buffer, most)), None),
        Pattern::Rr | Pattern::Crr => {
            request.request_size = request.request_size.max(1);
            request.response_size = request.response_size.max(1);
            (Some(request.response_size), Some(request.request_size))
        }
        Pattern::Cc => (None, None),
    };
    let width = |asked: i32, size: Option<i32>, buffer: i32| match size {
        Some(size) if asked <= 0 => (buffer / size.max(1) + 1).max(2),
        _ => asked,
    };
    Ok(Response {
        receive_buffer,
        receive_size: receives.unwrap_or(request.receive_size),
        receive_width: width(request.receive_width, receives, receive_buffer),
        send_buffer,
        send_size: sends.unwrap_or(request.send_size),
        send_width: width(request.send_width, sends, send_buffer),
        nodelay: request.nodelay,
        measure_cpu: request.measure_cpu,
        cpu_rate: if request.measure_cpu { 100.0 } else { 0.0 },
        port: sockets::local_port(socket)?,
        interval: request.interval,
        priority: request.priority,
        tos: request.tos,
    })
}

/// A size as chosen by [`respond`] or checked by [`check`].
fn size(bytes: i32) -> usize {
    usize::try_from(bytes).unwrap_or(1).max(1)
}

/// The client may end a test by closing, however rudely.
fn closed_is_an_end(done: bare::Result<End>) -> Result<End, TestError> {
    match done {
        Err(e) => match e.source.raw_os_error().map(Errno::from_raw) {
            Some(Errno::EPIPE | Errno::ECONNRESET) => Ok(End::Closed),
            _ => Err(e.into()),
        },
        Ok(end) => Ok(end),
    }
}

/// Reads until the other end has closed, at most [`CLOSE_LIMIT`].
pub(crate) fn drain(socket: &Socket) {
    let deadline = Instant::now() + CLOSE_LIMIT;
    let mut buffer = vec![0; 1 << 16];
    while Instant::now() < deadline {
        match recv(socket.as_raw_fd(), &mut buffer, MsgFlags::empty()) {
            Ok(0) => return,
            Ok(_) | Err(Errno::EAGAIN | Errno::EINTR) => {}
            Err(_) => return,
        }
    }
}
