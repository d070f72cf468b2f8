//! What an endpoint tells its threads (phase, start, stop) and what they tell it (ready, done, failed, ended).

use std::sync::atomic::{AtomicU8, AtomicU64, Ordering::Relaxed};
use std::sync::{Condvar, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::{Duration, Instant};

use linerate_sys::clock;

/// Part of a trial that traffic belongs to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub enum Phase {
    /// Traffic that is not measured, before the window.
    Warmup = 1,
    /// The measured part.
    Window = 2,
    /// Traffic that is not measured, after the window.
    Tail = 3,
}

impl Phase {
    /// Number of phases, with room for 0.
    pub(crate) const COUNT: usize = 4;

    pub(crate) fn index(self) -> usize {
        self as usize
    }

    pub(crate) fn from_number(number: u8) -> Option<Self> {
        match number {
            1 => Some(Self::Warmup),
            2 => Some(Self::Window),
            3 => Some(Self::Tail),
            _ => None,
        }
    }
}

const PREPARING: u8 = 0;
const STOPPED: u8 = 4;
const ABORTED: u8 = 5;

/// The flag that every thread reads in its loop, alone on its cache lines: written a few times a trial.
#[derive(Debug)]
#[repr(align(128))]
struct State(AtomicU8);

/// Shared by an endpoint and its threads.
#[derive(Debug)]
pub(crate) struct Control {
    state: State,
    progress: Mutex<Progress>,
    changed: Condvar,
    /// Datagrams that the other end sent in the window, by stream, once it is known.
    expected: OnceLock<Vec<u64>>,
}

#[derive(Debug, Default)]
pub(crate) struct Progress {
    /// Instant at which senders begin; set once.
    start_ns: Option<u64>,
    /// Threads that wait for the start.
    pub(crate) prepared: usize,
    /// Threads that have moved all that was asked.
    pub(crate) done: usize,
    /// Latest instant of those.
    pub(crate) done_at_ns: u64,
    /// Threads that are over.
    pub(crate) ended: usize,
    /// Streams that failed and why.
    pub(crate) failures: Vec<(u32, String)>,
}

impl Control {
    pub(crate) fn new() -> Self {
        Self {
            state: State(AtomicU8::new(PREPARING)),
            progress: Mutex::default(),
            changed: Condvar::new(),
            expected: OnceLock::new(),
        }
    }

    /// Enters a phase, unless the trial is stopped.
    pub(crate) fn enter(&self, phase: Phase) {
        self.raise(|state| (state < STOPPED).then_some(phase as u8));
    }

    /// Lets senders begin at `start_ns`. The first phase is the warm-up, unless another was entered before.
    pub(crate) fn start(&self, start_ns: u64) {
        self.raise(|state| (state == PREPARING).then_some(Phase::Warmup as u8));
        self.progress().start_ns.get_or_insert(start_ns);
        self.changed.notify_all();
    }

    /// Asks senders to stop.
    pub(crate) fn stop(&self) {
        self.raise(|state| (state < STOPPED).then_some(STOPPED));
        self.wake_all();
    }

    /// Asks every thread to leave at once.
    pub(crate) fn abort(&self) {
        self.raise(|_| Some(ABORTED));
        self.wake_all();
    }

    fn wake_all(&self) {
        // Taken so that a thread between its check and its wait can't miss the news.
        drop(self.progress());
        self.changed.notify_all();
    }

    fn raise(&self, next: impl Fn(u8) -> Option<u8>) {
        // An error means that there was nothing to change.
        let _unchanged = self.state.0.fetch_update(Relaxed, Relaxed, next);
    }

    pub(crate) fn stopped(&self) -> bool {
        self.state.0.load(Relaxed) >= STOPPED
    }

    pub(crate) fn aborted(&self) -> bool {
        self.state.0.load(Relaxed) == ABORTED
    }

    /// The phase now; none before the start and after the stop.
    pub(crate) fn phase(&self) -> Option<Phase> {
        Phase::from_number(self.state.0.load(Relaxed))
    }

    pub(crate) fn in_window(&self) -> bool {
        self.state.0.load(Relaxed) == Phase::Window as u8
    }

    /// Tells receivers how many datagrams each stream's sender sent in the window.
    pub(crate) fn expect(&self, sent: &[u64]) {
        self.expected.get_or_init(|| sent.to_vec());
    }

    /// What [`Control::expect`] said of a stream.
    pub(crate) fn expected(&self, stream: u32) -> Option<u64> {
        self.expected.get()?.get(stream as usize).copied()
    }

    pub(crate) fn progress(&self) -> MutexGuard<'_, Progress> {
        // A thread that panicked while holding it left only counters behind, and these are whole.
        self.progress.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Changes the progress and wakes whoever waits for it.
    pub(crate) fn note(&self, change: impl FnOnce(&mut Progress)) {
        change(&mut self.progress());
        self.changed.notify_all();
    }

    /// Says that this thread has moved all that was asked, at `now`.
    pub(crate) fn note_done(&self, at_ns: u64) {
        self.note(|p| {
            p.done += 1;
            p.done_at_ns = p.done_at_ns.max(at_ns);
        });
    }

    /// Waits until `reached` holds or `timeout` has passed; returns the progress then.
    pub(crate) fn wait_for(
        &self,
        timeout: Duration,
        mut reached: impl FnMut(&Progress) -> bool,
    ) -> MutexGuard<'_, Progress> {
        let deadline = Instant::now() + timeout;
        let mut progress = self.progress();
        while !reached(&progress) {
            let left = deadline.saturating_duration_since(Instant::now());
            if left.is_zero() {
                break;
            }
            progress = self.changed.wait_timeout(progress, left).unwrap_or_else(PoisonError::into_inner).0;
        }
        progress
    }

    /// Reports that this thread is prepared and waits for the start; none if the trial is stopped instead. A sender
    /// (`active`) sleeps until the instant, the others begin as soon as it is known.
    pub(crate) fn ready(&self, active: bool) -> Option<u64> {
        self.note(|p| p.prepared += 1);
        let mut progress = self.progress();
        let start_ns = loop {
            if let Some(start) = progress.start_ns {
                break start;
            }
            if self.stopped() {
                return None;
            }
            progress = self.changed.wait(progress).unwrap_or_else(PoisonError::into_inner);
        };
        drop(progress);
        if !active {
            return Some(clock::monotonic_ns());
        }
        // A stop before the instant is seen by the sender's own loop.
        crate::pace::wait_until(start_ns, self);
        Some(start_ns.max(clock::monotonic_ns()))
    }
}

/// What one thread has moved so far. Written by that thread alone (a load and a store, no locked instruction), read by
/// the sampler; two cache lines of its own, since processors fetch lines in pairs.
#[derive(Debug, Default)]
#[repr(align(128))]
pub(crate) struct Counters {
    sent_bytes: AtomicU64,
    sent_messages: AtomicU64,
    received_bytes: AtomicU64,
    received_messages: AtomicU64,
    transactions: AtomicU64,
    strays: AtomicU64,
    /// Kernel thread id; 0 until the thread runs.
    tid: AtomicU64,
}

impl Counters {
    pub(crate) fn sent(&self, bytes: usize, messages: u64) {
        add(&self.sent_bytes, bytes as u64);
        add(&self.sent_messages, messages);
    }

    pub(crate) fn received(&self, bytes: usize, messages: u64) {
        add(&self.received_bytes, bytes as u64);
        add(&self.received_messages, messages);
    }

    pub(crate) fn transactions(&self, count: u64) {
        add(&self.transactions, count);
    }

    pub(crate) fn stray(&self) {
        add(&self.strays, 1);
    }

    pub(crate) fn set_tid(&self, tid: i32) {
        self.tid.store(u64::from(tid.unsigned_abs()), Relaxed);
    }

    pub(crate) fn read(&self) -> CountersNow {
        CountersNow {
            sent_bytes: self.sent_bytes.load(Relaxed),
            sent_messages: self.sent_messages.load(Relaxed),
            received_bytes: self.received_bytes.load(Relaxed),
            received_messages: self.received_messages.load(Relaxed),
            transactions: self.transactions.load(Relaxed),
            strays: self.strays.load(Relaxed),
            tid: self.tid.load(Relaxed) as u32,
        }
    }
}

/// [`Counters`] at one instant.
#[derive(Debug, Clone, Copy)]
pub(crate) struct CountersNow {
    pub(crate) sent_bytes: u64,
    pub(crate) sent_messages: u64,
    pub(crate) received_bytes: u64,
    pub(crate) received_messages: u64,
    pub(crate) transactions: u64,
    pub(crate) strays: u64,
    pub(crate) tid: u32,
}

fn add(counter: &AtomicU64, amount: u64) {
    counter.store(counter.load(Relaxed).wrapping_add(amount), Relaxed);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn phases_move_until_the_stop() {
        let control = Control::new();
        assert_eq!(control.phase(), None);
        control.start(5);
        assert_eq!(control.phase(), Some(Phase::Warmup));
        control.enter(Phase::Window);
        assert!(control.in_window() && !control.stopped());
        control.stop();
        control.enter(Phase::Tail);
        assert_eq!(control.phase(), None);
        assert!(control.stopped() && !control.aborted());
        control.abort();
        control.stop();
        assert!(control.aborted());
    }

    #[test]
    fn a_window_entered_before_the_start_stays() {
        let control = Control::new();
        control.enter(Phase::Window);
        control.start(0);
        assert!(control.in_window());
    }

    #[test]
    fn a_stop_frees_a_thread_that_waits_for_the_start() {
        let control = Control::new();
        std::thread::scope(|scope| {
            let waiting = scope.spawn(|| control.ready(true));
            assert_eq!(control.wait_for(Duration::from_secs(5), |p| p.prepared == 1).prepared, 1);
            control.stop();
            assert_eq!(waiting.join().unwrap(), None);
        });
    }

    #[test]
    fn counters_have_cache_lines_of_their_own() {
        assert_eq!(std::mem::align_of::<Counters>(), 128);
        assert_eq!(std::mem::align_of::<State>(), 128);
        let counters = Counters::default();
        counters.sent(10, 1);
        counters.sent(5, 1);
        let now = counters.read();
        assert_eq!((now.sent_bytes, now.sent_messages), (15, 2));
    }
}
