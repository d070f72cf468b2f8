//! Probe frames by the million: sent and judged on the node itself, since they would not fit through the agent's stream.

use serde::{Deserialize, Serialize};

use super::bytes::Bytes;
use super::frame::{FrameIn, MacAddress, PortOptions};

/// Probe frames to send in the background.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct GenerateSpec {
    /// Where to send; it is opened for this generator alone.
    pub port: PortOptions,
    /// Destination address.
    pub to: MacAddress,
    /// Source address.
    pub from: MacAddress,
    /// What stands between the addresses and the probe, EtherType included: tags, IP and UDP headers. Empty is the
    /// EtherType of bare probes.
    pub header: Bytes,
    /// Run id of the probes.
    pub run: u64,
    /// Stream of the probes.
    pub stream: u32,
    /// Frame lengths without FCS, bytes, used in turn.
    pub lengths_bytes: Vec<u32>,
    /// How many frames; `None` is until it is finished.
    pub count: Option<u64>,
    /// Frames a second, paced evenly; 0 is as fast as it goes.
    pub frames_per_second: u64,
    /// Ends by itself after so long, nanoseconds; 0 is never.
    pub duration_ns: u64,
    /// Each probe carries its time of sending ([`super::probe::write`]), for the latency of a tally. It is taken when a frame is made
    /// ready: at full speed frames then wait for the others of their batch, so latency means something only when paced.
    #[serde(default)]
    pub timed: bool,
}

/// What a generator did.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct GenerateReport {
    /// Frames that the kernel took.
    pub sent: u64,
    /// Bytes of these without FCS.
    pub sent_bytes: u64,
    /// Times that the kernel had no room (`ENOBUFS`, `EAGAIN`); such a frame was tried again.
    pub no_room: u64,
    /// The last other refusal (errno in words), and how many there were. Its sequence number goes to the next frame, so
    /// that the numbers of what was sent have no holes.
    pub refused: Option<(String, u64)>,
    /// From the first to the last frame, nanoseconds.
    pub elapsed_ns: u64,
}

/// Probe frames to receive, count and check in the background.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct TallySpec {
    /// Where to listen; it is opened for this tally alone.
    pub port: PortOptions,
    /// Run id of the probes that count.
    pub run: u64,
    /// Streams that count; empty is all.
    pub streams: Vec<u32>,
    /// Bytes between the addresses and the probe, EtherType included, when no tag is stripped; 0 is 2.
    pub header_bytes: u32,
    /// Keeps the latency of each frame that carries its sending time ([`GenerateSpec::timed`]).
    pub latency: bool,
}

/// What a tally saw.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct Tally {
    /// Different frames that arrived whole.
    pub whole: u64,
    /// Bytes of these without FCS.
    pub whole_bytes: u64,
    /// Frames that arrived again.
    pub duplicates: u64,
    /// Frames that arrived behind one with a higher number.
    pub reordered: u64,
    /// Frames with a wrong byte.
    pub damaged: u64,
    /// Frames cut short.
    pub truncated: u64,
    /// Highest sequence number seen, by stream.
    pub highest: Vec<(u32, u64)>,
    /// Sequence numbers below the highest that did not arrive: the first few as (stream, sequence).
    pub missing: Vec<(u32, u64)>,
    /// How many did not arrive, below the highest of each stream.
    pub missing_count: u64,
    /// Frames that the socket had no room for: the tally's own loss, not the link's.
    pub dropped_here: u64,
    /// The first few frames with a fault.
    pub examples: Vec<FrameIn>,
    /// From the first to the last frame, nanoseconds.
    pub elapsed_ns: u64,
    /// Longest time without a frame between the first and the last, nanoseconds.
    pub longest_gap_ns: u64,
    /// Latency: smallest, median, 99.9th percentile, largest, nanoseconds; where asked for and both ends share a clock.
    pub latency_ns: Option<[u64; 4]>,
}
