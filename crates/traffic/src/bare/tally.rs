//! What a loop shares with who watches it, and the bytes that it sends.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};

use linerate_model::latency::LatencyHistogram;
use linerate_model::reading::Flow;
use linerate_sys::clock;

use crate::control::Counters;
use crate::latency::LatencyRecorder;
use crate::pattern::AlignedBytes;

/// Longest sleep before the stop flag is looked at again.
const LONGEST_SLEEP_NS: u64 = 20_000_000;

/// The stop flag of a loop and what it has moved so far. One thread writes the counters, any may read them.
#[derive(Debug, Default)]
pub struct Tally {
    stop: StopFlag,
    counters: Counters,
    refused: AtomicU64,
    lost: AtomicU64,
}

/// Alone on its cache lines: read in every round of a loop.
#[derive(Debug, Default)]
#[repr(align(128))]
struct StopFlag(AtomicBool);

/// What a loop has moved up to one instant.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Count {
    /// CLOCK_MONOTONIC when it was read, nanoseconds.
    pub at_ns: u64,
    /// Handed to the kernel: bytes, and calls that were taken whole (datagrams; requests or responses).
    pub sent: Flow,
    /// Got from the kernel: bytes, and calls that returned data (datagrams; whole requests or responses).
    pub received: Flow,
    /// Transactions completed.
    pub transactions: u64,
    /// Datagrams that the kernel did not take for want of room (`ENOBUFS`, `EAGAIN`).
    pub refused: u64,
    /// Requests without an answer in time (UDP).
    pub lost: u64,
    /// Datagrams that did not belong.
    pub strays: u64,
}

impl Tally {
    /// Nothing moved, not stopped.
    pub fn new() -> Self {
        Self::default()
    }

    /// Asks the loop to end.
    pub fn stop(&self) {
        self.stop.0.store(true, Relaxed);
    }

    /// Whether the loop was asked to end.
    pub fn stopped(&self) -> bool {
        self.stop.0.load(Relaxed)
    }

    /// Counts bytes that the kernel took, and whole messages. For the loop's own thread only.
    pub fn sent(&self, bytes: usize, messages: u64) {
        self.counters.sent(bytes, messages);
    }

    /// Counts bytes that came, and messages. For the loop's own thread only.
    pub fn received(&self, bytes: usize, messages: u64) {
        self.counters.received(bytes, messages);
    }

    /// Counts completed transactions. For the loop's own thread only.
    pub fn transactions(&self, count: u64) {
        self.counters.transactions(count);
    }

    /// Counts a datagram that did not belong. For the loop's own thread only.
    pub fn stray(&self) {
        self.counters.stray();
    }

    /// Counts a datagram that the kernel did not take.
    pub fn refused(&self) {
        self.refused.fetch_add(1, Relaxed);
    }

    /// Counts requests that got no answer.
    pub fn lost(&self, count: u64) {
        self.lost.fetch_add(count, Relaxed);
    }

    /// What was moved so far.
    pub fn count(&self) -> Count {
        let at_ns = clock::monotonic_ns();
        let now = self.counters.read();
        Count {
            at_ns,
            sent: Flow { bytes: now.sent_bytes, messages: now.sent_messages },
            received: Flow { bytes: now.received_bytes, messages: now.received_messages },
            transactions: now.transactions,
            refused: self.refused.load(Relaxed),
            lost: self.lost.load(Relaxed),
            strays: now.strays,
        }
    }

    /// Sleeps until CLOCK_MONOTONIC reads `due_ns`; false once stopped. Does not sleep when that is past.
    pub fn wait_until(&self, due_ns: u64) -> bool {
        loop {
            if self.stopped() {
                return false;
            }
            let now = clock::monotonic_ns();
            if now >= due_ns {
                return true;
            }
            clock::sleep_until(due_ns.min(now + LONGEST_SLEEP_NS));
        }
    }

    pub(super) fn set_tid(&self, tid: i32) {
        self.counters.set_tid(tid);
    }

    /// Kernel id of the loop's thread; 0 until it runs.
    pub fn tid(&self) -> u32 {
        self.counters.read().tid
    }
}

/// Bytes to send, starting on a page.
#[derive(Debug)]
pub struct Buffer(AlignedBytes);

impl Buffer {
    /// `length` bytes that repeat `pattern` (zeros where it is empty).
    pub fn repeated(length: usize, pattern: &[u8]) -> Self {
        let mut bytes = AlignedBytes::zeroed(length);
        if !pattern.is_empty() {
            for chunk in bytes.as_mut().chunks_mut(pattern.len()) {
                chunk.copy_from_slice(&pattern[..chunk.len()]);
            }
        }
        Self(bytes)
    }
}

impl AsRef<[u8]> for Buffer {
    fn as_ref(&self) -> &[u8] {
        self.0.as_ref()
    }
}

impl AsMut<[u8]> for Buffer {
    fn as_mut(&mut self) -> &mut [u8] {
        self.0.as_mut()
    }
}

/// Collects how long calls or transactions took: an HDR histogram from 1 ns to 60 s at three digits, about 216 KiB.
pub struct Latencies(LatencyRecorder);

impl Latencies {
    /// Empty.
    pub fn new() -> Self {
        Self(LatencyRecorder::new())
    }

    /// Adds one, nanoseconds.
    pub fn record(&mut self, ns: u64) {
        self.0.record(ns);
    }

    /// The distribution as plain data.
    pub fn into_data(self) -> LatencyHistogram {
        self.0.into_data()
    }
}

impl Default for Latencies {
    fn default() -> Self {
        Self::new()
    }
}
