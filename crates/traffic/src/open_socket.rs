//! Single sockets, for those who judge what the stack delivers: UDP, TCP, raw IP. What has not been fetched waits in the
//! kernel's buffers, which are bounded.

use std::io::{self, IoSliceMut, Write};
use std::net::{IpAddr, SocketAddr, SocketAddrV4, SocketAddrV6};
use std::os::fd::{AsFd, AsRawFd};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use linerate_model::bench::bytes::Bytes;
use linerate_model::bench::frame::{SendRefusal, SendReport};
use linerate_model::bench::socket::{Received, SocketKind, SocketOptions};
use linerate_sys::error::Result;
use linerate_sys::poll::{PollSet, Readiness};
use linerate_sys::{SysError, sockopt};
use nix::errno::Errno;
use nix::sys::socket::{ControlMessageOwned, MsgFlags, SockaddrStorage, recvmsg};
use nix::sys::time::TimeSpec;
use socket2::{Domain, InterfaceIndexOrAddress, Protocol, Socket, Type};

const BUFFER_BYTES: u32 = 16 << 20;
const LARGEST_BYTES: usize = 65536;
const CONNECT_LIMIT: Duration = Duration::from_secs(5);
const SEND_LIMIT: Duration = Duration::from_secs(5);
/// A listener that is to send waits so long for someone to send to.
const ACCEPT_LIMIT: Duration = Duration::from_secs(1);
/// The kernel begins to stamp what it receives from a work queue (net_enable_timestamp()).
const STAMPS_BEGIN: Duration = Duration::from_millis(50);
const BACKLOG: i32 = 64;
/// Most bytes of one answer: it travels as text.
const MOST_BYTES: usize = 4 << 20;
/// `SO_EE_ORIGIN_TIMESTAMPING` (include/uapi/linux/errqueue.h).
const ORIGIN_TIMESTAMPING: u8 = 4;

/// A socket, open until dropped.
#[derive(Debug)]
pub struct OpenSocket {
    socket: Socket,
    listens: bool,
    is_stream: bool,
    timestamps: bool,
    /// Connections that a listener has let in.
    accepted: Vec<Socket>,
    buffer: Vec<u8>,
}

impl OpenSocket {
    /// Opens, binds, and connects or listens, in the calling thread's network namespace.
    ///
    /// # Errors
    /// The kernel's refusal of any of that, with the option's name.
    pub fn open(options: &SocketOptions) -> Result<Self> {
        let (kind, protocol) = match options.kind {
            SocketKind::Udp => (Type::DGRAM, Protocol::UDP),
            SocketKind::Tcp => (Type::STREAM, Protocol::TCP),
            SocketKind::Raw(number) => (Type::RAW, Protocol::from(i32::from(number))),
        };
        let failed = |operation| move |error| SysError::new(operation, options.bind.to_string(), error);
        let socket = Socket::new(Domain::for_address(options.bind), kind, Some(protocol))
            .map_err(failed("open a socket for"))?;
        let is_stream = options.kind == SocketKind::Tcp;
        set_options(&socket, options)?;
        socket.set_write_timeout(Some(SEND_LIMIT)).map_err(failed("set a timeout for"))?;
        if is_stream {
            socket.set_reuse_address(true).map_err(failed("set SO_REUSEADDR for"))?;
        }
        socket.bind(&options.bind.into()).map_err(failed("bind"))?;
        let listens = is_stream && options.connect.is_none();
        match options.connect {
            Some(address) => {
                let connected = socket.connect_timeout(&address.into(), CONNECT_LIMIT);
                connected.map_err(|error| SysError::new("connect to", address.to_string(), error))?;
            }
            None if listens => {
                socket.listen(BACKLOG).map_err(failed("listen on"))?;
                socket.set_nonblocking(true).map_err(failed("set O_NONBLOCK for"))?;
            }
            None => {}
        }
        join_groups(&socket, options)?;
        let buffer = vec![0; LARGEST_BYTES];
        Ok(Self { socket, listens, is_stream, timestamps: options.timestamps, accepted: Vec::new(), buffer })
    }

    /// The local port; 0 for raw IP.
    pub fn port(&self) -> u16 {
        let local = self.socket.local_addr().ok().and_then(|address| address.as_socket());
        local.map_or(0, |address| address.port())
    }

    /// Sends one datagram, or bytes of a stream: that of a listener which came last. A refusal is in the report.
    pub fn send(&mut self, bytes: &[u8], to: Option<SocketAddr>) -> SendReport {
        let sent = match to {
            _ if self.is_stream => self.send_stream(bytes),
            Some(to) => self.socket.send_to(bytes, &to.into()).map(drop),
            None => self.socket.send(bytes).map(drop),
        };
        match sent {
            Ok(()) => SendReport { sent: 1, refused: Vec::new() },
            Err(error) => {
                let errno = error.raw_os_error().unwrap_or(0);
                let refusal = SendRefusal { index: 0, errno, reason: error.to_string() };
                SendReport { sent: 0, refused: vec![refusal] }
            }
        }
    }

    fn send_stream(&mut self, bytes: &[u8]) -> io::Result<()> {
        if !self.listens {
            return (&self.socket).write_all(bytes);
        }
        let end = Instant::now() + ACCEPT_LIMIT;
        while self.accept()? == 0 && self.accepted.is_empty() && Instant::now() < end {
            self.wait(end.saturating_duration_since(Instant::now()))?;
        }
        let connection =
            self.accepted.last_mut().ok_or_else(|| io::Error::from(io::ErrorKind::NotConnected))?;
        connection.write_all(bytes)
    }

    /// Takes what came, in order of arrival: at most `most`, until nothing came for `idle`, at the latest after `limit`, or
    /// once 4 MiB are there.
    ///
    /// # Errors
    /// What the kernel said when there was nothing to return; else that is told by the next call.
    pub fn receive(&mut self, most: usize, idle: Duration, limit: Duration) -> Result<Vec<Received>> {
        self.receive_unless(most, idle, limit, &AtomicBool::new(false))
    }

    /// [`Self::receive`], ended when it is told to give up.
    ///
    /// # Errors
    /// As there.
    pub fn receive_unless(
        &mut self,
        most: usize,
        idle: Duration,
        limit: Duration,
        give_up: &AtomicBool,
    ) -> Result<Vec<Received>> {
        const LONGEST_WAIT: Duration = Duration::from_millis(50);
        let end = Instant::now() + limit;
        let mut quiet_end = Instant::now() + idle;
        let (mut all, mut bytes) = (Vec::new(), 0);
        while all.len() < most && bytes < MOST_BYTES {
            match self.take() {
                Ok(Some(received)) => {
                    bytes += received.bytes.len();
                    all.push(received);
                    quiet_end = Instant::now() + idle;
                }
                Ok(None) => {
                    let left = quiet_end.min(end).saturating_duration_since(Instant::now());
                    if left.is_zero() || give_up.load(Ordering::Relaxed) {
                        break;
                    }
                    self.wait(left.min(LONGEST_WAIT))
                        .map_err(|error| SysError::new("wait for", "socket", error))?;
                }
                Err(error) if all.is_empty() => {
                    return Err(SysError::new("receive from", "socket", error));
                }
                Err(_) => break,
            }
        }
        Ok(all)
    }

    /// One thing that is there.
    fn take(&mut self) -> io::Result<Option<Received>> {
        if self.listens {
            return self.take_from_accepted();
        }
        if self.timestamps
            && let Some(stamp) = read(&self.socket, &mut self.buffer, MsgFlags::MSG_ERRQUEUE)?
        {
            return Ok(Some(stamp));
        }
        let received = read(&self.socket, &mut self.buffer, MsgFlags::empty())?;
        // An empty read of a stream is its end.
        Ok(received.filter(|received| !self.is_stream || !received.bytes.is_empty()))
    }

    fn take_from_accepted(&mut self) -> io::Result<Option<Received>> {
        self.accept()?;
        let mut index = 0;
        while index < self.accepted.len() {
            match read(&self.accepted[index], &mut self.buffer, MsgFlags::empty()) {
                Ok(Some(received)) if received.bytes.is_empty() => drop(self.accepted.remove(index)),
                Ok(Some(received)) => return Ok(Some(Received { from: None, ..received })),
                Ok(None) => index += 1,
                Err(_) => drop(self.accepted.remove(index)),
            }
        }
        Ok(None)
    }

    /// Lets in whoever waits; how many that were.
    fn accept(&mut self) -> io::Result<usize> {
        let mut count = 0;
        loop {
            match self.socket.accept() {
                Ok((connection, _)) => {
                    connection.set_write_timeout(Some(SEND_LIMIT))?;
                    self.accepted.push(connection);
                    count += 1;
                }
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(count),
                Err(error) => return Err(error),
            }
        }
    }

    fn wait(&self, limit: Duration) -> io::Result<()> {
        // What hangs up stays ready: without a rest it would be asked over and over.
        const REST: Duration = Duration::from_millis(1);
        let mut set = PollSet::new();
        set.add(self.socket.as_fd(), Readiness::READ);
        for connection in &self.accepted {
            set.add(connection.as_fd(), Readiness::READ);
        }
        match set.wait(Some(limit.as_nanos() as u64)) {
            Err(error) if error.kind() != io::ErrorKind::Interrupted => Err(error),
            _ => {
                std::thread::sleep(REST.min(limit));
                Ok(())
            }
        }
    }
}

fn set_options(socket: &Socket, options: &SocketOptions) -> Result<()> {
    let failed = |operation, object: &str| {
        let object = object.to_owned();
        move |error| SysError::new(operation, object, error)
    };
    let v4 = options.bind.is_ipv4();
    if let Some(link) = &options.link {
        socket.bind_device(Some(link.as_bytes())).map_err(failed("set SO_BINDTODEVICE to", link))?;
    }
    sockopt::set_receive_buffer(socket, BUFFER_BYTES)?;
    if options.gro {
        sockopt::set_udp_gro(socket, true)?;
    }
    if options.segment_bytes != 0 {
        sockopt::set_udp_segment(socket, options.segment_bytes)?;
    }
    match (options.no_checksum, v4) {
        (false, _) => {}
        (true, true) => sockopt::set_no_checksum(socket, true)?,
        (true, false) => sockopt::set_no_checksum_v6(socket, true)?,
    }
    match (options.dont_fragment, v4) {
        (false, _) => {}
        (true, true) => sockopt::set_dont_fragment(socket)?,
        (true, false) => sockopt::set_dont_fragment_v6(socket)?,
    }
    if options.timestamps {
        sockopt::set_all_timestamps(socket)?;
        std::thread::sleep(STAMPS_BEGIN);
    }
    if options.kind == SocketKind::Udp {
        socket.set_broadcast(true).map_err(failed("set SO_BROADCAST on", "socket"))?;
    }
    Ok(())
}

fn join_groups(socket: &Socket, options: &SocketOptions) -> Result<()> {
    if options.groups.is_empty() {
        return Ok(());
    }
    let index = match &options.link {
        None => 0,
        Some(link) => nix::net::if_::if_nametoindex(link.as_str())
            .map_err(|error| SysError::new("find link", link.clone(), error.into()))?,
    };
    for group in &options.groups {
        let joined = match group {
            IpAddr::V4(group) => socket.join_multicast_v4_n(group, &InterfaceIndexOrAddress::Index(index)),
            IpAddr::V6(group) => socket.join_multicast_v6(group, index),
        };
        joined.map_err(|error| SysError::new("join group", group.to_string(), error))?;
    }
    Ok(())
}

/// Reads one message without waiting; `None` where there is none, an empty one at the end of a stream.
fn read(socket: &Socket, buffer: &mut [u8], queue: MsgFlags) -> io::Result<Option<Received>> {
    let mut control = nix::cmsg_space!([TimeSpec; 3], [u8; 64], i32, u32);
    let mut vector = [IoSliceMut::new(buffer)];
    let flags = queue | MsgFlags::MSG_DONTWAIT;
    let message = match recvmsg::<SockaddrStorage>(socket.as_raw_fd(), &mut vector, Some(&mut control), flags)
    {
        Ok(message) => message,
        Err(Errno::EAGAIN | Errno::EINTR) => return Ok(None),
        // A connected datagram socket tells so what ICMP says of an earlier datagram.
        Err(error) => return Err(error.into()),
    };
    let (count, from) = (message.bytes, message.address.and_then(|address| address_of(&address)));
    let mut received = Received {
        bytes: Bytes::default(),
        from,
        segment_bytes: None,
        stamp_of: None,
        software_ns: None,
        hardware_ns: None,
    };
    for control in message.cmsgs()? {
        match control {
            ControlMessageOwned::ScmTimestampsns(stamps) => {
                received.software_ns = nanoseconds(stamps.system);
                received.hardware_ns = nanoseconds(stamps.hw_raw);
            }
            ControlMessageOwned::UdpGroSegments(bytes) => received.segment_bytes = u16::try_from(bytes).ok(),
            ControlMessageOwned::Ipv4RecvErr(error, _) | ControlMessageOwned::Ipv6RecvErr(error, _)
                if error.ee_origin == ORIGIN_TIMESTAMPING =>
            {
                received.stamp_of = Some(error.ee_data);
            }
            _ => {}
        }
    }
    received.bytes = Bytes(buffer[..count].to_vec());
    Ok(Some(received))
}

fn address_of(address: &SockaddrStorage) -> Option<SocketAddr> {
    let v4 = address.as_sockaddr_in().map(|v4| SocketAddr::V4(SocketAddrV4::from(*v4)));
    v4.or_else(|| address.as_sockaddr_in6().map(|v6| SocketAddr::V6(SocketAddrV6::from(*v6))))
}

/// A stamp; none is all zero.
fn nanoseconds(time: TimeSpec) -> Option<u64> {
    let seconds = u64::try_from(time.tv_sec()).ok()?;
    let whole = seconds.checked_mul(1_000_000_000)?.checked_add(u64::try_from(time.tv_nsec()).ok()?)?;
    (whole != 0).then_some(whole)
}

#[cfg(test)]
mod tests {
    use linerate_testkit::need;

    use super::*;

    const IDLE: Duration = Duration::from_millis(200);
    const LIMIT: Duration = Duration::from_secs(5);

    fn options(kind: SocketKind) -> SocketOptions {
        SocketOptions {
            kind,
            bind: "127.0.0.1:0".parse().unwrap(),
            connect: None,
            link: None,
            gro: false,
            segment_bytes: 0,
            no_checksum: false,
            groups: Vec::new(),
            dont_fragment: false,
            timestamps: false,
        }
    }

    fn at(socket: &OpenSocket) -> SocketAddr {
        SocketAddr::from(([127, 0, 0, 1], socket.port()))
    }

    #[test]
    fn segments_are_merged_again_and_told_of() {
        let mut to = OpenSocket::open(&SocketOptions { gro: true, ..options(SocketKind::Udp) }).unwrap();
        let sender = SocketOptions { segment_bytes: 500, connect: Some(at(&to)), ..options(SocketKind::Udp) };
        let mut from = OpenSocket::open(&sender).unwrap();
        assert_eq!(from.send(&[7; 1700], None).sent, 1);
        let got = to.receive(10, IDLE, LIMIT).unwrap();
        assert_eq!(got.iter().map(|one| one.bytes.len()).sum::<usize>(), 1700);
        assert_eq!((got[0].segment_bytes, got[0].from), (Some(500), Some(at(&from))), "{got:?}");
    }

    #[test]
    fn sent_and_received_datagrams_are_stamped() {
        let mut to =
            OpenSocket::open(&SocketOptions { timestamps: true, ..options(SocketKind::Udp) }).unwrap();
        let mut from = OpenSocket::open(&SocketOptions {
            timestamps: true,
            no_checksum: true,
            dont_fragment: true,
            ..options(SocketKind::Udp)
        })
        .unwrap();
        for _ in 0..3 {
            assert_eq!(from.send(b"stamped", Some(at(&to))).sent, 1);
        }
        let received = to.receive(3, IDLE, LIMIT).unwrap();
        assert_eq!(received.len(), 3);
        assert!(
            received.iter().all(|one| one.software_ns.is_some() && one.stamp_of.is_none()),
            "{received:?}"
        );
        let sent = from.receive(3, IDLE, LIMIT).unwrap();
        let numbers: Vec<_> = sent.iter().map(|one| one.stamp_of).collect();
        assert_eq!(numbers, [Some(0), Some(1), Some(2)], "{sent:?}");
        assert!(sent.iter().all(|one| one.software_ns.is_some()), "{sent:?}");
    }

    #[test]
    fn a_listener_receives_from_all_and_answers_the_last() {
        let mut to = OpenSocket::open(&options(SocketKind::Tcp)).unwrap();
        let sender = SocketOptions { connect: Some(at(&to)), ..options(SocketKind::Tcp) };
        let mut from = OpenSocket::open(&sender).unwrap();
        assert_eq!(from.send(b"there", None).sent, 1);
        let got = to.receive(1, IDLE, LIMIT).unwrap();
        assert_eq!(got[0].bytes.0, b"there");
        assert_eq!(to.send(b"and back", None).sent, 1);
        assert_eq!(from.receive(1, IDLE, LIMIT).unwrap()[0].bytes.0, b"and back");
        drop(from);
        assert!(to.receive(1, IDLE, LIMIT).unwrap().is_empty());
    }

    #[test]
    fn a_raw_socket_begins_at_the_ip_header() {
        need!(root());
        let mut to = OpenSocket::open(&options(SocketKind::Raw(253))).unwrap();
        let mut from = OpenSocket::open(&options(SocketKind::Raw(253))).unwrap();
        assert_eq!(from.send(b"raw", Some("127.0.0.1:0".parse().unwrap())).sent, 1);
        let got = to.receive(1, IDLE, LIMIT).unwrap();
        assert_eq!((got[0].bytes[0], &got[0].bytes[20..]), (0x45, b"raw".as_slice()));
    }

    #[test]
    fn refusals_are_reported() {
        let mut socket = OpenSocket::open(&options(SocketKind::Udp)).unwrap();
        let report = socket.send(&[0; 65_508], Some("127.0.0.1:9".parse().unwrap()));
        assert_eq!((report.sent, report.refused[0].errno), (0, nix::libc::EMSGSIZE));
        let none = SocketOptions { link: Some("lr-none".to_owned()), ..options(SocketKind::Udp) };
        assert_eq!(OpenSocket::open(&none).unwrap_err().raw_os_error(), Some(nix::libc::ENODEV));
        let begun = Instant::now();
        assert!(socket.receive(1, Duration::from_millis(50), LIMIT).unwrap().is_empty());
        assert!(begun.elapsed() < LIMIT);
    }
}
