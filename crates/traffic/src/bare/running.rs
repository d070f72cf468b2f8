//! A loop on a thread of its own.

use std::panic;
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use linerate_sys::{SysError, affinity, clock};
use socket2::Socket;

use super::{Count, MoveError, Result, Tally};

/// How long a blocked call may take to see the stop flag.
pub const TICK: Duration = Duration::from_millis(20);

/// A loop that runs, with its owner's handle on it. Dropping the handle stops the loop and waits for it.
#[derive(Debug)]
pub struct Running<T> {
    tally: Arc<Tally>,
    ended: Arc<Ended>,
    thread: Option<JoinHandle<(Result<T>, u64)>>,
}

/// What a loop left when it was over.
#[derive(Debug)]
pub struct Finished<T> {
    /// Its result.
    pub outcome: Result<T>,
    /// All that it moved.
    pub count: Count,
    /// CLOCK_MONOTONIC when it ended, nanoseconds.
    pub ended_ns: u64,
    /// CPU time of its thread, nanoseconds.
    pub cpu_ns: u64,
}

#[derive(Debug, Default)]
struct Ended {
    at_ns: Mutex<Option<u64>>,
    changed: Condvar,
}

impl Ended {
    fn note(&self) {
        let mut at_ns = self.at_ns.lock().unwrap_or_else(PoisonError::into_inner);
        at_ns.get_or_insert_with(clock::monotonic_ns);
        self.changed.notify_all();
    }
}

/// Marks the loop as ended even if it panics.
struct EndGuard(Arc<Ended>);

impl Drop for EndGuard {
    fn drop(&mut self) {
        self.0.note();
    }
}

impl<T: Send + 'static> Running<T> {
    /// Starts `work` on a thread named `lr-NAME`, pinned to `cpu`. Sets the socket's timeouts to [`TICK`].
    ///
    /// # Errors
    /// The socket takes no timeout, or the thread can't be started. A CPU that can't be had is the loop's error.
    pub fn start(
        name: &str,
        socket: &Arc<Socket>,
        cpu: Option<usize>,
        work: impl FnOnce(&Tally, &Socket) -> Result<T> + Send + 'static,
    ) -> std::result::Result<Self, SysError> {
        socket
            .set_read_timeout(Some(TICK))
            .and_then(|()| socket.set_write_timeout(Some(TICK)))
            .map_err(|e| SysError::new("set timeouts", "data socket", e))?;
        let tally = Arc::new(Tally::new());
        let ended = Arc::new(Ended::default());
        let (shared, guard, socket) = (tally.clone(), EndGuard(ended.clone()), socket.clone());
        let thread = thread::Builder::new()
            .name(format!("lr-{name}"))
            .spawn(move || {
                let _guard = guard;
                shared.set_tid(affinity::thread_id());
                let outcome = settle(cpu).and_then(|()| work(&shared, &socket));
                (outcome, clock::thread_cpu_ns())
            })
            .map_err(|e| SysError::new("start thread", name, e))?;
        Ok(Self { tally, ended, thread: Some(thread) })
    }

    /// Stop flag and counters.
    pub fn tally(&self) -> &Arc<Tally> {
        &self.tally
    }

    /// Waits until the loop is over, at most `limit`; whether it is.
    pub fn wait(&self, limit: Duration) -> bool {
        let deadline = Instant::now() + limit;
        let mut at_ns = self.ended.at_ns.lock().unwrap_or_else(PoisonError::into_inner);
        while at_ns.is_none() {
            let left = deadline.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return false;
            }
            at_ns = self.ended.changed.wait_timeout(at_ns, left).unwrap_or_else(PoisonError::into_inner).0;
        }
        true
    }

    /// Asks the loop to end, without waiting.
    pub fn stop(&self) {
        self.tally.stop();
    }

    /// Stops the loop, waits for its end and takes what it left. A panic of the loop goes on here.
    pub fn finish(mut self) -> Finished<T> {
        self.stop();
        let thread =
            self.thread.take().expect("only finish and drop take the thread, and each ends the handle");
        let (outcome, cpu_ns) = thread.join().unwrap_or_else(|cause| panic::resume_unwind(cause));
        let at_ns = *self.ended.at_ns.lock().unwrap_or_else(PoisonError::into_inner);
        Finished {
            outcome,
            count: self.tally.count(),
            ended_ns: at_ns.unwrap_or_else(clock::monotonic_ns),
            cpu_ns,
        }
    }
}

impl<T> Drop for Running<T> {
    fn drop(&mut self) {
        if let Some(thread) = self.thread.take() {
            self.tally.stop();
            // A panic of it was printed by the panic hook.
            let _panicked = thread.join();
        }
    }
}

fn settle(cpu: Option<usize>) -> Result<()> {
    let failed = |operation| move |e: SysError| MoveError::new(operation, std::io::Error::other(e));
    if let Some(cpu) = cpu {
        affinity::pin_thread(&[cpu]).map_err(failed("pin thread"))?;
    }
    clock::set_timer_slack(1).map_err(failed("set timer slack"))
}
