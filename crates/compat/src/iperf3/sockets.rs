//! Makes the sockets of a test, with its options.

use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, UdpSocket};
use std::time::Duration;

use linerate_sys::{SysError, sockopt};
use socket2::{Domain, Protocol, Socket, Type};

use super::error::TestError;
use super::params::{Params, Transport};
use super::wire::ErrorCode;

/// Connections that may wait to be accepted.
const BACKLOG: i32 = 1024;

/// How long a stream's connection may take.
const CONNECT_LIMIT: Duration = Duration::from_secs(120);

/// IP version of what a side opens.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Family {
    /// Either.
    #[default]
    Any,
    /// IPv4 only.
    V4,
    /// IPv6 only.
    V6,
}

impl Family {
    /// Whether an address belongs to it.
    pub fn has(self, address: IpAddr) -> bool {
        match self {
            Self::Any => true,
            Self::V4 => address.is_ipv4(),
            Self::V6 => address.is_ipv6(),
        }
    }
}

/// An IPv4 address in IPv6's clothes as the IPv4 address it is.
pub(super) fn canonical(address: SocketAddr) -> SocketAddr {
    match address {
        SocketAddr::V6(v6) if v6.ip().to_ipv4_mapped().is_some() => {
            SocketAddr::new(address.ip().to_canonical(), address.port())
        }
        other => other,
    }
}

/// Both ends of a connected socket: own, far.
pub(super) fn ends(socket: &Socket) -> Result<(SocketAddr, SocketAddr), TestError> {
    let internet = |address: io::Result<socket2::SockAddr>, operation| {
        let address = address.and_then(|a| a.as_socket().ok_or_else(|| io::ErrorKind::Unsupported.into()));
        address.map(canonical).map_err(|e| SysError::new(operation, "stream", e))
    };
    Ok((internet(socket.local_addr(), "getsockname")?, internet(socket.peer_addr(), "getpeername")?))
}

/// The address on which a server listens.
pub(super) fn listen_address(bind: Option<IpAddr>, family: Family, port: u16) -> SocketAddr {
    let any = match family {
        Family::V4 => IpAddr::V4(Ipv4Addr::UNSPECIFIED),
        Family::Any | Family::V6 => IpAddr::V6(Ipv6Addr::UNSPECIFIED),
    };
    SocketAddr::new(bind.unwrap_or(any), port)
}

/// The server's listener. It can be shared afterwards with [`listen_beside`], by this process only.
pub(super) fn listen(address: SocketAddr, family: Family) -> Result<Socket, TestError> {
    let socket = new_socket(address, Type::STREAM, Protocol::TCP)?;
    let describe = |operation| move |e| SysError::new(operation, address.to_string(), e);
    if address.is_ipv6() {
        socket.set_only_v6(family == Family::V6).map_err(describe("set IPV6_V6ONLY"))?;
    }
    socket.set_reuse_address(true).map_err(describe("set SO_REUSEADDR"))?;
    socket.bind(&address.into()).map_err(describe("bind"))?;
    socket.listen(BACKLOG).map_err(describe("listen"))?;
    // Only now: a second server on this port is refused.
    socket.set_reuse_port(true).map_err(describe("set SO_REUSEPORT"))?;
    socket.set_nonblocking(true).map_err(describe("set O_NONBLOCK"))?;
    Ok(socket)
}

/// A second listener, on the very address that one client uses: the kernel prefers it to the general one while it is
/// there. Window scale and segment size are settled in the handshake, so these options must be on the listener.
pub(super) fn listen_beside(address: SocketAddr, params: &Params) -> Result<Socket, TestError> {
    let protocol = if params.mptcp { Protocol::MPTCP } else { Protocol::TCP };
    let socket = new_socket(address, Type::STREAM, protocol)?;
    let describe = |operation| move |e| SysError::new(operation, address.to_string(), e);
    socket.set_reuse_address(true).map_err(describe("set SO_REUSEADDR"))?;
    socket.set_reuse_port(true).map_err(describe("set SO_REUSEPORT"))?;
    if address.is_ipv6() {
        socket.set_only_v6(true).map_err(describe("set IPV6_V6ONLY"))?;
    }
    set_window(&socket, params)?;
    if let Some(mss) = params.mss {
        sockopt::set_mss(&socket, mss)?;
    }
    socket.bind(&address.into()).map_err(describe("bind"))?;
    socket.listen(BACKLOG).map_err(describe("listen"))?;
    socket.set_nonblocking(true).map_err(describe("set O_NONBLOCK"))?;
    Ok(socket)
}

/// Takes a listener out of the way: new connections go to the general one, those that it has begun it still completes. Closed at
/// once, it would reset them.
pub(super) fn retire(listener: &Socket) -> Result<(), TestError> {
    const NO_INTERFACE: i32 = i32::MAX;
    Ok(sockopt::bind_to_interface(listener, NO_INTERFACE)?)
}

/// The server's UDP socket, on which clients ask for streams.
pub(super) fn bind_door(address: SocketAddr, family: Family) -> Result<UdpSocket, TestError> {
    let socket = new_socket(address, Type::DGRAM, Protocol::UDP)?;
    let describe = |operation| move |e| SysError::new(operation, format!("UDP {address}"), e);
    if address.is_ipv6() {
        socket.set_only_v6(family == Family::V6).map_err(describe("set IPV6_V6ONLY"))?;
    }
    socket.bind(&address.into()).map_err(describe("bind"))?;
    // Only now: a second server on this port is refused.
    socket.set_reuse_address(true).map_err(describe("set SO_REUSEADDR"))?;
    socket.set_nonblocking(true).map_err(describe("set O_NONBLOCK"))?;
    Ok(socket.into())
}

/// The server's end of one UDP stream.
pub(super) fn udp_stream(
    local: SocketAddr,
    remote: SocketAddr,
    params: &Params,
) -> Result<Socket, TestError> {
    let socket = new_socket(local, Type::DGRAM, Protocol::UDP)?;
    let describe = |operation| move |e| SysError::new(operation, format!("UDP {local}"), e);
    socket.set_reuse_address(true).map_err(describe("set SO_REUSEADDR"))?;
    set_window(&socket, params)?;
    socket.bind(&local.into()).map_err(describe("bind"))?;
    socket.connect(&remote.into()).map_err(describe("connect"))?;
    set_common(&socket, local, params)?;
    Ok(socket)
}

/// Where a client's sockets come from.
#[derive(Debug, Clone, Default)]
pub struct Source {
    /// Own address.
    pub bind: Option<IpAddr>,
    /// Own device.
    pub device: Option<String>,
}

impl Source {
    fn apply(&self, socket: &Socket, remote: SocketAddr, port: u16) -> Result<(), TestError> {
        if let Some(device) = &self.device {
            socket
                .bind_device(Some(device.as_bytes()))
                .map_err(|e| SysError::new("set SO_BINDTODEVICE", device.clone(), e))?;
        }
        if self.bind.is_none() && port == 0 {
            return Ok(());
        }
        let any = if remote.is_ipv4() {
            IpAddr::V4(Ipv4Addr::UNSPECIFIED)
        } else {
            IpAddr::V6(Ipv6Addr::UNSPECIFIED)
        };
        let local = SocketAddr::new(self.bind.unwrap_or(any), port);
        if port > 0 {
            socket
                .set_reuse_address(true)
                .map_err(|e| SysError::new("set SO_REUSEADDR", local.to_string(), e))?;
        }
        socket.bind(&local.into()).map_err(|e| SysError::new("bind", local.to_string(), e))?;
        Ok(())
    }
}

/// A client's control connection.
pub(super) fn connect_control(
    remote: SocketAddr,
    source: &Source,
    limit: Option<Duration>,
    mptcp: bool,
) -> Result<Socket, TestError> {
    let protocol = if mptcp { Protocol::MPTCP } else { Protocol::TCP };
    let socket = new_socket(remote, Type::STREAM, protocol)?;
    source.apply(&socket, remote, 0)?;
    match limit {
        Some(limit) => socket.connect_timeout(&remote.into(), limit),
        None => socket.connect(&remote.into()),
    }
    .map_err(|e| SysError::new("connect", remote.to_string(), e))?;
    sockopt::set_nodelay(&socket, true)?;
    Ok(socket)
}

/// A client's end of a TCP stream, from port `port` (0 is any).
pub(super) fn connect_stream(
    remote: SocketAddr,
    source: &Source,
    port: u16,
    params: &Params,
) -> Result<Socket, TestError> {
    let tcp = params.transport == Transport::Tcp;
    let (kind, protocol) = match (tcp, params.mptcp) {
        (true, true) => (Type::STREAM, Protocol::MPTCP),
        (true, false) => (Type::STREAM, Protocol::TCP),
        (false, _) => (Type::DGRAM, Protocol::UDP),
    };
    let socket = new_socket(remote, kind, protocol)?;
    set_window(&socket, params)?;
    if tcp {
        if let Some(mss) = params.mss {
            sockopt::set_mss(&socket, mss)?;
        }
        set_tcp(&socket, params)?;
    }
    set_common(&socket, remote, params)?;
    source.apply(&socket, remote, port)?;
    socket
        .connect_timeout(&remote.into(), CONNECT_LIMIT)
        .map_err(|e| SysError::new("connect stream", remote.to_string(), e))?;
    Ok(socket)
}

/// What TCP streams are given on either side.
pub(super) fn set_tcp(socket: &Socket, params: &Params) -> Result<(), TestError> {
    if params.nodelay {
        sockopt::set_nodelay(socket, true)?;
    }
    if let Some(name) = &params.congestion {
        sockopt::set_congestion(socket, name)?;
    }
    Ok(())
}

/// What streams of any kind are given on either side.
pub(super) fn set_common(socket: &Socket, address: SocketAddr, params: &Params) -> Result<(), TestError> {
    if params.tos > 0 {
        if address.is_ipv4() {
            sockopt::set_tos(socket, params.tos)?;
        } else {
            sockopt::set_tclass(socket, params.tos)?;
        }
    }
    if params.dont_fragment && params.transport == Transport::Udp && address.is_ipv4() {
        sockopt::set_dont_fragment(socket)?;
    }
    Ok(())
}

/// Both buffers, and a refusal if the kernel grants less.
fn set_window(socket: &Socket, params: &Params) -> Result<(), TestError> {
    let Some(bytes) = params.window else { return Ok(()) };
    let granted = sockopt::set_send_buffer(socket, bytes)?.min(sockopt::set_receive_buffer(socket, bytes)?);
    if granted >= bytes {
        return Ok(());
    }
    let reason = format!("socket buffer of {bytes} bytes not granted: {granted}");
    Err(TestError::Refused { code: ErrorCode::BUFFER_REFUSED, reason })
}

fn new_socket(address: SocketAddr, kind: Type, protocol: Protocol) -> Result<Socket, TestError> {
    Ok(Socket::new(Domain::for_address(address), kind, Some(protocol))
        .map_err(|e| SysError::new("create socket", address.to_string(), e))?)
}
