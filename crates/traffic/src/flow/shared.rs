//! What the threads of a flow have in common: what is asked, what was counted, and whether it is over.

use std::os::fd::AsFd;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use linerate_model::bench::flow::{FlowReport, FlowSpec, WrongByte};
use linerate_sys::clock;
use linerate_sys::tcp_info::TcpInfo;
use socket2::Socket;

use crate::place::Difference;

/// Reasons of broken connections that are kept; more say the same.
const MOST_REASONS: usize = 32;
/// Longest sleep before it is looked at again whether it is over.
const LONGEST_SLEEP_NS: u64 = 20_000_000;

#[derive(Debug)]
pub(super) struct Shared {
    pub(super) spec: FlowSpec,
    /// Senders stop, receivers read to the end.
    pub(super) stop: AtomicBool,
    /// Everything ends at once.
    aborted: AtomicBool,
    started_ns: u64,
    pub(super) sent_bytes: AtomicU64,
    pub(super) sent_datagrams: AtomicU64,
    pub(super) received_bytes: AtomicU64,
    pub(super) received_datagrams: AtomicU64,
    pub(super) duplicate_datagrams: AtomicU64,
    wrong_bytes: AtomicU64,
    first_wrong: Mutex<Option<WrongByte>>,
    broken: Mutex<Vec<String>>,
    pub(super) reconnects: AtomicU32,
    pub(super) finished: AtomicU32,
    retransmits: AtomicU64,
    segments_sent: AtomicU64,
    pub(super) copied: AtomicU64,
    last_progress_ns: AtomicU64,
    longest_stall_ns: AtomicU64,
    /// Connections that are not over.
    live: AtomicU32,
    /// The TCP connection of each lane.
    current: Vec<Mutex<Option<Arc<Socket>>>>,
    /// It was cut off on this side: what looks like its end is none.
    cut: Vec<AtomicBool>,
}

impl Shared {
    pub(super) fn new(spec: FlowSpec) -> Self {
        Self {
            stop: AtomicBool::new(false),
            aborted: AtomicBool::new(false),
            started_ns: clock::monotonic_ns(),
            sent_bytes: AtomicU64::new(0),
            sent_datagrams: AtomicU64::new(0),
            received_bytes: AtomicU64::new(0),
            received_datagrams: AtomicU64::new(0),
            duplicate_datagrams: AtomicU64::new(0),
            wrong_bytes: AtomicU64::new(0),
            first_wrong: Mutex::new(None),
            broken: Mutex::new(Vec::new()),
            reconnects: AtomicU32::new(0),
            finished: AtomicU32::new(0),
            retransmits: AtomicU64::new(0),
            segments_sent: AtomicU64::new(0),
            copied: AtomicU64::new(0),
            last_progress_ns: AtomicU64::new(0),
            longest_stall_ns: AtomicU64::new(0),
            live: AtomicU32::new(spec.connections),
            current: (0..spec.connections).map(|_| Mutex::new(None)).collect(),
            cut: (0..spec.connections).map(|_| AtomicBool::new(false)).collect(),
            spec,
        }
    }

    /// Senders are to end, as asked or by the time that they have.
    pub(super) fn stopped(&self) -> bool {
        let duration = self.spec.duration_ns;
        self.stop.load(Relaxed)
            || self.aborted()
            || duration != 0 && clock::monotonic_ns() - self.started_ns >= duration
    }

    pub(super) fn aborted(&self) -> bool {
        self.aborted.load(Relaxed)
    }

    /// Ends everything, also what waits in a call.
    pub(super) fn abort(&self) {
        self.stop.store(true, Relaxed);
        self.aborted.store(true, Relaxed);
        for lane in 0..self.current.len() {
            self.shut(lane as u32);
        }
    }

    pub(super) fn is_over(&self) -> bool {
        self.live.load(Relaxed) == 0
    }

    pub(super) fn lane_is_over(&self) {
        self.live.fetch_sub(1, Relaxed);
    }

    /// Bytes moved: ends a stall.
    pub(super) fn progress(&self) {
        let now = clock::monotonic_ns();
        let last = self.last_progress_ns.swap(now, Relaxed);
        if last != 0 {
            self.longest_stall_ns.fetch_max(now.saturating_sub(last), Relaxed);
        }
    }

    pub(super) fn sent(&self, bytes: usize) {
        self.sent_bytes.fetch_add(bytes as u64, Relaxed);
        self.progress();
    }

    pub(super) fn received(&self, bytes: usize) {
        self.received_bytes.fetch_add(bytes as u64, Relaxed);
        self.progress();
    }

    pub(super) fn wrong(&self, connection: u32, difference: Difference) {
        self.wrong_bytes.fetch_add(difference.count, Relaxed);
        let Difference { offset, expected, got, .. } = difference;
        locked(&self.first_wrong).get_or_insert(WrongByte { connection, offset, expected, got });
    }

    pub(super) fn broke(&self, connection: u32, why: impl std::fmt::Display) {
        let mut broken = locked(&self.broken);
        if broken.len() < MOST_REASONS {
            broken.push(format!("connection {connection}: {why}"));
        }
    }

    /// A lane has a connection.
    pub(super) fn connected(&self, lane: u32, socket: &Arc<Socket>) {
        let mut current = locked(&self.current[lane as usize]);
        *current = Some(socket.clone());
        self.cut[lane as usize].store(false, Relaxed);
        drop(current);
        // A stall before the first byte is one too.
        let now = clock::monotonic_ns();
        let _ = self.last_progress_ns.compare_exchange(0, now, Relaxed, Relaxed);
        if self.aborted() {
            self.shut(lane);
        }
    }

    /// Cuts off the connection of a lane.
    pub(super) fn shut(&self, lane: u32) {
        if let Some(socket) = &*locked(&self.current[lane as usize]) {
            self.cut[lane as usize].store(true, Relaxed);
            // One that is not connected any more needs no end.
            let _ = socket.shutdown(std::net::Shutdown::Both);
        }
    }

    /// Whether the connection of a lane was cut off.
    pub(super) fn was_cut(&self, lane: u32) -> bool {
        self.aborted() || self.cut[lane as usize].load(Relaxed)
    }

    /// The connection of a lane is over: what the kernel counted of it is kept.
    pub(super) fn disconnected(&self, lane: u32) {
        let Some(socket) = locked(&self.current[lane as usize]).take() else { return };
        let (retransmits, segments) = tcp_counts(&socket);
        self.retransmits.fetch_add(retransmits, Relaxed);
        self.segments_sent.fetch_add(segments, Relaxed);
    }

    /// Sleeps until `due_ns`; false once senders are to end.
    pub(super) fn wait_until(&self, due_ns: u64) -> bool {
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

    pub(super) fn report(&self) -> FlowReport {
        let over = self.is_over();
        let (mut retransmits, mut segments_sent) =
            (self.retransmits.load(Relaxed), self.segments_sent.load(Relaxed));
        for socket in self.current.iter().filter_map(|socket| locked(socket).clone()) {
            let (again, all) = tcp_counts(&socket);
            retransmits += again;
            segments_sent += all;
        }
        let last = self.last_progress_ns.load(Relaxed);
        let since = if over || last == 0 { 0 } else { clock::monotonic_ns().saturating_sub(last) };
        FlowReport {
            sent_bytes: self.sent_bytes.load(Relaxed),
            sent_datagrams: self.sent_datagrams.load(Relaxed),
            received_bytes: self.received_bytes.load(Relaxed),
            received_datagrams: self.received_datagrams.load(Relaxed),
            duplicate_datagrams: self.duplicate_datagrams.load(Relaxed),
            wrong_bytes: self.wrong_bytes.load(Relaxed),
            first_wrong: *locked(&self.first_wrong),
            broken: locked(&self.broken).clone(),
            reconnects: self.reconnects.load(Relaxed),
            finished: self.finished.load(Relaxed),
            retransmits,
            segments_sent,
            copied_after_all: self.copied.load(Relaxed),
            longest_stall_ns: self.longest_stall_ns.load(Relaxed).max(since),
            over,
        }
    }
}

/// When the next write of a lane is due, so that all lanes together keep the rate.
#[derive(Debug)]
pub(super) struct Pace {
    due_ns: u64,
    bits_per_second: u64,
    lanes: u32,
}

impl Pace {
    pub(super) fn new(spec: &FlowSpec) -> Self {
        let now = clock::monotonic_ns();
        Self { due_ns: now, bits_per_second: spec.bits_per_second, lanes: spec.connections }
    }

    /// Waits for the turn of a write of `bytes`; false once senders are to end.
    pub(super) fn turn(&mut self, shared: &Shared, bytes: usize) -> bool {
        if self.bits_per_second == 0 {
            return !shared.stopped();
        }
        if !shared.wait_until(self.due_ns) {
            return false;
        }
        let step = bytes as u128 * 8_000_000_000 * u128::from(self.lanes) / u128::from(self.bits_per_second);
        self.due_ns = self.due_ns.saturating_add(u64::try_from(step).unwrap_or(u64::MAX));
        true
    }
}

fn tcp_counts(socket: &impl AsFd) -> (u64, u64) {
    // Not TCP, or a kernel without it: nothing is known.
    let Ok(info) = TcpInfo::of(socket) else { return (0, 0) };
    (info.total_retrans.into(), info.segs_out.unwrap_or(0).into())
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    // Each holds one value that is replaced whole.
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
