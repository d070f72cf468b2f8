//! A strand's connections and the sockets that it accepts them on.

use std::io;
use std::net::{IpAddr, Ipv6Addr, SocketAddr, TcpListener, TcpStream, UdpSocket};
use std::os::fd::AsFd;
use std::sync::Arc;
use std::time::{Duration, Instant};

use linerate_sys::sockopt;
use socket2::{Domain, Socket, Type};

use crate::uperf::text;
use crate::uperf::workorder::{Flowop, Protocol, flag};

/// The datagram by which a UDP "connection" is made.
const UDP_HANDSHAKE: &[u8] = b"uperf udp handshake";

/// Longest wait of an accept.
const ACCEPT_LIMIT: Duration = Duration::from_secs(10);

/// Longest wait of a TCP connect.
const CONNECT_LIMIT: Duration = Duration::from_secs(10);

/// How often a blocked call looks whether it is to end.
pub(crate) const TICK: Duration = Duration::from_millis(50);

const BACKLOG: i32 = 1024;

/// What moves the bytes of a connection.
#[derive(Debug)]
pub(crate) enum Link {
    Stream(TcpStream),
    /// Connected by us.
    Datagram(UdpSocket),
    /// Accepted: the socket may meet others' datagrams, which are dropped.
    Accepted(UdpSocket, SocketAddr),
}

/// Where a strand's connections are accepted.
#[derive(Debug, Clone)]
pub(crate) enum Listener {
    Tcp(Arc<TcpListener>),
    Udp(Arc<UdpSocket>),
}

/// An operation that failed, for the message.
pub(crate) type Failure = String;

impl Listener {
    /// Opens one as the first accept of its protocol has it; port 0 is any.
    pub(crate) fn open(flowop: &Flowop) -> Result<Self, Failure> {
        let port = u16::try_from(flowop.port).map_err(|_| format!("port {} is none", flowop.port))?;
        let kind = match flowop.protocol {
            Protocol::Tcp => Type::STREAM,
            Protocol::Udp => Type::DGRAM,
            other => return Err(not_offered(other)),
        };
        let say = |what: &str| {
            let text = format!("{what} {} port {port}", flowop.protocol.name());
            move |e: io::Error| format!("{text}: {e}")
        };
        let socket = listening_socket(kind, port, flowop).map_err(say("listen on"))?;
        if flowop.protocol == Protocol::Tcp {
            socket.listen(BACKLOG).map_err(say("listen on"))?;
            // The port may be shared by strands, of which each waits with a time limit.
            socket.set_nonblocking(true).map_err(say("listen on"))?;
            return Ok(Self::Tcp(Arc::new(socket.into())));
        }
        socket.set_read_timeout(Some(TICK)).map_err(say("listen on"))?;
        socket.set_write_timeout(Some(TICK)).map_err(say("listen on"))?;
        Ok(Self::Udp(Arc::new(socket.into())))
    }

    pub(crate) fn protocol(&self) -> Protocol {
        match self {
            Self::Tcp(_) => Protocol::Tcp,
            Self::Udp(_) => Protocol::Udp,
        }
    }

    pub(crate) fn port(&self) -> Result<u16, Failure> {
        let address = match self {
            Self::Tcp(listener) => listener.local_addr(),
            Self::Udp(socket) => socket.local_addr(),
        };
        address.map(|a| a.port()).map_err(|e| format!("read own port: {e}"))
    }

    /// Takes a connection of `peer`; strangers' are closed, and their datagrams dropped.
    pub(crate) fn accept(
        &self,
        flowop: &Flowop,
        peer: IpAddr,
        stop: &dyn Fn() -> bool,
    ) -> Result<Option<Link>, Failure> {
        match self {
            Self::Tcp(listener) => accept_tcp(listener, flowop, peer, stop),
            Self::Udp(socket) => accept_udp(socket, flowop, peer, stop),
        }
    }
}

fn listening_socket(kind: Type, port: u16, flowop: &Flowop) -> io::Result<Socket> {
    let make = |ip: IpAddr| -> io::Result<Socket> {
        let address = SocketAddr::new(ip, port);
        let socket = Socket::new(Domain::for_address(address), kind, None)?;
        if ip.is_ipv6() {
            socket.set_only_v6(false)?;
        }
        if kind == Type::STREAM {
            socket.set_reuse_address(true)?;
        }
        set_window(&socket, flowop)?;
        socket.bind(&address.into())?;
        Ok(socket)
    };
    match make(Ipv6Addr::UNSPECIFIED.into()) {
        // No IPv6 in this kernel: IPv4 is all there is.
        Err(e) if e.raw_os_error() == Some(nix::errno::Errno::EAFNOSUPPORT as i32) => {
            make(std::net::Ipv4Addr::UNSPECIFIED.into())
        }
        other => other,
    }
}

fn set_window(socket: &Socket, flowop: &Flowop) -> io::Result<()> {
    if flowop.window > 0 {
        let bytes = usize::try_from(flowop.window).unwrap_or(usize::MAX).min(i32::MAX as usize);
        socket.set_send_buffer_size(bytes)?;
        socket.set_recv_buffer_size(bytes)?;
    }
    Ok(())
}

fn accept_tcp(
    listener: &TcpListener,
    flowop: &Flowop,
    peer: IpAddr,
    stop: &dyn Fn() -> bool,
) -> Result<Option<Link>, Failure> {
    let end = Instant::now() + ACCEPT_LIMIT;
    while !stop() {
        if !wait_readable(listener, TICK) {
            if Instant::now() >= end {
                return Err(format!("accept: nobody connected within {} s", ACCEPT_LIMIT.as_secs()));
            }
            continue;
        }
        match listener.accept() {
            Ok((stream, from)) if from.ip().to_canonical() == peer => {
                return prepare_stream(stream, flowop).map(Some).map_err(|e| format!("accept: {e}"));
            }
            Ok(_) => {}
            Err(e) if e.kind() == io::ErrorKind::WouldBlock => {}
            Err(e) if e.kind() == io::ErrorKind::ConnectionAborted => {}
            Err(e) => return Err(format!("accept: {e}")),
        }
    }
    Ok(None)
}

/// Whether there is something to take within `limit`.
fn wait_readable(socket: &impl AsFd, limit: Duration) -> bool {
    use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
    let mut fds = [PollFd::new(socket.as_fd(), PollFlags::POLLIN)];
    let timeout = PollTimeout::try_from(limit).unwrap_or(PollTimeout::MAX);
    poll(&mut fds, timeout).is_ok_and(|ready| ready > 0)
}

/// Whether there is something to read within `limit`, looking for a stop meanwhile.
pub(crate) fn wait_for_input(link: &Link, limit: Duration, stop: &dyn Fn() -> bool) -> bool {
    let end = Instant::now() + limit;
    loop {
        let left = end.saturating_duration_since(Instant::now());
        let step = left.min(TICK);
        let ready = match link {
            Link::Stream(stream) => wait_readable(stream, step),
            Link::Datagram(socket) | Link::Accepted(socket, _) => wait_readable(socket, step),
        };
        if ready || left.is_zero() || stop() {
            return ready;
        }
    }
}

fn accept_udp(
    socket: &UdpSocket,
    flowop: &Flowop,
    peer: IpAddr,
    stop: &dyn Fn() -> bool,
) -> Result<Option<Link>, Failure> {
    let say = |e: io::Error| format!("accept: {e}");
    let mut buffer = [0; 64];
    let begun = Instant::now();
    let limit = (flowop.timeout_ns > 0).then(|| Duration::from_nanos(flowop.timeout_ns));
    while !stop() {
        match socket.recv_from(&mut buffer) {
            Ok((count, from)) if buffer[..count] == *UDP_HANDSHAKE && from.ip().to_canonical() == peer => {
                let socket = socket.try_clone().map_err(say)?;
                // One open socket, so one flag for all its clones: only where the flowop asks for it.
                if flowop.has(flag::NON_BLOCKING) {
                    socket.set_nonblocking(true).map_err(say)?;
                }
                return Ok(Some(Link::Accepted(socket, from)));
            }
            Ok(_) => {}
            Err(e) if is_pause(&e) => {
                if limit.is_some_and(|limit| begun.elapsed() >= limit) {
                    return Err("accept: timeout".into());
                }
                if flowop.has(flag::NON_BLOCKING) {
                    std::thread::sleep(Duration::from_millis(1));
                }
            }
            Err(e) => return Err(say(e)),
        }
    }
    Ok(None)
}

/// Opens a connection.
pub(crate) fn connect(
    flowop: &Flowop,
    host: IpAddr,
    port: u16,
    from: Option<IpAddr>,
) -> Result<Link, Failure> {
    let to = SocketAddr::new(host, port);
    let name = flowop.protocol.title();
    let say = |e: io::Error| format!("{name}: Cannot connect to {}:{port} {e}", flowop.remote_host);
    match flowop.protocol {
        Protocol::Tcp => {
            let socket = Socket::new(Domain::for_address(to), Type::STREAM, None).map_err(say)?;
            set_window(&socket, flowop).map_err(say)?;
            bind_from(&socket, from).map_err(say)?;
            socket.connect_timeout(&to.into(), CONNECT_LIMIT).map_err(say)?;
            prepare_stream(socket.into(), flowop).map_err(say)
        }
        Protocol::Udp => {
            let socket = Socket::new(Domain::for_address(to), Type::DGRAM, None).map_err(say)?;
            set_window(&socket, flowop).map_err(say)?;
            bind_from(&socket, from).map_err(say)?;
            socket.connect(&to.into()).map_err(say)?;
            let socket: UdpSocket = socket.into();
            socket.set_read_timeout(Some(TICK)).map_err(say)?;
            socket.set_write_timeout(Some(TICK)).map_err(say)?;
            socket.send(UDP_HANDSHAKE).map_err(say)?;
            if flowop.has(flag::NON_BLOCKING) {
                socket.set_nonblocking(true).map_err(say)?;
            }
            Ok(Link::Datagram(socket))
        }
        other => Err(not_offered(other)),
    }
}

fn bind_from(socket: &Socket, from: Option<IpAddr>) -> io::Result<()> {
    from.map_or(Ok(()), |address| socket.bind(&SocketAddr::new(address, 0).into()))
}

pub(crate) fn not_offered(protocol: Protocol) -> Failure {
    format!("Protocol {} not supported", protocol.name())
}

fn prepare_stream(stream: TcpStream, flowop: &Flowop) -> io::Result<Link> {
    stream.set_nonblocking(false)?;
    stream.set_read_timeout(Some(TICK))?;
    stream.set_write_timeout(Some(TICK))?;
    stream.set_nodelay(flowop.has(flag::TCP_NODELAY))?;
    if !flowop.congestion.is_empty() {
        sockopt::set_congestion(&stream, &flowop.congestion).map_err(io::Error::other)?;
    }
    if !flowop.stack.is_empty() {
        return Err(io::Error::other("stack=: Linux has one TCP stack"));
    }
    Ok(Link::Stream(stream))
}

/// What the kernel granted where it is less than was asked for.
pub(crate) fn window_warnings(link: &Link, flowop: &Flowop) -> Vec<String> {
    if flowop.window == 0 {
        return Vec::new();
    }
    let granted = match link {
        Link::Stream(stream) => [sockopt::send_buffer(stream), sockopt::receive_buffer(stream)],
        Link::Datagram(socket) | Link::Accepted(socket, _) => {
            [sockopt::send_buffer(socket), sockopt::receive_buffer(socket)]
        }
    };
    let wanted = text::size(flowop.window as f64);
    let names = ["Send", "Recv"];
    names
        .iter()
        .zip(granted)
        // Linux doubles what it is asked for, for its own bookkeeping.
        .filter_map(|(name, bytes)| Some((name, u64::from(bytes.ok()?) / 2)))
        .filter(|(_, bytes)| *bytes < flowop.window)
        .map(|(name, bytes)| format!("{name} buffer: {} (Requested:{wanted})", text::size(bytes as f64)))
        .collect()
}

/// A call that came back since time was up or a signal came.
pub(crate) fn is_pause(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut | io::ErrorKind::Interrupted)
}

/// Open connections of a strand, newest last; the newest of a name is the one that flowops mean.
#[derive(Debug, Default)]
pub(crate) struct Connections(Vec<(u32, Link)>);

impl Connections {
    pub(crate) fn open(&mut self, name: u32, link: Link) {
        self.0.push((name, link));
    }

    pub(crate) fn find(&self, name: u32) -> Option<&Link> {
        self.0.iter().rev().find(|(n, _)| *n == name).map(|(_, link)| link)
    }

    pub(crate) fn close(&mut self, name: u32) -> bool {
        let found = self.0.iter().rposition(|(n, _)| *n == name);
        found.map(|at| self.0.remove(at)).is_some()
    }
}
