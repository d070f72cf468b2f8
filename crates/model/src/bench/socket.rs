//! Single sockets, for cases that judge what the stack delivers.

use std::net::SocketAddr;

use serde::{Deserialize, Serialize};

use super::bytes::Bytes;

/// A socket to open.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SocketOptions {
    /// What kind.
    pub kind: SocketKind,
    /// Address to bind; port 0 leaves the port to the kernel.
    pub bind: SocketAddr,
    /// Address to connect to.
    pub connect: Option<SocketAddr>,
    /// Link to bind to (`SO_BINDTODEVICE`).
    pub link: Option<String>,
    /// Receives merged datagrams (`UDP_GRO`), each with its segment size.
    pub gro: bool,
    /// Sends segments of so many bytes (`UDP_SEGMENT`); 0 is off.
    pub segment_bytes: u16,
    /// Sends without a checksum (`SO_NO_CHECK`, UDP over IPv4).
    pub no_checksum: bool,
    /// Multicast groups to join on `link`.
    pub groups: Vec<std::net::IpAddr>,
    /// Never fragments (`IP_PMTUDISC_DO`).
    pub dont_fragment: bool,
    /// Time stamps of what is sent and received.
    pub timestamps: bool,
}

/// Kind of a socket.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum SocketKind {
    /// UDP.
    Udp,
    /// TCP: listens, and receives from whoever connects; or connects.
    Tcp,
    /// Raw IP of this protocol number; what is received begins at the IP header (IPv4) or behind it (IPv6).
    Raw(u8),
}

/// What a socket received.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Received {
    /// Payload.
    pub bytes: Bytes,
    /// From whom; `None` for a stream.
    pub from: Option<SocketAddr>,
    /// Size of the datagrams that were merged in it (`UDP_GRO`).
    pub segment_bytes: Option<u16>,
    /// A sent datagram's time stamp rather than one received: its number (`SOF_TIMESTAMPING_OPT_ID`).
    pub stamp_of: Option<u32>,
    /// Software time stamp, `CLOCK_REALTIME`, nanoseconds.
    pub software_ns: Option<u64>,
    /// The NIC's time stamp, its own clock, nanoseconds.
    pub hardware_ns: Option<u64>,
}
