//! What the strands of a group and their conductor tell each other: barriers, stops, progress, failures.

use std::sync::atomic::{AtomicU32, AtomicU64, Ordering::Relaxed};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use linerate_model::reading::Flow;
use linerate_traffic::StreamCount;

/// Barrier of a strand that is over.
const OVER: u32 = u32::MAX;

/// Counters of one strand on cache lines of its own; only the strand writes them.
#[derive(Debug, Default)]
#[repr(align(128))]
pub(crate) struct Counters {
    sent_bytes: AtomicU64,
    sent_calls: AtomicU64,
    received_bytes: AtomicU64,
    received_calls: AtomicU64,
    operations: AtomicU64,
    /// Iterations of transactions that move payload.
    iterations: AtomicU64,
    /// Kernel id of the strand's thread; 0 before it runs.
    tid: AtomicU64,
    /// CPU time of its whole life, nanoseconds, once it is over.
    cpu_ns: AtomicU64,
    /// When the last operation of the last transaction ended, on CLOCK_MONOTONIC.
    ended_ns: AtomicU64,
    /// The same of the last transaction that moves payload.
    payload_ended_ns: AtomicU64,
}

impl Counters {
    pub(crate) fn add_sent(&self, count: usize) {
        add(&self.sent_bytes, count as u64);
        add(&self.sent_calls, 1);
    }

    pub(crate) fn add_received(&self, count: usize) {
        add(&self.received_bytes, count as u64);
        add(&self.received_calls, 1);
    }

    pub(crate) fn add_iteration(&self) {
        add(&self.iterations, 1);
    }

    pub(crate) fn set_tid(&self, tid: i32) {
        self.tid.store(u64::try_from(tid).unwrap_or(0), Relaxed);
    }

    pub(crate) fn tid(&self) -> u32 {
        u32::try_from(self.tid.load(Relaxed)).unwrap_or(0)
    }

    pub(crate) fn set_cpu(&self, ns: u64) {
        self.cpu_ns.store(ns, Relaxed);
    }

    pub(crate) fn cpu_ns(&self) -> u64 {
        self.cpu_ns.load(Relaxed)
    }

    /// What was moved each way, and the iterations of transactions that move payload.
    pub(crate) fn moved(&self) -> StreamCount {
        let flow = |bytes: &AtomicU64, calls: &AtomicU64| Flow {
            bytes: bytes.load(Relaxed),
            messages: calls.load(Relaxed),
        };
        StreamCount {
            sent: flow(&self.sent_bytes, &self.sent_calls),
            received: flow(&self.received_bytes, &self.received_calls),
            transactions: self.iterations.load(Relaxed),
        }
    }

    pub(crate) fn add_operation(&self) {
        add(&self.operations, 1);
    }

    pub(crate) fn set_ended(&self, ns: u64, moved_payload: bool) {
        self.ended_ns.store(ns, Relaxed);
        if moved_payload {
            self.payload_ended_ns.store(ns, Relaxed);
        }
    }

    pub(crate) fn total(&self) -> Total {
        let bytes = self.sent_bytes.load(Relaxed) + self.received_bytes.load(Relaxed);
        Total { bytes, operations: self.operations.load(Relaxed) }
    }
}

/// Only one thread writes it, so that no locked instruction is needed.
fn add(counter: &AtomicU64, more: u64) {
    counter.store(counter.load(Relaxed) + more, Relaxed);
}

/// Bytes and operations.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Total {
    /// Payload, both ways.
    pub bytes: u64,
    /// Flowops executed.
    pub operations: u64,
}

impl Total {
    pub(crate) fn plus(self, other: Self) -> Self {
        Self { bytes: self.bytes + other.bytes, operations: self.operations + other.operations }
    }

    pub(crate) fn since(self, earlier: Self) -> Self {
        Self {
            bytes: self.bytes.saturating_sub(earlier.bytes),
            operations: self.operations.saturating_sub(earlier.operations),
        }
    }
}

/// Shared by a group's strands and its conductor.
#[derive(Debug)]
pub(crate) struct Gate {
    /// Transactions below this index end when their iteration does.
    soft: AtomicU32,
    /// Transactions below this index end when nothing comes or goes.
    hard: AtomicU32,
    state: Mutex<State>,
    changed: Condvar,
    pub(crate) counters: Vec<Counters>,
}

#[derive(Debug)]
struct State {
    /// Transactions that may begin.
    released: u32,
    /// The barrier that each strand waits at.
    at: Vec<Option<u32>>,
    failure: Option<String>,
}

impl Gate {
    pub(crate) fn new(strands: usize) -> Self {
        Self {
            soft: AtomicU32::new(0),
            hard: AtomicU32::new(0),
            state: Mutex::new(State { released: 0, at: vec![None; strands], failure: None }),
            changed: Condvar::new(),
            counters: (0..strands).map(|_| Counters::default()).collect(),
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A strand waits for its transaction `index`; false when it is to end.
    pub(crate) fn arrive(&self, strand: usize, index: u32) -> bool {
        let mut state = self.state();
        state.at[strand] = Some(index);
        self.changed.notify_all();
        while state.released <= index {
            if self.is_killed() {
                return false;
            }
            state = self.changed.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
        state.at[strand] = None;
        !self.is_killed()
    }

    /// A strand is over.
    pub(crate) fn leave(&self, strand: usize, failure: Option<String>) {
        let mut state = self.state();
        state.at[strand] = Some(OVER);
        if let Some(failure) = failure {
            state.failure.get_or_insert(failure);
        }
        self.changed.notify_all();
    }

    /// Lets transaction `index` begin.
    pub(crate) fn release(&self, index: u32) {
        let mut state = self.state();
        state.released = state.released.max(index + 1);
        for at in &mut state.at {
            if at.is_some_and(|at| at <= index) {
                *at = None;
            }
        }
        self.changed.notify_all();
    }

    /// Transactions that were let begin.
    pub(crate) fn released(&self) -> u32 {
        self.state().released
    }

    /// Whether all strands wait at barrier `index`, a later one, or are over.
    pub(crate) fn all_at(&self, index: u32) -> bool {
        self.state().at.iter().all(|at| at.is_some_and(|at| at >= index))
    }

    pub(crate) fn all_over(&self) -> bool {
        self.all_at(OVER)
    }

    pub(crate) fn failure(&self) -> Option<String> {
        self.state().failure.clone()
    }

    /// Ends transaction `index` where an iteration ends.
    pub(crate) fn stop_softly(&self, index: u32) {
        self.soft.fetch_max(index.saturating_add(1), Relaxed);
    }

    /// Ends transaction `index` where it would block.
    pub(crate) fn stop_blocked(&self, index: u32) {
        self.hard.fetch_max(index.saturating_add(1), Relaxed);
    }

    /// Ends everything.
    pub(crate) fn kill(&self) {
        self.soft.store(u32::MAX, Relaxed);
        self.hard.store(u32::MAX, Relaxed);
        let _state = self.state();
        self.changed.notify_all();
    }

    pub(crate) fn is_killed(&self) -> bool {
        self.hard.load(Relaxed) == u32::MAX
    }

    pub(crate) fn stops_softly(&self, index: u32) -> bool {
        self.soft.load(Relaxed) > index
    }

    pub(crate) fn stops_blocked(&self, index: u32) -> bool {
        self.hard.load(Relaxed) > index
    }

    /// Waits for news of a strand.
    pub(crate) fn wait(&self, limit: Duration) {
        let state = self.state();
        let _news = self.changed.wait_timeout(state, limit);
    }

    /// When the last operation of any strand's last transaction ended.
    pub(crate) fn ended_ns(&self) -> u64 {
        self.counters.iter().map(|c| c.ended_ns.load(Relaxed)).max().unwrap_or(0)
    }

    /// When the last operation of any strand's last transaction that moves payload ended.
    pub(crate) fn payload_ended_ns(&self) -> u64 {
        self.counters.iter().map(|c| c.payload_ended_ns.load(Relaxed)).max().unwrap_or(0)
    }

    pub(crate) fn total(&self) -> Total {
        self.counters.iter().fold(Total::default(), |sum, c| sum.plus(c.total()))
    }
}
