//! Socket options by name, for those that `socket2` lacks or reports without saying which option failed.
//!
//! Each function takes any descriptor of a socket and names the option in its error. Sources: socket(7), tcp(7), ip(7),
//! ipv6(7) and the kernel's `include/uapi/asm-generic/socket.h`.

use std::ffi::{c_int, c_uint};
use std::os::fd::{AsFd, AsRawFd};
use std::time::Duration;
use std::{fs, mem};

use crate::error::{Result, SysError};

/// Longest name of a congestion control algorithm, with its closing NUL (`TCP_CA_NAME_MAX`).
const CONGESTION_NAME_MAX: usize = 16;

/// How long a TCP connection may stay idle before the kernel probes it, and how it probes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct KeepAlive {
    /// Idle time before the first probe, whole seconds (`TCP_KEEPIDLE`).
    pub idle: Duration,
    /// Time between probes, whole seconds (`TCP_KEEPINTVL`).
    pub interval: Duration,
    /// Unanswered probes after which the connection is dropped (`TCP_KEEPCNT`).
    pub probes: u32,
}

/// Names of the congestion control algorithms that a socket may be given now, as the kernel lists them in
/// `/proc/sys/net/ipv4/tcp_available_congestion_control`.
pub fn available_congestion_controls() -> Result<Vec<String>> {
    const PATH: &str = "/proc/sys/net/ipv4/tcp_available_congestion_control";
    let text = fs::read_to_string(PATH).map_err(|e| SysError::new("read", PATH, e))?;
    Ok(text.split_ascii_whitespace().map(str::to_owned).collect())
}

/// Congestion control algorithm of a TCP socket (`TCP_CONGESTION`).
pub fn congestion(socket: impl AsFd) -> Result<String> {
    const OPERATION: &str = "read TCP_CONGESTION";
    let fd = socket.as_fd().as_raw_fd();
    let mut name = [0u8; CONGESTION_NAME_MAX];
    let mut length = name.len() as libc::socklen_t;
    // SAFETY: `name` is writable for `length` bytes and both outlive the call.
    let code = unsafe {
        libc::getsockopt(
            fd,
            libc::IPPROTO_TCP,
            libc::TCP_CONGESTION,
            name.as_mut_ptr().cast(),
            &raw mut length,
        )
    };
    if code < 0 {
        return Err(SysError::last(OPERATION, describe(fd)));
    }
    let filled = &name[..(length as usize).min(name.len())];
    let text = filled.split(|&b| b == 0).next().unwrap_or_default();
    Ok(String::from_utf8_lossy(text).into_owned())
}

/// Chooses the congestion control algorithm of a TCP socket. An unknown name gives `ENOENT`, one reserved for the
/// privileged `EPERM`.
pub fn set_congestion(socket: impl AsFd, name: &str) -> Result<()> {
    let fd = socket.as_fd().as_raw_fd();
    let length = name.len() as libc::socklen_t;
    // SAFETY: `name` is readable for `length` bytes; the kernel copies it and needs no closing NUL.
    let code = unsafe {
        libc::setsockopt(fd, libc::IPPROTO_TCP, libc::TCP_CONGESTION, name.as_ptr().cast(), length)
    };
    if code < 0 {
        return Err(SysError::last("set TCP_CONGESTION", format!("{} to {name}", describe(fd))));
    }
    Ok(())
}

/// Maximum segment size of a TCP socket, bytes (`TCP_MAXSEG`): the one in force once connected.
pub fn mss(socket: impl AsFd) -> Result<u32> {
    read::<c_int>(socket, libc::IPPROTO_TCP, libc::TCP_MAXSEG, "read TCP_MAXSEG").map(unsigned)
}

/// Bounds the maximum segment size, bytes; set it before connect or listen.
pub fn set_mss(socket: impl AsFd, bytes: u32) -> Result<()> {
    write(socket, libc::IPPROTO_TCP, libc::TCP_MAXSEG, bytes, "set TCP_MAXSEG")
}

/// Type-of-service byte of an IPv4 socket (`IP_TOS`).
pub fn tos(socket: impl AsFd) -> Result<u8> {
    read::<c_int>(socket, libc::IPPROTO_IP, libc::IP_TOS, "read IP_TOS").map(|v| v as u8)
}

/// Sets the type-of-service byte of an IPv4 socket. TCP keeps the two ECN bits to itself.
pub fn set_tos(socket: impl AsFd, tos: u8) -> Result<()> {
    write(socket, libc::IPPROTO_IP, libc::IP_TOS, c_int::from(tos), "set IP_TOS")
}

/// Traffic class of an IPv6 socket (`IPV6_TCLASS`).
pub fn tclass(socket: impl AsFd) -> Result<u8> {
    read::<c_int>(socket, libc::IPPROTO_IPV6, libc::IPV6_TCLASS, "read IPV6_TCLASS").map(|v| v as u8)
}

/// Sets the traffic class of an IPv6 socket.
pub fn set_tclass(socket: impl AsFd, tclass: u8) -> Result<()> {
    write(socket, libc::IPPROTO_IPV6, libc::IPV6_TCLASS, c_int::from(tclass), "set IPV6_TCLASS")
}

/// Upper bound of the socket's pacing rate, bytes a second (`SO_MAX_PACING_RATE`); `u64::MAX` means none.
pub fn max_pacing_rate(socket: impl AsFd) -> Result<u64> {
    read::<u64>(socket, libc::SOL_SOCKET, libc::SO_MAX_PACING_RATE, "read SO_MAX_PACING_RATE")
}

/// Bounds the socket's pacing rate, bytes a second. TCP paces by itself, UDP only below an `fq` qdisc.
pub fn set_max_pacing_rate(socket: impl AsFd, bytes_per_second: u64) -> Result<()> {
    write(socket, libc::SOL_SOCKET, libc::SO_MAX_PACING_RATE, bytes_per_second, "set SO_MAX_PACING_RATE")
}

/// Makes the kernel report with each message how many datagrams this socket has dropped so far (`SO_RXQ_OVFL`).
pub fn set_report_drops(socket: impl AsFd, on: bool) -> Result<()> {
    write(socket, libc::SOL_SOCKET, libc::SO_RXQ_OVFL, c_int::from(on), "set SO_RXQ_OVFL")
}

/// Makes the kernel stamp each received message with CLOCK_REALTIME in nanoseconds (`SO_TIMESTAMPNS`).
pub fn set_receive_timestamps(socket: impl AsFd, on: bool) -> Result<()> {
    write(socket, libc::SOL_SOCKET, libc::SO_TIMESTAMPNS, c_int::from(on), "set SO_TIMESTAMPNS")
}

/// Lets a socket send with `MSG_ZEROCOPY` (`SO_ZEROCOPY`); see [`crate::zerocopy`].
pub fn set_zerocopy(socket: impl AsFd, on: bool) -> Result<()> {
    write(socket, libc::SOL_SOCKET, libc::SO_ZEROCOPY, c_int::from(on), "set SO_ZEROCOPY")
}

/// Lets the kernel hand over several UDP datagrams of equal size as one message (`UDP_GRO`).
pub fn set_udp_gro(socket: impl AsFd, on: bool) -> Result<()> {
    write(socket, libc::SOL_UDP, libc::UDP_GRO, c_int::from(on), "set UDP_GRO")
}

/// CPU that last processed a packet for this socket (`SO_INCOMING_CPU`); none before the first packet.
pub fn incoming_cpu(socket: impl AsFd) -> Result<Option<usize>> {
    let cpu = read::<c_int>(socket, libc::SOL_SOCKET, libc::SO_INCOMING_CPU, "read SO_INCOMING_CPU")?;
    Ok(usize::try_from(cpu).ok())
}

/// Identity of the receive queue (NAPI instance) that fed this socket last; none for links without NAPI such as
/// loopback (`SO_INCOMING_NAPI_ID`).
pub fn incoming_napi_id(socket: impl AsFd) -> Result<Option<u32>> {
    let id = read::<c_uint>(socket, libc::SOL_SOCKET, libc::SO_INCOMING_NAPI_ID, "read SO_INCOMING_NAPI_ID")?;
    Ok((id != 0).then_some(id))
}

/// Receive buffer in bytes as the kernel counts it, twice what was asked for (`SO_RCVBUF`).
pub fn receive_buffer(socket: impl AsFd) -> Result<u32> {
    read::<c_int>(socket, libc::SOL_SOCKET, libc::SO_RCVBUF, "read SO_RCVBUF").map(unsigned)
}

/// Send buffer in bytes as the kernel counts it, twice what was asked for (`SO_SNDBUF`).
pub fn send_buffer(socket: impl AsFd) -> Result<u32> {
    read::<c_int>(socket, libc::SOL_SOCKET, libc::SO_SNDBUF, "read SO_SNDBUF").map(unsigned)
}

/// Asks for a receive buffer of `bytes` and returns what the kernel granted, as [`receive_buffer`] counts.
///
/// Past `net.core.rmem_max` only CAP_NET_ADMIN helps (`SO_RCVBUFFORCE`); without it the kernel grants less without an
/// error, so compare the answer.
pub fn set_receive_buffer(socket: impl AsFd, bytes: u32) -> Result<u32> {
    let fd = socket.as_fd();
    set_buffer(fd, bytes, (libc::SO_RCVBUFFORCE, "set SO_RCVBUFFORCE"), (libc::SO_RCVBUF, "set SO_RCVBUF"))?;
    receive_buffer(fd)
}

/// Asks for a send buffer of `bytes` and returns what the kernel granted; see [`set_receive_buffer`].
pub fn set_send_buffer(socket: impl AsFd, bytes: u32) -> Result<u32> {
    let fd = socket.as_fd();
    set_buffer(fd, bytes, (libc::SO_SNDBUFFORCE, "set SO_SNDBUFFORCE"), (libc::SO_SNDBUF, "set SO_SNDBUF"))?;
    send_buffer(fd)
}

/// Sends acknowledgements at once while on (`TCP_QUICKACK`). The kernel may turn it off again by itself.
pub fn set_quickack(socket: impl AsFd, on: bool) -> Result<()> {
    write(socket, libc::IPPROTO_TCP, libc::TCP_QUICKACK, c_int::from(on), "set TCP_QUICKACK")
}

/// Whether small segments are sent at once (`TCP_NODELAY`).
pub fn nodelay(socket: impl AsFd) -> Result<bool> {
    read::<c_int>(socket, libc::IPPROTO_TCP, libc::TCP_NODELAY, "read TCP_NODELAY").map(|v| v != 0)
}

/// Sends small segments at once, without waiting for acknowledgements (`TCP_NODELAY`).
pub fn set_nodelay(socket: impl AsFd, on: bool) -> Result<()> {
    write(socket, libc::IPPROTO_TCP, libc::TCP_NODELAY, c_int::from(on), "set TCP_NODELAY")
}

/// How long sent data may stay unacknowledged before the connection fails, milliseconds (`TCP_USER_TIMEOUT`, RFC 5482).
pub fn set_user_timeout(socket: impl AsFd, timeout: Duration) -> Result<()> {
    let millis = c_uint::try_from(timeout.as_millis()).unwrap_or(c_uint::MAX);
    write(socket, libc::IPPROTO_TCP, libc::TCP_USER_TIMEOUT, millis, "set TCP_USER_TIMEOUT")
}

/// Turns keepalive probes on.
pub fn set_keepalive(socket: impl AsFd, probing: KeepAlive) -> Result<()> {
    let fd = socket.as_fd();
    let seconds = |d: Duration| c_int::try_from(d.as_secs().max(1)).unwrap_or(c_int::MAX);
    write(fd, libc::IPPROTO_TCP, libc::TCP_KEEPIDLE, seconds(probing.idle), "set TCP_KEEPIDLE")?;
    write(fd, libc::IPPROTO_TCP, libc::TCP_KEEPINTVL, seconds(probing.interval), "set TCP_KEEPINTVL")?;
    write(fd, libc::IPPROTO_TCP, libc::TCP_KEEPCNT, probing.probes, "set TCP_KEEPCNT")?;
    write(fd, libc::SOL_SOCKET, libc::SO_KEEPALIVE, 1 as c_int, "set SO_KEEPALIVE")
}

/// Binds to the network interface with this index (`SO_BINDTOIFINDEX`, `include/uapi/asm-generic/socket.h`, Linux 5.0); 0
/// unbinds. The kernel takes an index that no interface has: nothing comes to the socket then. Needs no privilege while it is
/// not bound to one (5.7).
pub fn bind_to_interface(socket: impl AsFd, index: i32) -> Result<()> {
    write(socket, libc::SOL_SOCKET, libc::SO_BINDTOIFINDEX, index, "set SO_BINDTOIFINDEX")
}

/// Bytes in the send queue that the peer has not acknowledged yet (TCP) or that have not left the socket (UDP)
/// (`SIOCOUTQ`).
pub fn unsent_bytes(socket: impl AsFd) -> Result<u32> {
    queued(socket, libc::TIOCOUTQ, "read SIOCOUTQ")
}

/// Bytes that can be read now: all of them for TCP, the next datagram's for UDP (`SIOCINQ`).
pub fn unread_bytes(socket: impl AsFd) -> Result<u32> {
    queued(socket, libc::FIONREAD, "read SIOCINQ")
}

/// Forbids routers to cut an IPv4 socket's datagrams (`IP_MTU_DISCOVER` = `IP_PMTUDISC_DO`, ip(7)); too long ones are
/// then refused with `EMSGSIZE`.
pub fn set_dont_fragment(socket: impl AsFd) -> Result<()> {
    write(socket, libc::IPPROTO_IP, libc::IP_MTU_DISCOVER, libc::IP_PMTUDISC_DO, "set IP_MTU_DISCOVER")
}

/// The same for an IPv6 socket (`IPV6_MTU_DISCOVER`, `IPV6_DONTFRAG`, ipv6(7)): the sender does not cut either.
pub fn set_dont_fragment_v6(socket: impl AsFd) -> Result<()> {
    let fd = socket.as_fd();
    let always = libc::IP_PMTUDISC_DO;
    write(fd, libc::IPPROTO_IPV6, libc::IPV6_MTU_DISCOVER, always, "set IPV6_MTU_DISCOVER")?;
    write(fd, libc::IPPROTO_IPV6, libc::IPV6_DONTFRAG, 1 as c_int, "set IPV6_DONTFRAG")
}

/// Sends datagrams without a checksum: UDP over IPv4 (`SO_NO_CHECK`, socket(7)).
pub fn set_no_checksum(socket: impl AsFd, on: bool) -> Result<()> {
    write(socket, libc::SOL_SOCKET, libc::SO_NO_CHECK, c_int::from(on), "set SO_NO_CHECK")
}

/// The same over IPv6 (`UDP_NO_CHECK6_TX`, udp(7)), where it is an exception that a receiver must allow (RFC 6935).
pub fn set_no_checksum_v6(socket: impl AsFd, on: bool) -> Result<()> {
    const UDP_NO_CHECK6_TX: c_int = 101;
    write(socket, libc::SOL_UDP, UDP_NO_CHECK6_TX, c_int::from(on), "set UDP_NO_CHECK6_TX")
}

/// Cuts what is sent into datagrams of so many bytes (`UDP_SEGMENT`, udp(7)); 0 is off.
pub fn set_udp_segment(socket: impl AsFd, bytes: u16) -> Result<()> {
    write(socket, libc::SOL_UDP, libc::UDP_SEGMENT, c_int::from(bytes), "set UDP_SEGMENT")
}

/// Time stamps of what is received and sent, in software and by the NIC, each sent datagram's with its number
/// (`SO_TIMESTAMPING`, Documentation/networking/timestamping.rst).
pub fn set_all_timestamps(socket: impl AsFd) -> Result<()> {
    /// `SOF_TIMESTAMPING_OPT_TX_SWHW`: both stamps of one datagram.
    const OPT_TX_SWHW: c_uint = 1 << 14;
    let flags = libc::SOF_TIMESTAMPING_RX_SOFTWARE
        | libc::SOF_TIMESTAMPING_TX_SOFTWARE
        | libc::SOF_TIMESTAMPING_RX_HARDWARE
        | libc::SOF_TIMESTAMPING_TX_HARDWARE
        | libc::SOF_TIMESTAMPING_SOFTWARE
        | libc::SOF_TIMESTAMPING_RAW_HARDWARE
        | libc::SOF_TIMESTAMPING_OPT_ID
        | libc::SOF_TIMESTAMPING_OPT_TSONLY
        | OPT_TX_SWHW;
    write(socket, libc::SOL_SOCKET, libc::SO_TIMESTAMPING, flags, "set SO_TIMESTAMPING")
}

/// Leaves the choice of the local port to connect(2) although bind(2) names an address (`IP_BIND_ADDRESS_NO_PORT`,
/// ip(7); it covers IPv6 too): more connections then fit.
pub fn set_bind_address_no_port(socket: impl AsFd, on: bool) -> Result<()> {
    write(
        socket,
        libc::IPPROTO_IP,
        libc::IP_BIND_ADDRESS_NO_PORT,
        c_int::from(on),
        "set IP_BIND_ADDRESS_NO_PORT",
    )
}

/// Takes and clears the socket's pending error (`SO_ERROR`): the outcome of a nonblocking connect.
pub fn take_error(socket: impl AsFd) -> Result<Option<std::io::Error>> {
    let code = read::<c_int>(socket, libc::SOL_SOCKET, libc::SO_ERROR, "read SO_ERROR")?;
    Ok((code != 0).then(|| std::io::Error::from_raw_os_error(code)))
}

fn set_buffer(
    socket: impl AsFd,
    bytes: u32,
    forced: (c_int, &'static str),
    plain: (c_int, &'static str),
) -> Result<()> {
    let fd = socket.as_fd();
    match write(fd, libc::SOL_SOCKET, forced.0, bytes, forced.1) {
        Err(e) if e.raw_os_error() == Some(libc::EPERM) => {
            write(fd, libc::SOL_SOCKET, plain.0, bytes, plain.1)
        }
        other => other,
    }
}

/// Packets dropped at a socket so far, for want of room or a wrong checksum (`SO_MEMINFO`, `SK_MEMINFO_DROPS` of
/// include/uapi/linux/sock_diag.h). It wraps.
pub fn drops(socket: impl AsFd) -> Result<u32> {
    const DROPS: usize = 8;
    let values: [u32; MEMINFO_VALUES] = read(socket, libc::SOL_SOCKET, libc::SO_MEMINFO, "read SO_MEMINFO")?;
    Ok(values[DROPS])
}

fn queued(socket: impl AsFd, request: libc::Ioctl, operation: &'static str) -> Result<u32> {
    let fd = socket.as_fd().as_raw_fd();
    let mut bytes: c_int = 0;
    // SAFETY: both requests write one int through the pointer, which outlives the call.
    let code = unsafe { libc::ioctl(fd, request, &raw mut bytes) };
    if code < 0 {
        return Err(SysError::last(operation, describe(fd)));
    }
    Ok(unsigned(bytes))
}

/// `SK_MEMINFO_VARS` (include/uapi/linux/sock_diag.h, since Linux 4.12).
const MEMINFO_VALUES: usize = 9;

/// Types whose every bit pattern is a value, so that the kernel may fill them.
trait Plain: Copy + Default {}
impl Plain for c_int {}
impl Plain for c_uint {}
impl Plain for u64 {}
impl Plain for [u32; MEMINFO_VALUES] {}

fn read<T: Plain>(socket: impl AsFd, level: c_int, name: c_int, operation: &'static str) -> Result<T> {
    let fd = socket.as_fd().as_raw_fd();
    let mut value = T::default();
    let mut length = mem::size_of::<T>() as libc::socklen_t;
    // SAFETY: `value` is writable for `length` bytes, any bits are a valid `T` (see `Plain`), both outlive the call.
    let code = unsafe { libc::getsockopt(fd, level, name, (&raw mut value).cast(), &raw mut length) };
    if code < 0 {
        return Err(SysError::last(operation, describe(fd)));
    }
    Ok(value)
}

fn write<T: Plain>(
    socket: impl AsFd,
    level: c_int,
    name: c_int,
    value: T,
    operation: &'static str,
) -> Result<()> {
    let fd = socket.as_fd().as_raw_fd();
    let length = mem::size_of::<T>() as libc::socklen_t;
    // SAFETY: `value` is readable for `length` bytes and outlives the call; the kernel copies it.
    let code = unsafe { libc::setsockopt(fd, level, name, (&raw const value).cast(), length) };
    if code < 0 {
        return Err(SysError::last(operation, describe(fd)));
    }
    Ok(())
}

fn unsigned(value: c_int) -> u32 {
    u32::try_from(value).unwrap_or(0)
}

fn describe(fd: c_int) -> String {
    format!("socket {fd}")
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write;
    use std::net::{TcpListener, TcpStream, UdpSocket};

    fn pair() -> (TcpStream, TcpStream) {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let client = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        (client, listener.accept().unwrap().0)
    }

    #[test]
    fn congestion_control_is_set_and_read() {
        let (client, _server) = pair();
        let offered = available_congestion_controls().unwrap();
        assert!(offered.contains(&"reno".to_owned()));
        set_congestion(&client, "reno").unwrap();
        assert_eq!(congestion(&client).unwrap(), "reno");
        let refused = set_congestion(&client, "nosuch").unwrap_err();
        assert_eq!(refused.raw_os_error(), Some(libc::ENOENT));
        assert!(refused.to_string().contains("to nosuch"));
    }

    #[test]
    fn options_of_a_connection_are_read_back() {
        let (client, server) = pair();
        set_nodelay(&client, true).unwrap();
        assert!(nodelay(&client).unwrap());
        set_quickack(&client, true).unwrap();
        set_tos(&client, 0x28).unwrap();
        assert_eq!(tos(&client).unwrap(), 0x28);
        assert!(mss(&client).unwrap() > 500);
        set_max_pacing_rate(&client, 7_000_000_000).unwrap();
        assert_eq!(max_pacing_rate(&client).unwrap(), 7_000_000_000);
        set_user_timeout(&client, Duration::from_secs(9)).unwrap();
        let second = Duration::from_secs(1);
        set_keepalive(&client, KeepAlive { idle: second, interval: second, probes: 3 }).unwrap();
        assert!(take_error(&client).unwrap().is_none());
        (&client).write_all(b"x").unwrap();
        assert_eq!(server.peek(&mut [0; 4]).unwrap(), 1);
        assert!(incoming_cpu(&server).unwrap().is_some());
        incoming_napi_id(&server).unwrap();
    }

    #[test]
    fn mss_bounds_what_is_negotiated() {
        let listener = socket2::Socket::new(socket2::Domain::IPV4, socket2::Type::STREAM, None).unwrap();
        set_mss(&listener, 700).unwrap();
        listener.bind(&"127.0.0.1:0".parse::<std::net::SocketAddr>().unwrap().into()).unwrap();
        listener.listen(1).unwrap();
        let client = TcpStream::connect(listener.local_addr().unwrap().as_socket().unwrap()).unwrap();
        assert!(mss(&client).unwrap() <= 700);
    }

    #[test]
    fn buffers_report_what_was_granted() {
        let (client, _server) = pair();
        assert_eq!(set_send_buffer(&client, 100_000).unwrap(), 200_000);
        assert_eq!(set_receive_buffer(&client, 150_000).unwrap(), 300_000);
    }

    #[test]
    fn udp_options_are_accepted() {
        let socket = UdpSocket::bind("[::1]:0").unwrap();
        set_report_drops(&socket, true).unwrap();
        set_receive_timestamps(&socket, true).unwrap();
        set_udp_gro(&socket, true).unwrap();
        set_tclass(&socket, 0x1c).unwrap();
        assert_eq!(tclass(&socket).unwrap(), 0x1c);
        assert!(set_mss(&socket, 1000).is_err());
    }

    #[test]
    fn queues_count_bytes() {
        let (client, server) = pair();
        (&client).write_all(&[7; 1000]).unwrap();
        server.peek(&mut [0; 1]).unwrap();
        assert_eq!(unread_bytes(&server).unwrap(), 1000);
        assert!(unsent_bytes(&client).unwrap() <= 1000);
    }
}
