//! What one node measured during the window of one trial.

use std::net::SocketAddr;

use serde::{Deserialize, Serialize};

use crate::counters::{MeterReading, ThreadReading};
use crate::latency::LatencyHistogram;

/// How a node's reading is known.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum Knowledge {
    /// linerate measured it there.
    #[default]
    Measured,
    /// Another program told it through its own protocol: what that does not tell is empty or 0.
    Told,
    /// Another program ran there, whose protocol tells nothing: the whole reading is empty.
    Untold,
}

impl Knowledge {
    /// Whether linerate measured it there.
    pub fn is_measured(&self) -> bool {
        *self == Self::Measured
    }
}

/// What one node measured.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Reading {
    /// How it is known; missing is `measured`.
    #[serde(default, skip_serializing_if = "Knowledge::is_measured")]
    pub knowledge: Knowledge,
    /// The window as this node's clock saw it.
    pub window: Window,
    /// By stream.
    pub streams: Vec<StreamReading>,
    /// By traffic thread.
    pub threads: Vec<ThreadReading>,
    /// By interval within the window.
    pub intervals: Vec<IntervalReading>,
    /// CPU, link and protocol counters.
    pub meter: MeterReading,
    /// Connections or datagrams that did not prove themselves with the trial's token, and were dropped.
    pub strays: u64,
}

/// The window of a trial on one node's `CLOCK_MONOTONIC`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Window {
    /// When it opened, nanoseconds.
    pub start_ns: u64,
    /// How long it was, nanoseconds: from the first sample of the traffic counters to the last, or to the last byte.
    pub duration_ns: u64,
    /// How much later than planned the opening sample was taken, nanoseconds.
    pub start_late_ns: u64,
    /// How much later than planned the closing sample was taken, nanoseconds.
    pub end_late_ns: u64,
}

/// Bytes and calls (or datagrams, or messages) in one direction.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Flow {
    /// Payload bytes.
    pub bytes: u64,
    /// Calls of a byte stream, datagrams of UDP, messages of request/response.
    pub messages: u64,
}

/// One stream as this node saw it within the window.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct StreamReading {
    /// Its number, from 0.
    pub index: u32,
    /// This node's address; `None` for tcp-crr, which has many.
    pub local: Option<SocketAddr>,
    /// The other node's address.
    pub remote: Option<SocketAddr>,
    /// Handed to the kernel by this node within the window.
    pub sent: Flow,
    /// Got from the kernel by this node within the window.
    pub received: Flow,
    /// Transactions completed within the window (only on the side that asks).
    pub transactions: u64,
    /// Socket as the kernel granted it.
    pub socket: SocketReading,
    /// TCP state at the window's end, with the differences over the window; one per connection.
    pub tcp: Vec<TcpReading>,
    /// Datagrams sent in the window, with their fate (each side its part).
    pub udp: Option<UdpReading>,
    /// Latency of the transactions that ended in the window; of an open loop (a rate asked for) of those that were due in it.
    pub latency: Option<LatencyHistogram>,
    /// What `--verify` found.
    pub verify: Option<VerifyReading>,
    /// What became of zero-copy sends; only on the side that sends so.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub zerocopy: Option<ZeroCopyReading>,
    /// Why the stream ended early, if it did.
    pub error: Option<String>,
}

/// What the kernel granted.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct SocketReading {
    /// `SO_SNDBUF` as read back (the kernel's doubled figure), bytes.
    pub send_buffer_bytes: u64,
    /// `SO_RCVBUF` as read back, bytes.
    pub receive_buffer_bytes: u64,
    /// `TCP_CONGESTION` as read back.
    pub congestion: Option<String>,
    /// `TCP_MAXSEG` as read back, bytes.
    pub mss_bytes: Option<u32>,
}

/// TCP state of a connection (`struct tcp_info`, include/uapi/linux/tcp.h).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct TcpReading {
    /// Smoothed round-trip time at the window's end, microseconds.
    pub rtt_us: u32,
    /// Its mean deviation, microseconds.
    pub rtt_variation_us: u32,
    /// Smallest round-trip time seen, microseconds.
    pub min_rtt_us: u32,
    /// Congestion window at the window's end, segments.
    pub congestion_window_segments: u32,
    /// Send maximum segment size, bytes.
    pub send_mss_bytes: u32,
    /// Path MTU, bytes.
    pub path_mtu_bytes: u32,
    /// Segments retransmitted within the window.
    pub retransmits: u64,
    /// Payload bytes retransmitted within the window.
    pub retransmitted_bytes: u64,
    /// Payload bytes acknowledged within the window.
    pub acked_bytes: u64,
    /// Segments with data sent within the window (`tcpi_data_segs_out`).
    pub segments_sent: u64,
    /// Segments with data received within the window (`tcpi_data_segs_in`).
    pub segments_received: u64,
    /// Most recent delivery rate, bytes a second.
    pub delivery_rate_bytes_per_second: u64,
    /// Whether that rate was limited by the application.
    pub delivery_app_limited: bool,
    /// Time with data in flight within the window, microseconds (`tcpi_busy_time`).
    pub busy_us: u64,
    /// Part of it stalled by the receiver's window, microseconds (`tcpi_rwnd_limited`).
    pub receive_window_limited_us: u64,
    /// Part of it stalled by the send buffer, microseconds (`tcpi_sndbuf_limited`).
    pub send_buffer_limited_us: u64,
    /// Reordering events seen on the connection so far (`tcpi_reord_seen`).
    pub reordering_seen: u32,
    /// Out-of-order packets received within the window (`tcpi_rcv_ooopack`).
    pub out_of_order_received: u64,
}

/// Datagrams sent within the window and their fate. The sender fills `sent` and `send_refused`, the receiver the rest.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct UdpReading {
    /// Datagrams that the sender's kernel took (udp-stream), requests sent (udp-rr).
    pub sent: u64,
    /// Sends that the sender's kernel refused (`ENOBUFS`, `EAGAIN`).
    pub send_refused: u64,
    /// Distinct datagrams of the window that arrived, also after its end.
    pub received: u64,
    /// Arrived again.
    pub duplicates: u64,
    /// Arrived behind a later one (RFC 4737).
    pub reordered: u64,
    /// Arrived so late (65536 datagrams or more) that a duplicate can't be told from the first.
    pub too_late: u64,
    /// Smoothed interarrival jitter at the end (RFC 3550, section 6.4.1), nanoseconds.
    pub jitter_ns: u64,
    /// Datagrams the kernel dropped at the receiver's socket between the arrival of the window's first and last datagram
    /// (`SO_RXQ_OVFL`).
    pub socket_drops: u64,
    /// Requests of udp-rr without an answer in time.
    pub requests_lost: u64,
}

/// What `--verify` found at the receiver, over the whole trial.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct VerifyReading {
    /// Bytes compared.
    pub checked_bytes: u64,
    /// Bytes that were wrong.
    pub bad_bytes: u64,
    /// Where the first wrong byte was: offset in the stream's payload, from 0.
    pub first_bad_offset: Option<u64>,
}

/// Completions of `MSG_ZEROCOPY` sends, over the whole trial (Documentation/networking/msg_zerocopy.rst).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ZeroCopyReading {
    /// Send calls that the kernel has told the completion of.
    pub completed_calls: u64,
    /// Those of them whose bytes the kernel copied after all (`SO_EE_CODE_ZEROCOPY_COPIED`).
    pub copied_calls: u64,
}

/// One interval within the window.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct IntervalReading {
    /// Its start, nanoseconds after the window's start.
    pub start_ns: u64,
    /// Its length, nanoseconds.
    pub duration_ns: u64,
    /// Busy CPU time of the machine, nanoseconds.
    pub busy_ns: u64,
    /// By stream.
    pub streams: Vec<IntervalStream>,
}

/// One stream in one interval.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct IntervalStream {
    /// Its number, from 0.
    pub index: u32,
    /// Sent by this node.
    pub sent: Flow,
    /// Received by this node.
    pub received: Flow,
    /// Transactions completed (only on the side that asks).
    pub transactions: u64,
    /// Segments retransmitted by this node's side.
    pub retransmits: u64,
    /// Smoothed round-trip time at the interval's end, microseconds; 0 where it is not TCP.
    pub rtt_us: u32,
}
