//! What an endpoint tells while it runs and hands back at its end.

use std::net::SocketAddr;

use linerate_model::latency::LatencyHistogram;
use linerate_model::reading::{Flow, SocketReading, UdpReading, VerifyReading, ZeroCopyReading};

use crate::lane::Role;

/// What the streams have moved since the start, at one instant.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Snapshot {
    /// CLOCK_MONOTONIC before the counters were read, nanoseconds.
    pub at_ns: u64,
    /// By stream, from 0.
    pub streams: Vec<StreamCount>,
}

/// What one stream has moved since the start.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct StreamCount {
    /// Handed to the kernel by this side.
    pub sent: Flow,
    /// Got from the kernel by this side.
    pub received: Flow,
    /// Transactions completed; only on the side that asks.
    pub transactions: u64,
}

impl StreamCount {
    /// What was moved since `earlier`.
    #[must_use]
    pub fn since(&self, earlier: &Self) -> Self {
        let flow = |now: Flow, then: Flow| Flow {
            bytes: now.bytes.saturating_sub(then.bytes),
            messages: now.messages.saturating_sub(then.messages),
        };
        Self {
            sent: flow(self.sent, earlier.sent),
            received: flow(self.received, earlier.received),
            transactions: self.transactions.saturating_sub(earlier.transactions),
        }
    }
}

/// A traffic thread, for who samples its CPU time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ThreadInfo {
    /// Kernel thread id, in this process.
    pub tid: u32,
    /// Its stream.
    pub stream: u32,
    /// What it does.
    pub role: Role,
    /// The CPU it is pinned to.
    pub pinned_cpu: Option<u32>,
}

/// The whole of what one side found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SideResult {
    /// By stream, from 0.
    pub streams: Vec<StreamResult>,
    /// By thread, in the order of [`crate::Endpoint::threads`].
    pub threads: Vec<ThreadResult>,
    /// Connections and datagrams that did not prove themselves, or did not belong, and were dropped.
    pub strays: u64,
}

/// One stream at its end.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct StreamResult {
    /// Its number, from 0.
    pub index: u32,
    /// This side's address; none for tcp-crr, which has many.
    pub local: Option<SocketAddr>,
    /// The other side's address.
    pub remote: Option<SocketAddr>,
    /// Moved in the whole trial, warm-up and tail included.
    pub total: StreamCount,
    /// What the kernel granted.
    pub socket: SocketReading,
    /// Datagrams of the window; each side fills its part.
    pub udp: Option<UdpReading>,
    /// Latency of the transactions that ended in the window; only on the side that asks.
    pub latency: Option<LatencyHistogram>,
    /// What the receiver's check found, over the whole trial.
    pub verify: Option<VerifyReading>,
    /// What became of zero-copy sends, over the whole trial.
    pub zerocopy: Option<ZeroCopyReading>,
    /// When the last datagram came, nanoseconds of CLOCK_MONOTONIC; only at the receiver of a udp-stream that a count ends.
    pub last_received_ns: Option<u64>,
    /// Why it ended early, if it did.
    pub error: Option<String>,
}

/// One thread at its end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ThreadResult {
    /// Which thread.
    pub info: ThreadInfo,
    /// CPU time over its whole life, preparation included, nanoseconds.
    pub cpu_ns: u64,
}
