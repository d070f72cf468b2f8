//! Traffic patterns and their parameters: one struct a pattern, so that an invalid mix cannot be written.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::profile::Profile;
use crate::units::{ByteCount, Rate};

/// Largest UDP payload over IPv4 without options: 65535 - 20 (IP) - 8 (UDP), RFC 768 and RFC 791.
pub const MAX_UDP_PAYLOAD: u64 = 65507;
/// Bytes at the start of each udp-stream datagram that linerate itself needs (sequence and send time).
pub const UDP_STREAM_HEADER: u64 = 16;

/// A traffic pattern with its parameters.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(tag = "kind", rename_all = "kebab-case")]
pub enum Workload {
    /// TCP, the dut sends.
    TcpStream(TcpStream),
    /// TCP, the peer sends.
    TcpReverse(TcpStream),
    /// TCP, both send at once.
    TcpBidir(TcpBidir),
    /// TCP request/response on standing connections.
    TcpRr(TcpRr),
    /// TCP connect, request, response, close.
    TcpCrr(TcpCrr),
    /// UDP, the dut sends.
    UdpStream(UdpStream),
    /// UDP request/response.
    UdpRr(UdpRr),
    /// What a uperf profile says; the dut is its master.
    Profile(ProfileRun),
}

/// A pattern without its parameters: the word that `-w` takes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum WorkloadKind {
    /// TCP, the dut sends.
    TcpStream,
    /// TCP, the peer sends.
    TcpReverse,
    /// TCP, both send at once.
    TcpBidir,
    /// TCP request/response on standing connections.
    TcpRr,
    /// TCP connect, request, response, close.
    TcpCrr,
    /// UDP, the dut sends.
    UdpStream,
    /// UDP request/response.
    UdpRr,
    /// What a uperf profile says.
    Profile,
}

impl WorkloadKind {
    /// Every kind that its word alone asks for, in the order of the documentation: a profile needs its file.
    pub const ALL: [Self; 7] = [
        Self::TcpStream,
        Self::TcpReverse,
        Self::TcpBidir,
        Self::TcpRr,
        Self::TcpCrr,
        Self::UdpStream,
        Self::UdpRr,
    ];

    /// The word for it.
    pub fn name(self) -> &'static str {
        match self {
            Self::TcpStream => "tcp-stream",
            Self::TcpReverse => "tcp-reverse",
            Self::TcpBidir => "tcp-bidir",
            Self::TcpRr => "tcp-rr",
            Self::TcpCrr => "tcp-crr",
            Self::UdpStream => "udp-stream",
            Self::UdpRr => "udp-rr",
            Self::Profile => "profile",
        }
    }

    /// Whether it counts transactions (request/response) rather than bytes.
    pub fn is_transactional(self) -> bool {
        matches!(self, Self::TcpRr | Self::TcpCrr | Self::UdpRr | Self::Profile)
    }

    /// Whether it runs over UDP.
    pub fn is_udp(self) -> bool {
        matches!(self, Self::UdpStream | Self::UdpRr)
    }
}

impl fmt::Display for WorkloadKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

/// A word that is no workload.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "'{0}' is no workload; there are tcp-stream, tcp-reverse, tcp-bidir, tcp-rr, tcp-crr, udp-stream, udp-rr"
)]
pub struct UnknownWorkload(pub String);

impl std::str::FromStr for WorkloadKind {
    type Err = UnknownWorkload;

    fn from_str(name: &str) -> Result<Self, Self::Err> {
        Self::ALL
            .into_iter()
            .chain([Self::Profile])
            .find(|k| k.name() == name)
            .ok_or_else(|| UnknownWorkload(name.to_owned()))
    }
}

/// How bytes are handed to the kernel.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum SendMethod {
    /// One `send(2)` a call: the kernel copies from user memory.
    #[default]
    Write,
    /// `sendfile(2)` from a memory file: no copy from user memory. TCP only.
    Sendfile,
    /// `send(2)` with `MSG_ZEROCOPY`, its completions read from the error queue: no copy from user memory, if the kernel
    /// can. TCP only.
    Zerocopy,
}

impl SendMethod {
    /// The word for it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Write => "write",
            Self::Sendfile => "sendfile",
            Self::Zerocopy => "zerocopy",
        }
    }
}

/// What is asked of a TCP socket before it connects; `None` leaves the kernel's default.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct TcpOptions {
    /// `SO_SNDBUF` and `SO_RCVBUF`, in bytes as given to the kernel (which doubles them).
    pub buffer_bytes: Option<ByteCount>,
    /// `TCP_NODELAY`.
    pub nodelay: bool,
    /// `TCP_MAXSEG`, bytes.
    pub mss_bytes: Option<u32>,
    /// `TCP_CONGESTION`, a name the kernel has.
    pub congestion: Option<String>,
    /// IPv4 TOS or IPv6 traffic class byte.
    pub tos: Option<u8>,
}

/// What is asked of a UDP socket; `None` leaves the kernel's default.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct UdpOptions {
    /// `SO_SNDBUF` and `SO_RCVBUF`, in bytes as given to the kernel (which doubles them).
    pub buffer_bytes: Option<ByteCount>,
    /// IPv4 TOS or IPv6 traffic class byte.
    pub tos: Option<u8>,
}

/// A TCP byte stream in one direction.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct TcpStream {
    /// Bytes a send call and the receiver's buffer.
    pub size: ByteCount,
    /// How the sender hands bytes to the kernel.
    pub send: SendMethod,
    /// Total rate over all streams (bits or packets, where a packet is one call); `None` is as fast as it goes.
    pub rate: Option<Rate>,
    /// Socket options of both ends.
    pub socket: TcpOptions,
}

/// TCP byte streams in both directions at once.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct TcpBidir {
    /// What each direction does; the rate is for each direction.
    pub stream: TcpStream,
    /// Both directions over a single connection rather than one each.
    pub one_connection: bool,
}

/// TCP request/response on standing connections.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct TcpRr {
    /// Request bytes, at least 1.
    pub request: ByteCount,
    /// Response bytes, at least 1.
    pub response: ByteCount,
    /// Requests outstanding on each connection; `None` is 1 for a closed loop and 1024 for an open one.
    pub in_flight: Option<u32>,
    /// Total requests a second over all connections: makes the load open-loop.
    pub rate: Option<Rate>,
    /// Socket options of both ends.
    pub socket: TcpOptions,
}

/// TCP connect, request, response, close; the server closes first.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct TcpCrr {
    /// Request bytes, at least 1.
    pub request: ByteCount,
    /// Response bytes, at least 1.
    pub response: ByteCount,
    /// Total transactions a second: makes the load open-loop, so far as one thread a stream can carry.
    pub rate: Option<Rate>,
    /// Socket options of both ends.
    pub socket: TcpOptions,
}

/// UDP datagrams from dut to peer.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct UdpStream {
    /// Payload bytes of a datagram, [`UDP_STREAM_HEADER`] to [`MAX_UDP_PAYLOAD`].
    pub size: ByteCount,
    /// Total rate over all streams, payload bits or packets; `None` is as fast as it goes.
    pub rate: Option<Rate>,
    /// Socket options of both ends.
    pub socket: UdpOptions,
}

/// UDP request/response.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct UdpRr {
    /// Request payload bytes, 1 to [`MAX_UDP_PAYLOAD`].
    pub request: ByteCount,
    /// Response payload bytes, 1 to [`MAX_UDP_PAYLOAD`].
    pub response: ByteCount,
    /// Requests outstanding on each socket; `None` is 1 for a closed loop and 1024 for an open one, or as many as the
    /// smaller message can tell apart.
    pub in_flight: Option<u32>,
    /// Total requests a second over all sockets: makes the load open-loop.
    pub rate: Option<Rate>,
    /// After this long without its response a request counts as lost, nanoseconds.
    pub timeout_ns: u64,
    /// Socket options of both ends.
    pub socket: UdpOptions,
}

/// A uperf profile. Its transactions are iterations of those that move payload.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ProfileRun {
    /// What is done.
    pub profile: Profile,
}

/// Requests outstanding on each connection of an open loop, where nothing else is asked for.
pub const OPEN_LOOP_IN_FLIGHT: u32 = 1024;

impl TcpRr {
    /// Requests outstanding on each connection, as asked for or by default.
    pub fn outstanding(&self) -> u32 {
        let default = if self.rate.is_some() { OPEN_LOOP_IN_FLIGHT } else { 1 };
        self.in_flight.unwrap_or(default)
    }
}

impl UdpRr {
    /// Requests outstanding on each socket, as asked for or by default.
    pub fn outstanding(&self) -> u32 {
        let default = if self.rate.is_some() { OPEN_LOOP_IN_FLIGHT } else { 1 };
        self.in_flight.unwrap_or_else(|| default.min(self.most_outstanding()))
    }

    /// How many answers can be told apart: each is matched by its request's number, cut to the smaller size, and n bytes
    /// tell 256^n requests apart, half of which may be late.
    pub fn most_outstanding(&self) -> u32 {
        let smaller = self.request.0.min(self.response.0).min(4);
        u32::try_from(256_u64.pow(u32::try_from(smaller).unwrap_or(4)) / 2).unwrap_or(u32::MAX)
    }
}

impl Workload {
    /// Its kind.
    pub fn kind(&self) -> WorkloadKind {
        match self {
            Self::TcpStream(_) => WorkloadKind::TcpStream,
            Self::TcpReverse(_) => WorkloadKind::TcpReverse,
            Self::TcpBidir(_) => WorkloadKind::TcpBidir,
            Self::TcpRr(_) => WorkloadKind::TcpRr,
            Self::TcpCrr(_) => WorkloadKind::TcpCrr,
            Self::UdpStream(_) => WorkloadKind::UdpStream,
            Self::UdpRr(_) => WorkloadKind::UdpRr,
            Self::Profile(_) => WorkloadKind::Profile,
        }
    }

    /// The rate asked for, if any.
    pub fn rate(&self) -> Option<Rate> {
        match self {
            Self::TcpStream(w) | Self::TcpReverse(w) => w.rate,
            Self::TcpBidir(w) => w.stream.rate,
            Self::TcpRr(w) => w.rate,
            Self::TcpCrr(w) => w.rate,
            Self::UdpStream(w) => w.rate,
            Self::UdpRr(w) => w.rate,
            Self::Profile(_) => None,
        }
    }

    /// The TCP options, where it is a TCP workload.
    pub fn tcp_options(&self) -> Option<&TcpOptions> {
        match self {
            Self::TcpStream(w) | Self::TcpReverse(w) => Some(&w.socket),
            Self::TcpBidir(w) => Some(&w.stream.socket),
            Self::TcpRr(w) => Some(&w.socket),
            Self::TcpCrr(w) => Some(&w.socket),
            Self::UdpStream(_) | Self::UdpRr(_) | Self::Profile(_) => None,
        }
    }

    /// The socket buffer asked for, if any.
    pub fn buffer_bytes(&self) -> Option<ByteCount> {
        match self {
            Self::UdpStream(w) => w.socket.buffer_bytes,
            Self::UdpRr(w) => w.socket.buffer_bytes,
            _ => self.tcp_options().and_then(|o| o.buffer_bytes),
        }
    }

    /// Bytes a call as shown in a table: the size of a stream, `request/response` of a transaction, a profile's label.
    pub fn size_text(&self) -> String {
        match self {
            Self::TcpStream(w) | Self::TcpReverse(w) => w.size.to_string(),
            Self::TcpBidir(w) => w.stream.size.to_string(),
            Self::UdpStream(w) => w.size.to_string(),
            Self::TcpRr(w) => format!("{}/{}", w.request, w.response),
            Self::TcpCrr(w) => format!("{}/{}", w.request, w.response),
            Self::UdpRr(w) => format!("{}/{}", w.request, w.response),
            Self::Profile(w) => w.profile.label(),
        }
    }

    /// Whether the given side sends the bulk of the bytes; both do in bidir and in request/response.
    pub fn dut_sends(&self) -> bool {
        !matches!(self, Self::TcpReverse(_))
    }

    /// Whether the peer sends payload.
    pub fn peer_sends(&self) -> bool {
        !matches!(self, Self::TcpStream(_) | Self::UdpStream(_))
    }
}
