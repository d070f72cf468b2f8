//! What a test tells: events and numbers from which all output is made.

use std::net::SocketAddr;

use super::params::Params;
use super::results::{CpuPercent, ServerOutput};

/// Which side of a test this is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Role {
    /// It asks for the test.
    Client,
    /// It is asked.
    Server,
}

/// What happens in a test, in this order; a failure may come after any.
#[derive(Debug, Clone)]
pub enum Event {
    /// The control connection stands.
    Connected(Box<Connected>),
    /// All streams stand; the test begins.
    Started(Box<Started>),
    /// An interval is over.
    Interval(Interval),
    /// The test is over.
    Ended(Box<End>),
    /// The test failed.
    Failed(String),
}

/// The control connection and what the test is to be.
#[derive(Debug, Clone)]
pub struct Connected {
    /// This side.
    pub role: Role,
    /// Client: the server as it was named; server: the client's address.
    pub host: String,
    /// Client: the server's port; server: the client's.
    pub port: u16,
    /// Unix time, milliseconds.
    pub time_ms: u64,
    /// The cookie, without its 0.
    pub cookie: String,
    /// The test.
    pub params: Params,
    /// Segment size of the control connection, bytes.
    pub control_mss: u32,
}

/// The streams.
#[derive(Debug, Clone)]
pub struct Started {
    /// In order of creation on a client; on a server in order of acceptance.
    pub streams: Vec<StreamEnds>,
    /// Buffers that the kernel granted the first stream, bytes: send, receive.
    pub buffers: (u32, u32),
    /// Segment size of the first TCP stream, bytes.
    pub mss: Option<u32>,
    /// Seconds between reports; 0 is none.
    pub interval_s: f64,
}

/// One stream's addresses.
#[derive(Debug, Clone, Copy)]
pub struct StreamEnds {
    /// Its descriptor.
    pub socket: i32,
    /// This side.
    pub local: SocketAddr,
    /// The other side.
    pub remote: SocketAddr,
}

/// One interval of every stream.
#[derive(Debug, Clone)]
pub struct Interval {
    /// The streams.
    pub streams: Vec<StreamInterval>,
    /// It does not count.
    pub omitted: bool,
}

/// One interval of one stream.
#[derive(Debug, Clone, Copy)]
pub struct StreamInterval {
    /// Its descriptor.
    pub socket: i32,
    /// This side sends on it.
    pub sends: bool,
    /// Begin, seconds since the start (or the end of the omitted time).
    pub start_s: f64,
    /// End.
    pub end_s: f64,
    /// Bytes moved.
    pub bytes: u64,
    /// What the kernel says of a TCP stream that this side sends on.
    pub tcp: Option<TcpSample>,
    /// Datagrams sent or, on a receiver, expected; for UDP.
    pub packets: i64,
    /// UDP receiver: lost.
    pub lost: i64,
    /// UDP receiver: came late.
    pub out_of_order: i64,
    /// UDP receiver: jitter at the end, seconds.
    pub jitter_s: f64,
}

/// The state of a TCP sender.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct TcpSample {
    /// Segments sent again since the sample before.
    pub retransmits: i64,
    /// Congestion window, bytes.
    pub snd_cwnd: u64,
    /// The receiver's window, bytes.
    pub snd_wnd: u64,
    /// Smoothed round trip, microseconds.
    pub rtt_us: u64,
    /// Its variation, microseconds.
    pub rttvar_us: u64,
    /// Path MTU, bytes.
    pub pmtu: u64,
    /// Times that reordering was seen.
    pub reorder: u64,
}

/// Extremes of a TCP sender's samples.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct TcpExtremes {
    /// Most congestion window, bytes.
    pub max_snd_cwnd: u64,
    /// Most window of the receiver, bytes.
    pub max_snd_wnd: u64,
    /// Longest round trip, microseconds.
    pub max_rtt_us: u64,
    /// Shortest, microseconds.
    pub min_rtt_us: u64,
    /// Mean, microseconds.
    pub mean_rtt_us: u64,
    /// Times that reordering was seen.
    pub reorder: u64,
}

/// Bytes in a time.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Moved {
    /// Bytes.
    pub bytes: u64,
    /// Seconds.
    pub seconds: f64,
}

impl Moved {
    /// Bits a second.
    pub fn rate(self) -> f64 {
        if self.seconds > 0.0 { self.bytes as f64 * 8.0 / self.seconds } else { 0.0 }
    }
}

/// Datagrams of a stream over the whole test, without the omitted time.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Datagrams {
    /// Sent; 0 where the sender's count is not known.
    pub sent: i64,
    /// Highest number that arrived.
    pub received: i64,
    /// Lost, those at the end included.
    pub lost: i64,
    /// Late.
    pub out_of_order: i64,
    /// Came twice.
    pub duplicates: i64,
    /// Seconds.
    pub jitter_s: f64,
}

/// One stream over the whole test.
#[derive(Debug, Clone, Copy, Default)]
pub struct StreamEnd {
    /// Its descriptor.
    pub socket: i32,
    /// This side sends on it.
    pub sends: bool,
    /// The sender's view; none if not known (a server never learns a client's in time).
    pub sent: Option<Moved>,
    /// The receiver's view.
    pub received: Option<Moved>,
    /// Segments sent again, if known.
    pub retransmits: Option<i64>,
    /// Where this side sends TCP.
    pub tcp: Option<TcpExtremes>,
    /// For UDP.
    pub udp: Option<Datagrams>,
}

/// The whole test.
#[derive(Debug, Clone, Default)]
pub struct End {
    /// The streams.
    pub streams: Vec<StreamEnd>,
    /// CPU of this side.
    pub cpu_local: CpuPercent,
    /// CPU of the other side; zeros on a server.
    pub cpu_remote: CpuPercent,
    /// TCP_CONGESTION of senders, if known.
    pub sender_congestion: Option<String>,
    /// TCP_CONGESTION of receivers, if known.
    pub receiver_congestion: Option<String>,
    /// What the server printed, if asked.
    pub server_output: Option<ServerOutput>,
    /// The file that this side sent or received into.
    pub file: Option<FileEnd>,
}

/// A file of `-F` at the end of the test.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct FileEnd {
    /// As it was named.
    pub name: String,
    /// Bytes.
    pub size: u64,
}

impl FileEnd {
    /// How much of it `bytes` are, whole percent; all of an empty one.
    pub fn percent(&self, bytes: u64) -> u64 {
        let percent = (u128::from(bytes) * 100).checked_div(u128::from(self.size)).unwrap_or(100);
        u64::try_from(percent).unwrap_or(u64::MAX)
    }
}
