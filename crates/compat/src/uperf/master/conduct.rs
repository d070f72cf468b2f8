//! Leads all groups, here and on the slaves, from transaction to transaction.
//!
//! A transaction begins once all strands that have it wait for it. To a slave the news of the next one also means that it is to
//! drop what it still does in the last: so it is given a moment to take what is on its way.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::thread;
use std::time::Duration;

use linerate_sys::clock;

use crate::uperf::master::controls::Control;
use crate::uperf::master::run::{Progress, RunEvent, TransactionResult};
use crate::uperf::strand::{Gate, Total};
use crate::uperf::wire::Command;
use crate::uperf::workorder::Group;

const POLL: Duration = Duration::from_millis(5);

/// How often the control connections are looked at.
const CONTROL_POLL_NS: u64 = 50_000_000;

/// A moment between two transactions.
const PAUSE: Duration = Duration::from_millis(100);

/// By how much slaves hear of a transaction before the master's strands begin it: their strands must not take what belongs
/// to it for the end of the last one.
pub(crate) const HEADWAY: Duration = Duration::from_millis(50);

/// Silence after which a strand whose time is over no longer waits for the other end.
const STALL_NS: u64 = 250_000_000;

/// Longest that an iteration may take to end once its time is over.
const LONGEST_ITERATION_NS: u64 = 2_000_000_000;

/// Why a run did not come to its end.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Halt {
    /// A slave spoke or closed.
    SlaveAborted(String),
    /// A strand failed.
    Failed(String),
    /// A signal came.
    Interrupted,
}

pub(crate) struct Conductor<'a> {
    pub(crate) groups: &'a [Arc<Group>],
    pub(crate) gates: &'a [Arc<Gate>],
    pub(crate) controls: &'a mut [Control],
    pub(crate) interval: Duration,
    pub(crate) interrupted: &'a AtomicBool,
    pub(crate) tell: &'a mut dyn FnMut(RunEvent),
    /// What is called before the transaction of this index is begun.
    pub(crate) hold: Option<(u32, &'a dyn Fn())>,
    pub(crate) transactions: Vec<TransactionResult>,
    /// Of each group: the transaction that it is in, and when that is to end.
    pub(crate) timers: Vec<(u32, Timer)>,
}

/// The transaction that runs.
struct Current {
    index: u32,
    begun_ns: u64,
    before: Total,
    next_progress_ns: u64,
    next_look_ns: u64,
}

/// When a group's transaction is to end.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Timer {
    None,
    Due(u64),
    /// Its time is over: when the first stop was given, the total then, and when that last changed.
    Stopped(u64, Total, u64),
    Over,
}

impl Conductor<'_> {
    /// Runs all transactions; strands are over afterwards, unless it was halted.
    pub(crate) fn run(&mut self) -> Result<(), Halt> {
        let count = self.groups.iter().map(|g| g.transactions.len()).max().unwrap_or(0) as u32;
        let mut current = None;
        for index in 0..count {
            self.wait(current.as_mut(), index)?;
            if let Some(current) = current.take() {
                self.end(&current);
                thread::sleep(PAUSE);
            }
            if let Some((_, hold)) = self.hold.filter(|(at, _)| *at == index) {
                hold();
            }
            for control in self.controls.iter_mut() {
                let host = control.host.clone();
                control.command(Command::Next(index)).map_err(|_| Halt::SlaveAborted(host))?;
            }
            thread::sleep(HEADWAY);
            current = Some(self.begin(index));
        }
        self.wait(current.as_mut(), u32::MAX)?;
        if let Some(current) = current {
            self.end(&current);
        }
        Ok(())
    }

    fn begin(&mut self, index: u32) -> Current {
        let (begun_ns, before) = (clock::monotonic_ns(), self.total());
        self.timers.resize(self.groups.len(), (0, Timer::None));
        for ((group, gate), timer) in self.groups.iter().zip(self.gates).zip(&mut self.timers) {
            // A group without this transaction may still be in its last one.
            let Some(transaction) = group.transactions.get(index as usize) else { continue };
            gate.release(index);
            *timer = match transaction.duration_ns {
                0 => (index, Timer::None),
                ns => (index, Timer::Due(begun_ns.saturating_add(ns))),
            };
        }
        let next_progress_ns = begun_ns + self.interval.as_nanos() as u64;
        let current = Current { index, begun_ns, before, next_progress_ns, next_look_ns: 0 };
        (self.tell)(RunEvent::Began(Progress { index, total: Total::default(), elapsed_ns: 0 }));
        current
    }

    fn end(&mut self, current: &Current) {
        let ended_ns = self.gates.iter().map(|g| g.ended_ns()).max().unwrap_or(0);
        let result = TransactionResult {
            index: current.index,
            total: self.total().since(current.before),
            elapsed_ns: ended_ns.saturating_sub(current.begun_ns),
        };
        self.transactions.push(result);
        let TransactionResult { index, total, elapsed_ns } = result;
        (self.tell)(RunEvent::Ended(Progress { index, total, elapsed_ns }));
    }

    fn total(&self) -> Total {
        self.gates.iter().fold(Total::default(), |sum, gate| sum.plus(gate.total()))
    }

    /// Waits until all that have transaction `next` wait for it, or with `u32::MAX` are over.
    fn wait(&mut self, mut current: Option<&mut Current>, next: u32) -> Result<(), Halt> {
        loop {
            let ready = self.groups.iter().zip(self.gates).all(|(group, gate)| {
                let has_it = (next as usize) < group.transactions.len();
                if has_it { gate.all_at(next) } else { next != u32::MAX || gate.all_over() }
            });
            if let Some(failure) = self.gates.iter().find_map(|g| g.failure()) {
                return Err(Halt::Failed(failure));
            }
            if ready {
                return Ok(());
            }
            if self.interrupted.load(Relaxed) {
                return Err(Halt::Interrupted);
            }
            if let Some(current) = &mut current {
                self.tend(current)?;
            }
            match self.gates.first() {
                Some(gate) => gate.wait(POLL),
                None => thread::sleep(POLL),
            }
        }
    }

    fn tend(&mut self, current: &mut Current) -> Result<(), Halt> {
        let now_ns = clock::monotonic_ns();
        for ((index, timer), gate) in self.timers.iter_mut().zip(self.gates) {
            *timer = tend_timer(*timer, gate, *index, now_ns);
        }
        if now_ns >= current.next_look_ns {
            current.next_look_ns = now_ns + CONTROL_POLL_NS;
            if let Some(control) = self.controls.iter().find(|c| c.has_aborted()) {
                return Err(Halt::SlaveAborted(control.host.clone()));
            }
        }
        if now_ns >= current.next_progress_ns {
            current.next_progress_ns += self.interval.as_nanos().max(1) as u64;
            let total = self.total().since(current.before);
            let elapsed_ns = now_ns - current.begun_ns;
            (self.tell)(RunEvent::Progress(Progress { index: current.index, total, elapsed_ns }));
        }
        Ok(())
    }
}

fn tend_timer(timer: Timer, gate: &Gate, index: u32, now_ns: u64) -> Timer {
    match timer {
        Timer::Due(due_ns) if now_ns >= due_ns => {
            gate.stop_softly(index);
            Timer::Stopped(now_ns, gate.total(), now_ns)
        }
        Timer::Stopped(since_ns, seen, moved_ns) => {
            let total = gate.total();
            let moved_ns = if total == seen { moved_ns } else { now_ns };
            if now_ns - moved_ns > STALL_NS || now_ns - since_ns > LONGEST_ITERATION_NS {
                gate.stop_blocked(index);
                return Timer::Over;
            }
            Timer::Stopped(since_ns, total, moved_ns)
        }
        other => other,
    }
}
