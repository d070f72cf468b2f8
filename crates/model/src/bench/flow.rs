//! Integrity flows: TCP or UDP traffic whose every byte is compared with what its place in the stream says it must be.

use std::net::SocketAddr;

use serde::{Deserialize, Serialize};

/// One side of a flow.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct FlowSpec {
    /// TCP or UDP.
    pub transport: FlowTransport,
    /// Listens here (port 0: the kernel chooses), or connects to there.
    pub role: FlowRole,
    /// Local address to bind, for a side that connects.
    pub bind: Option<SocketAddr>,
    /// Sends. Both sides may send at the same time.
    pub sends: bool,
    /// The other side sends.
    pub receives: bool,
    /// Connections, or UDP sockets.
    pub connections: u32,
    /// Bytes of each write, used in turn.
    pub write_bytes: Vec<u32>,
    /// How bytes are handed to the kernel.
    pub method: FlowMethod,
    /// Most bits a second over all connections of this side; 0 is no limit.
    pub bits_per_second: u64,
    /// Bytes to send on each connection; `None` is until finished.
    pub bytes_per_connection: Option<u64>,
    /// Ends by itself after so long, nanoseconds; 0 is never.
    pub duration_ns: u64,
    /// Seed of the bytes; the same on both sides.
    pub seed: u64,
    /// `TCP_MAXSEG`; 0 leaves it to the kernel.
    pub mss_bytes: u32,
    /// Connects again when a connection breaks, and goes on from byte 0 of a new connection.
    pub reconnect: bool,
}

/// TCP or UDP.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum FlowTransport {
    /// TCP.
    Tcp,
    /// UDP: each datagram carries its connection, number and place-dependent bytes.
    Udp,
}

/// Which side opens.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum FlowRole {
    /// Listens.
    Listen(SocketAddr),
    /// Connects.
    Connect(SocketAddr),
}

/// How bytes are handed to the kernel.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum FlowMethod {
    /// write(2).
    Write,
    /// writev(2) with pieces of 1, 3, 7, 61 ... bytes.
    Writev,
    /// sendfile(2) from memory.
    Sendfile,
    /// send(2) with `MSG_ZEROCOPY`.
    ZeroCopy,
    /// vmsplice(2) and splice(2): pages at every offset.
    Splice,
}

/// How a flow stands, or stood at its end.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct FlowReport {
    /// Bytes handed to the kernel.
    pub sent_bytes: u64,
    /// Datagrams sent.
    pub sent_datagrams: u64,
    /// Bytes received and compared.
    pub received_bytes: u64,
    /// Datagrams received, each counted once.
    pub received_datagrams: u64,
    /// Datagrams that came again.
    pub duplicate_datagrams: u64,
    /// Bytes that were not those sent.
    pub wrong_bytes: u64,
    /// The first wrong byte.
    pub first_wrong: Option<WrongByte>,
    /// Connections that broke, with the reason; those that were opened again are among them.
    pub broken: Vec<String>,
    /// Connections opened again.
    pub reconnects: u32,
    /// Connections that came to their end as planned.
    pub finished: u32,
    /// TCP segments sent again (`tcpi_total_retrans`), all connections.
    pub retransmits: u64,
    /// TCP segments sent (`tcpi_segs_out`), all connections.
    pub segments_sent: u64,
    /// Zero-copy sends that the kernel copied after all.
    pub copied_after_all: u64,
    /// Longest time that no connection of this side moved a byte, nanoseconds.
    pub longest_stall_ns: u64,
    /// It is over.
    pub over: bool,
}

/// A byte that was not the one sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct WrongByte {
    /// Connection, from 0.
    pub connection: u32,
    /// Place in the stream, or within the datagram.
    pub offset: u64,
    /// What was sent.
    pub expected: u8,
    /// What came.
    pub got: u8,
}
