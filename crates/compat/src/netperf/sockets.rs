//! Data sockets of both ends, with the options that netperf sets.

use std::io;
use std::net::{IpAddr, SocketAddr};

use linerate_sys::tcp_info::TcpInfo;
use linerate_sys::{SysError, sockopt};
use nix::sys::socket::{setsockopt, sockopt as nix_sockopt};
use socket2::{Domain, Protocol, Socket, Type};

use super::request::Transport;

/// What a data socket is to be. Sizes of -1 leave the system's default.
#[derive(Debug, Clone)]
pub(crate) struct Wish {
    pub(crate) transport: Transport,
    pub(crate) send_buffer: i32,
    pub(crate) receive_buffer: i32,
    pub(crate) nodelay: bool,
    pub(crate) routing: bool,
    pub(crate) keepalive: bool,
    pub(crate) priority: i32,
    pub(crate) tos: i32,
    pub(crate) congestion: String,
}

/// A socket bound to nothing yet, for addresses of `ip`'s family.
pub(crate) fn open(wish: &Wish, ip: IpAddr) -> Result<Socket, SysError> {
    let (kind, protocol) = match wish.transport {
        Transport::Tcp => (Type::STREAM, Protocol::TCP),
        Transport::Udp => (Type::DGRAM, Protocol::UDP),
    };
    let domain = if ip.is_ipv4() { Domain::IPV4 } else { Domain::IPV6 };
    let socket =
        Socket::new(domain, kind, Some(protocol)).map_err(|e| named("create socket", "data socket", e))?;
    apply(&socket, wish, ip)?;
    Ok(socket)
}

fn apply(socket: &Socket, wish: &Wish, ip: IpAddr) -> Result<(), SysError> {
    let set = |option: &'static str| move |e: io::Error| named(option, "data socket", e);
    if let Ok(bytes) = usize::try_from(wish.send_buffer) {
        socket.set_send_buffer_size(bytes).map_err(set("set SO_SNDBUF"))?;
    }
    if let Ok(bytes) = usize::try_from(wish.receive_buffer) {
        socket.set_recv_buffer_size(bytes).map_err(set("set SO_RCVBUF"))?;
    }
    socket.set_reuse_address(true).map_err(set("set SO_REUSEADDR"))?;
    if wish.keepalive {
        socket.set_keepalive(true).map_err(set("set SO_KEEPALIVE"))?;
    }
    if wish.nodelay && wish.transport == Transport::Tcp {
        sockopt::set_nodelay(socket, true)?;
    }
    if !wish.routing {
        setsockopt(socket, nix_sockopt::DontRoute, &true).map_err(|e| set("set SO_DONTROUTE")(e.into()))?;
    }
    if wish.priority >= 0 {
        setsockopt(socket, nix_sockopt::Priority, &wish.priority)
            .map_err(|e| set("set SO_PRIORITY")(e.into()))?;
    }
    if let Ok(tos) = u8::try_from(wish.tos) {
        if ip.is_ipv4() {
            sockopt::set_tos(socket, tos)?;
        } else {
            sockopt::set_tclass(socket, tos)?;
        }
    }
    if !wish.congestion.is_empty() && wish.transport == Transport::Tcp {
        sockopt::set_congestion(socket, &wish.congestion)?;
    }
    Ok(())
}

pub(crate) fn bind(socket: &Socket, address: SocketAddr) -> Result<(), SysError> {
    socket.bind(&address.into()).map_err(|e| named("bind", &address.to_string(), e))
}

pub(crate) fn local_port(socket: &Socket) -> Result<u16, SysError> {
    let address = socket.local_addr().map_err(|e| named("getsockname", "data socket", e))?;
    Ok(address.as_socket().map_or(0, |a| a.port()))
}

/// SO_SNDBUF and SO_RCVBUF as they are now.
pub(crate) fn buffers(socket: &Socket) -> (i32, i32) {
    let read = |size: io::Result<usize>| size.ok().and_then(|bytes| i32::try_from(bytes).ok()).unwrap_or(-1);
    (read(socket.send_buffer_size()), read(socket.recv_buffer_size()))
}

/// What a TCP connection tells of itself.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct TcpEnd {
    pub(crate) mss: i32,
    pub(crate) retransmits: i32,
    pub(crate) congestion: String,
}

impl TcpEnd {
    pub(crate) fn unknown() -> Self {
        Self { mss: -1, retransmits: -1, congestion: String::new() }
    }

    pub(crate) fn of(socket: &Socket, transport: Transport) -> Self {
        if transport == Transport::Udp {
            return Self::unknown();
        }
        let word = |value: Option<u32>| value.and_then(|v| i32::try_from(v).ok()).unwrap_or(-1);
        Self {
            mss: word(sockopt::mss(socket).ok()),
            retransmits: word(TcpInfo::of(socket).ok().map(|info| info.total_retrans)),
            congestion: sockopt::congestion(socket).unwrap_or_default(),
        }
    }
}

pub(crate) fn named(operation: &'static str, object: &str, source: io::Error) -> SysError {
    SysError::new(operation, object, source)
}
