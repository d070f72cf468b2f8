//! The client's end of the data: sockets made before the request, loops after the response.

use std::net::{IpAddr, Shutdown, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use linerate_model::latency::LatencyHistogram;
use linerate_sys::clock;
use linerate_traffic::bare::{
    AskPlan, Buffer, DatagramAsk, DatagramPlan, End, Latencies, Pace, SendPlan, TICK, Tally, Took, ask,
    ask_datagrams, receive_datagrams, receive_stream, recv_whole, send_datagrams, send_stream, send_whole,
};
use nix::errno::Errno;
use socket2::Socket;

use super::data_server::{Progress, TestError, drain};
use super::request::{Length, Pattern, Transport};
use super::sockets::{self, TcpEnd, Wish};

/// How long a data connection may take to come up.
const CONNECT_LIMIT: Duration = Duration::from_secs(30);

/// Largest datagram over IPv4.
const DATAGRAM_MAX: i32 = 65_507;

/// What the client's end is to do.
#[derive(Debug, Clone)]
pub(crate) struct DataPlan {
    pub(crate) pattern: Pattern,
    pub(crate) length: Length,
    pub(crate) wish: Wish,
    /// Where the server's data socket is.
    pub(crate) target: SocketAddr,
    /// Own address, if it is to be bound; the port may be 0.
    pub(crate) source: Option<SocketAddr>,
    pub(crate) send_size: usize,
    pub(crate) receive_size: usize,
    /// Buffers in the send ring.
    pub(crate) send_width: usize,
    pub(crate) request_size: usize,
    pub(crate) response_size: usize,
    pub(crate) in_flight: usize,
    pub(crate) pace: Option<Pace>,
    pub(crate) sendfile: bool,
    /// Connects only, to see the segment size.
    pub(crate) sends_nothing: bool,
    pub(crate) keep_latency: bool,
    /// What buffers are filled with, again and again.
    pub(crate) payload: Vec<u8>,
    pub(crate) udp_patience: Option<Duration>,
    /// First and last local port of connection tests.
    pub(crate) port_range: [u16; 2],
}

/// What the client's end measured.
#[derive(Debug, Clone, Default)]
pub(crate) struct LocalEnd {
    pub(crate) elapsed_ns: u64,
    pub(crate) send_buffer: i32,
    pub(crate) receive_buffer: i32,
    pub(crate) tcp: TcpEnd,
    pub(crate) latency: Option<LatencyHistogram>,
}

/// Sizes that depend on the socket: send size, receive size, ring width.
pub(crate) fn sizes(
    transport: Transport,
    asked: [i32; 2],
    width: i32,
    (send_buffer, receive_buffer): (i32, i32),
) -> (i32, i32, i32) {
    let most = if transport == Transport::Udp { DATAGRAM_MAX } else { i32::MAX };
    let chosen = |asked: i32, buffer: i32| match asked {
        1.. => asked,
        _ if buffer > 0 => buffer.min(most),
        _ => 4096,
    };
    let (send, receive) = (chosen(asked[0], send_buffer), chosen(asked[1], receive_buffer));
    let width = if width > 0 { width } else { (send_buffer / send.max(1) + 1).max(2) };
    (send, receive, width)
}

impl DataPlan {
    /// Moves the data; returns when the client's part is over. The owner stops `tally` when time is up.
    pub(crate) fn run(
        &self,
        tally: &Tally,
        socket: &Socket,
        progress: &Progress,
    ) -> Result<LocalEnd, TestError> {
        let mut latencies = self.keep_latency.then(Latencies::new);
        progress.begin();
        let begun_ns = clock::monotonic_ns();
        let (tcp, buffers, ended_ns) = match (self.wish.transport, self.pattern) {
            (Transport::Tcp, Pattern::Crr | Pattern::Cc) => {
                self.connections(tally, latencies.as_mut())?;
                (TcpEnd::unknown(), sockets::buffers(socket), self.over(progress))
            }
            (Transport::Tcp, _) => self.one_connection(tally, socket, latencies.as_mut(), progress)?,
            (Transport::Udp, _) => {
                self.datagrams(tally, socket, latencies.as_mut())?;
                (TcpEnd::unknown(), sockets::buffers(socket), self.over(progress))
            }
        };
        Ok(LocalEnd {
            elapsed_ns: ended_ns.saturating_sub(begun_ns),
            send_buffer: buffers.0,
            receive_buffer: buffers.1,
            tcp,
            latency: latencies.map(Latencies::into_data),
        })
    }

    fn over(&self, progress: &Progress) -> u64 {
        let ended_ns = clock::monotonic_ns();
        progress.end();
        ended_ns
    }

    fn one_connection(
        &self,
        tally: &Tally,
        socket: &Socket,
        latencies: Option<&mut Latencies>,
        progress: &Progress,
    ) -> Result<(TcpEnd, (i32, i32), u64), TestError> {
        connect(socket, self.target)?;
        timeouts(socket)?;
        let done = match self.pattern {
            Pattern::Stream => {
                let plan = SendPlan {
                    size: self.send_size,
                    total_bytes: if self.sends_nothing { Some(0) } else { self.count() },
                    pace: self.pace,
                    sendfile: self.sendfile,
                };
                let buffer = Buffer::repeated(self.send_size * self.send_width, &self.payload);
                send_stream(tally, socket, &buffer, &plan, latencies)
            }
            Pattern::Maerts => receive_stream(tally, socket, self.receive_size, self.count(), latencies),
            Pattern::Rr | Pattern::Crr | Pattern::Cc => {
                let plan = AskPlan {
                    response: self.response_size,
                    in_flight: self.in_flight,
                    total: self.count(),
                    pace: self.pace,
                };
                ask(tally, socket, &Buffer::repeated(self.request_size, &self.payload), &plan, latencies)
            }
        };
        let end = done?;
        let found = (TcpEnd::of(socket, Transport::Tcp), sockets::buffers(socket));
        if self.pattern == Pattern::Maerts && end == End::Stopped {
            // What still comes is not counted, but read: a close over it would reset the server's sending.
            let ended_ns = self.over(progress);
            drain(socket);
            return Ok((found.0, found.1, ended_ns));
        }
        let _closed_before = socket.shutdown(Shutdown::Write);
        drain(socket);
        Ok((found.0, found.1, self.over(progress)))
    }

    /// A connection for each transaction.
    fn connections(&self, tally: &Tally, mut latencies: Option<&mut Latencies>) -> Result<(), TestError> {
        let request = Buffer::repeated(self.request_size, &self.payload);
        let mut response = vec![0; self.response_size];
        let mut ports = Ports::new(self.port_range);
        let mut left = self.count().unwrap_or(u64::MAX);
        while left > 0 && !tally.stopped() {
            let begun_ns = clock::monotonic_ns();
            let socket = self.connect_from(&mut ports)?;
            timeouts(&socket)?;
            if self.pattern == Pattern::Crr {
                let asked = send_whole(tally, &socket, request.as_ref())?;
                if !asked || recv_whole(tally, &socket, &mut response)? == End::Stopped {
                    return Ok(());
                }
            }
            // The server closes first, so that the busy wait of the closed port is on its side.
            let mut byte = [0];
            if recv_whole(tally, &socket, &mut byte)? == End::Stopped {
                return Ok(());
            }
            drop(socket);
            if let Some(latencies) = &mut latencies {
                latencies.record(clock::monotonic_ns().saturating_sub(begun_ns));
            }
            tally.transactions(1);
            left -= 1;
        }
        Ok(())
    }

    fn connect_from(&self, ports: &mut Ports) -> Result<Socket, TestError> {
        // A port in use is passed over; a full turn without a free one is an error.
        for _ in 0..ports.count() {
            let socket = sockets::open(&self.wish, self.target.ip())?;
            let any = match self.target {
                SocketAddr::V4(_) => std::net::Ipv4Addr::UNSPECIFIED.into(),
                SocketAddr::V6(_) => std::net::Ipv6Addr::UNSPECIFIED.into(),
            };
            let ip: IpAddr = self.source.map_or(any, |source| source.ip());
            if sockets::bind(&socket, SocketAddr::new(ip, ports.next())).is_err() {
                continue;
            }
            match socket.connect(&self.target.into()) {
                Ok(()) => return Ok(socket),
                Err(e) => match e.raw_os_error().map(Errno::from_raw) {
                    Some(Errno::EADDRNOTAVAIL | Errno::EADDRINUSE) => {}
                    _ => {
                        return Err(
                            sockets::named("connect data socket to", &self.target.to_string(), e).into()
                        );
                    }
                },
            }
        }
        Err(TestError::new(Errno::EADDRINUSE, "no free local port for a data connection (-p)"))
    }

    fn datagrams(
        &self,
        tally: &Tally,
        socket: &Socket,
        latencies: Option<&mut Latencies>,
    ) -> Result<(), TestError> {
        connect(socket, self.target)?;
        timeouts(socket)?;
        let done = match self.pattern {
            Pattern::Stream => {
                let plan = DatagramPlan { total_bytes: self.count(), total_messages: None, pace: self.pace };
                send_datagrams(
                    tally,
                    socket,
                    &mut Buffer::repeated(self.send_size, &self.payload),
                    &plan,
                    |_, _| {},
                )
            }
            Pattern::Maerts => receive_datagrams(tally, socket, self.receive_size, |datagram| {
                if datagram.is_empty() { Took::End } else { Took::Payload }
            }),
            Pattern::Rr | Pattern::Crr | Pattern::Cc => {
                let plan = DatagramAsk {
                    response: self.response_size,
                    in_flight: self.in_flight,
                    total: self.count(),
                    pace: self.pace,
                    patience: self.udp_patience,
                };
                ask_datagrams(
                    tally,
                    socket,
                    &Buffer::repeated(self.request_size, &self.payload),
                    &plan,
                    latencies,
                )
            }
        };
        let counted = !matches!(self.length, Length::Seconds(_));
        match done {
            // The server is done before us when an answer was lost.
            Err(e) if counted && e.source.raw_os_error() == Some(Errno::ECONNREFUSED as i32) => {}
            other => {
                other?;
            }
        }
        for _ in 0..3 {
            // The server closes its socket on the first of them.
            let _refused = socket.send(&[]);
        }
        Ok(())
    }

    fn count(&self) -> Option<u64> {
        match self.length {
            Length::Count(count) => Some(count),
            Length::Seconds(_) | Length::Unlimited => None,
        }
    }
}

fn connect(socket: &Socket, target: SocketAddr) -> Result<(), TestError> {
    let outcome = socket.connect_timeout(&target.into(), CONNECT_LIMIT);
    outcome.map_err(|e| sockets::named("connect data socket to", &target.to_string(), e).into())
}

fn timeouts(socket: &Socket) -> Result<(), TestError> {
    let timed = socket.set_read_timeout(Some(TICK)).and_then(|()| socket.set_write_timeout(Some(TICK)));
    timed.map_err(|e| sockets::named("set timeouts", "data socket", e).into())
}

/// Local ports in turn, from a random one on.
struct Ports {
    first: u16,
    last: u16,
    next: u16,
}

impl Ports {
    fn new([first, last]: [u16; 2]) -> Self {
        let (first, last) = (first.min(last).max(1), first.max(last).max(1));
        let span = u64::from(last - first) + 1;
        let next = first + (clock::realtime_ns() / 1000 % span) as u16;
        Self { first, last, next }
    }

    fn count(&self) -> u32 {
        u32::from(self.last - self.first) + 1
    }

    fn next(&mut self) -> u16 {
        let port = self.next;
        self.next = if port >= self.last { self.first } else { port + 1 };
        port
    }
}

/// Opens the data socket, so that its own port and buffers are known before the request.
pub(crate) fn open(
    wish: &Wish,
    target: IpAddr,
    source: Option<SocketAddr>,
) -> Result<Arc<Socket>, TestError> {
    let socket = sockets::open(wish, target)?;
    let any = match target {
        IpAddr::V4(_) => SocketAddr::from((std::net::Ipv4Addr::UNSPECIFIED, 0)),
        IpAddr::V6(_) => SocketAddr::from((std::net::Ipv6Addr::UNSPECIFIED, 0)),
    };
    if let Some(source) = source.or_else(|| (wish.transport == Transport::Udp).then_some(any)) {
        sockets::bind(&socket, source)?;
    }
    Ok(Arc::new(socket))
}
