//! Makes the one connection, or the one UDP socket, that a run has.

use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, TcpStream, ToSocketAddrs, UdpSocket};

use nix::errno::Errno;
use socket2::{Domain, Protocol, Socket, Type};

use crate::ttcp::options::Options;

/// Time to live of multicast, as the forks that can do it have it.
const MULTICAST_HOPS: u32 = 30;

/// What failed, as ttcp names it (`connect`, `bind`), and why.
#[derive(Debug, thiserror::Error)]
#[error("{operation}: {}", strerror(.cause))]
pub(crate) struct SocketError {
    pub(crate) operation: String,
    pub(crate) cause: io::Error,
}

/// The system's words for an error, without Rust's suffix.
fn strerror(cause: &io::Error) -> String {
    match cause.raw_os_error() {
        Some(number) => Errno::from_raw(number).desc().to_owned(),
        None => cause.to_string(),
    }
}

pub(crate) fn failed(operation: &str) -> impl FnOnce(io::Error) -> SocketError + '_ {
    move |cause| SocketError { operation: operation.to_owned(), cause }
}

/// A TCP connection as the options have it; `progress` is told each step's word.
pub(crate) fn tcp(options: &Options, progress: &mut dyn FnMut(&str)) -> Result<TcpStream, SocketError> {
    let socket = if options.connects() { connect(options, progress)? } else { accept(options, progress)? };
    Ok(socket.into())
}

fn connect(options: &Options, progress: &mut dyn FnMut(&str)) -> Result<Socket, SocketError> {
    let mut refused = None;
    for (index, address) in resolve(options)?.into_iter().enumerate() {
        let quiet: &mut dyn FnMut(&str) = &mut |_| {};
        let socket = prepare(address, options, if index == 0 { progress } else { quiet })?;
        match socket.connect(&address.into()) {
            Ok(()) => {
                progress("connect");
                return Ok(socket);
            }
            Err(cause) => refused = Some(cause),
        }
    }
    let cause = refused.unwrap_or_else(|| io::Error::from(io::ErrorKind::AddrNotAvailable));
    Err(SocketError { operation: "connect".into(), cause })
}

fn accept(options: &Options, progress: &mut dyn FnMut(&str)) -> Result<Socket, SocketError> {
    let listener = bound(options, progress)?;
    listener.listen(1).map_err(failed("listen"))?;
    let (socket, peer) = listener.accept().map_err(failed("accept"))?;
    let peer = peer.as_socket().map(|a| a.ip().to_canonical().to_string()).unwrap_or_default();
    progress(&format!("accept from {peer}"));
    Ok(socket)
}

/// A UDP sender's socket and where it sends.
pub(crate) fn udp_sender(
    options: &Options,
    progress: &mut dyn FnMut(&str),
) -> Result<(UdpSocket, SocketAddr), SocketError> {
    let addresses = resolve(options)?;
    let address = *addresses.first().ok_or_else(|| no_address(options, None))?;
    let socket = prepare(address, options, progress)?;
    if address.ip().is_multicast() {
        let hops = match address {
            SocketAddr::V4(_) => socket.set_multicast_ttl_v4(MULTICAST_HOPS),
            SocketAddr::V6(_) => socket.set_multicast_hops_v6(MULTICAST_HOPS),
        };
        hops.map_err(failed("setsockopt: multicast hops"))?;
    }
    Ok((socket.into(), address))
}

/// A UDP receiver's bound socket, in the multicast group if one was named.
pub(crate) fn udp_receiver(
    options: &Options,
    progress: &mut dyn FnMut(&str),
) -> Result<UdpSocket, SocketError> {
    Ok(bound(options, progress)?.into())
}

/// A socket bound to the port: of both families unless one was chosen.
fn bound(options: &Options, progress: &mut dyn FnMut(&str)) -> Result<Socket, SocketError> {
    let group = match (options.udp, &options.host) {
        (true, Some(_)) => resolve(options)?.first().map(SocketAddr::ip),
        _ => None,
    };
    let any: IpAddr = match (options.family, group) {
        (Some(4), _) | (_, Some(IpAddr::V4(_))) => Ipv4Addr::UNSPECIFIED.into(),
        _ => Ipv6Addr::UNSPECIFIED.into(),
    };
    let address = SocketAddr::new(any, options.port);
    let socket = match prepare(address, options, progress) {
        // No IPv6 in this kernel: IPv4 is all there is.
        Err(e) if options.family.is_none() && e.cause.raw_os_error() == Some(Errno::EAFNOSUPPORT as i32) => {
            return bound(&Options { family: Some(4), ..options.clone() }, progress);
        }
        other => other?,
    };
    socket.set_reuse_address(true).map_err(failed("setsockopt: reuseaddr"))?;
    if any.is_ipv6() {
        socket.set_only_v6(options.family == Some(6)).map_err(failed("setsockopt: v6only"))?;
    }
    socket.bind(&address.into()).map_err(failed("bind"))?;
    if let Some(group) = group {
        join(&socket, group)?;
    }
    Ok(socket)
}

fn join(socket: &Socket, group: IpAddr) -> Result<(), SocketError> {
    if !group.is_multicast() {
        return Ok(());
    }
    let joined = match group {
        IpAddr::V4(group) => socket.join_multicast_v4(&group, &Ipv4Addr::UNSPECIFIED),
        IpAddr::V6(group) => socket.join_multicast_v6(&group, 0),
    };
    joined.map_err(failed("setsockopt: join group"))
}

/// A socket with the options that come before connect and listen.
fn prepare(
    address: SocketAddr,
    options: &Options,
    progress: &mut dyn FnMut(&str),
) -> Result<Socket, SocketError> {
    let (kind, protocol) =
        if options.udp { (Type::DGRAM, Protocol::UDP) } else { (Type::STREAM, Protocol::TCP) };
    let socket = Socket::new(Domain::for_address(address), kind, Some(protocol)).map_err(failed("socket"))?;
    progress("socket");
    if options.socket_buffer > 0 {
        let bytes = options.socket_buffer as usize;
        if options.transmit {
            socket.set_send_buffer_size(bytes).map_err(failed("setsockopt: sndbuf"))?;
            progress("sndbuf");
        } else {
            socket.set_recv_buffer_size(bytes).map_err(failed("setsockopt: rcvbuf"))?;
            progress("rcvbuf");
        }
    }
    if options.nodelay && options.transmit && !options.udp {
        socket.set_tcp_nodelay(true).map_err(failed("setsockopt: nodelay"))?;
        progress("nodelay");
    }
    if let Some(link) = &options.link {
        socket.bind_device(Some(link.as_bytes())).map_err(failed("setsockopt: bindtodevice"))?;
    }
    Ok(socket)
}

/// The host's addresses of the chosen family.
fn resolve(options: &Options) -> Result<Vec<SocketAddr>, SocketError> {
    let Some(host) = &options.host else { return Err(no_address(options, None)) };
    let found = (host.as_str(), options.port).to_socket_addrs().map_err(|e| no_address(options, Some(e)))?;
    let addresses: Vec<_> = found
        .filter(|a| match options.family {
            Some(4) => a.is_ipv4(),
            Some(6) => a.is_ipv6(),
            _ => true,
        })
        .collect();
    if addresses.is_empty() { Err(no_address(options, None)) } else { Ok(addresses) }
}

fn no_address(options: &Options, cause: Option<io::Error>) -> SocketError {
    let host = options.host.as_deref().unwrap_or_default();
    SocketError {
        operation: format!("can't resolve {host} port {}", options.port),
        cause: cause.unwrap_or_else(|| io::Error::other("no address of that family")),
    }
}
