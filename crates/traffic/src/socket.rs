//! Makes sockets with the options of a trial, and reads back what the kernel granted.

use std::io;
use std::net::SocketAddr;
use std::time::Duration;

use linerate_model::reading::SocketReading;
use linerate_model::units::ByteCount;
use linerate_model::workload::{TcpOptions, Workload};
use linerate_sys::{SysError, sockopt};
use socket2::{Domain, Protocol, Socket, Type};

use crate::error::{Result, TrafficError};

/// Data that is not acknowledged for so long ends a stream: the path is dead, and the kernel alone would try for a quarter of
/// an hour (tcp_retries2).
const DEAD_PATH_LIMIT: Duration = Duration::from_secs(10);

/// How long a client waits for the server to answer.
pub(crate) const CONNECT_LIMIT: Duration = Duration::from_secs(10);

/// Connections that may wait to be accepted; the kernel cuts it to `net.core.somaxconn`.
const BACKLOG: i32 = 4096;

/// A TCP socket that listens on `local`'s address, any port.
pub(crate) fn listen_tcp(local: SocketAddr, workload: &Workload) -> Result<Socket> {
    let socket = new_socket(local, Type::STREAM, Protocol::TCP)?;
    apply_options(&socket, local, workload)?;
    bind(&socket, local)?;
    socket.listen(BACKLOG).map_err(|e| SysError::new("listen", local.to_string(), e))?;
    Ok(socket)
}

/// A TCP socket from `local`'s address, with its options set, not yet connected.
pub(crate) fn new_tcp_client(local: SocketAddr, workload: &Workload) -> Result<Socket> {
    let socket = new_socket(local, Type::STREAM, Protocol::TCP)?;
    apply_options(&socket, local, workload)?;
    // Leaves the choice of the port to connect(2), which knows the whole four-tuple and so does not run out early.
    sockopt::set_bind_address_no_port(&socket, true)?;
    bind(&socket, local)?;
    Ok(socket)
}

/// Connects within [`CONNECT_LIMIT`].
pub(crate) fn connect_tcp(socket: &Socket, address: SocketAddr) -> Result<()> {
    socket.connect_timeout(&address.into(), CONNECT_LIMIT).map_err(|e| connect_error(address, e))
}

/// A UDP socket on `local`'s address, any port.
pub(crate) fn bind_udp(local: SocketAddr, workload: &Workload) -> Result<Socket> {
    let socket = new_socket(local, Type::DGRAM, Protocol::UDP)?;
    apply_options(&socket, local, workload)?;
    bind(&socket, local)?;
    Ok(socket)
}

/// The error of a failed connect, told apart by whether anything answered.
pub(crate) fn connect_error(address: SocketAddr, source: io::Error) -> TrafficError {
    match source.kind() {
        io::ErrorKind::TimedOut => TrafficError::NoAnswer { address, seconds: CONNECT_LIMIT.as_secs() },
        _ => TrafficError::Connect { address, source },
    }
}

/// Sets what an accepted socket does not take over from its listener on every kernel.
pub(crate) fn apply_accepted(socket: &Socket, local: SocketAddr, workload: &Workload) -> Result<()> {
    if let Some(options) = workload.tcp_options() {
        sockopt::set_nodelay(socket, options.nodelay)?;
    }
    apply_tos(socket, local, tos_of(workload))
}

/// Reads back what the kernel granted.
pub(crate) fn granted(socket: &Socket, workload: &Workload) -> Result<SocketReading> {
    let tcp = workload.tcp_options().is_some();
    Ok(SocketReading {
        send_buffer_bytes: u64::from(sockopt::send_buffer(socket)?),
        receive_buffer_bytes: u64::from(sockopt::receive_buffer(socket)?),
        congestion: tcp.then(|| sockopt::congestion(socket)).transpose()?,
        mss_bytes: tcp.then(|| sockopt::mss(socket)).transpose()?,
    })
}

/// The socket's own address.
pub(crate) fn local_address(socket: &Socket) -> Result<SocketAddr> {
    let address = socket.local_addr().map_err(|e| SysError::new("getsockname", "data socket", e))?;
    internet(address.as_socket())
}

/// The address it is connected to.
pub(crate) fn remote_address(socket: &Socket) -> Result<SocketAddr> {
    let address = socket.peer_addr().map_err(|e| SysError::new("getpeername", "data socket", e))?;
    internet(address.as_socket())
}

fn internet(address: Option<SocketAddr>) -> Result<SocketAddr> {
    let strange = || SysError::new("read address", "data socket", io::ErrorKind::Unsupported.into());
    Ok(address.ok_or_else(strange)?)
}

fn new_socket(local: SocketAddr, kind: Type, protocol: Protocol) -> Result<Socket> {
    let socket = Socket::new(Domain::for_address(local), kind, Some(protocol))
        .map_err(|e| SysError::new("create socket", local.ip().to_string(), e))?;
    if local.is_ipv6() {
        socket.set_only_v6(true).map_err(|e| SysError::new("set IPV6_V6ONLY", local.to_string(), e))?;
    }
    Ok(socket)
}

fn bind(socket: &Socket, local: SocketAddr) -> Result<()> {
    let mut address = local;
    address.set_port(0);
    socket.bind(&address.into()).map_err(|e| SysError::new("bind", local.ip().to_string(), e))?;
    Ok(())
}

fn apply_options(socket: &Socket, local: SocketAddr, workload: &Workload) -> Result<()> {
    if let Some(bytes) = workload.buffer_bytes() {
        apply_buffers(socket, bytes)?;
    }
    if let Some(options) = workload.tcp_options() {
        apply_tcp(socket, options)?;
    }
    apply_tos(socket, local, tos_of(workload))
}

fn apply_buffers(socket: &Socket, bytes: ByteCount) -> Result<()> {
    let bytes = u32::try_from(bytes.0).unwrap_or(u32::MAX);
    sockopt::set_send_buffer(socket, bytes)?;
    sockopt::set_receive_buffer(socket, bytes)?;
    Ok(())
}

fn apply_tcp(socket: &Socket, options: &TcpOptions) -> Result<()> {
    sockopt::set_user_timeout(socket, DEAD_PATH_LIMIT)?;
    if options.nodelay {
        sockopt::set_nodelay(socket, true)?;
    }
    if let Some(mss) = options.mss_bytes {
        sockopt::set_mss(socket, mss)?;
    }
    if let Some(name) = &options.congestion {
        sockopt::set_congestion(socket, name)?;
    }
    Ok(())
}

fn apply_tos(socket: &Socket, local: SocketAddr, tos: Option<u8>) -> Result<()> {
    let Some(tos) = tos else { return Ok(()) };
    if local.is_ipv6() {
        sockopt::set_tclass(socket, tos)?;
    } else {
        sockopt::set_tos(socket, tos)?;
    }
    Ok(())
}

fn tos_of(workload: &Workload) -> Option<u8> {
    match workload {
        Workload::UdpStream(w) => w.socket.tos,
        Workload::UdpRr(w) => w.socket.tos,
        _ => workload.tcp_options().and_then(|o| o.tos),
    }
}
