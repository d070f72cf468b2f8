//! A whole run of a profile.

use std::io;
use std::net::IpAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::thread::{self, JoinHandle};
use std::time::Duration;

use linerate_model::reading::StreamReading;
use linerate_sys::clock;

use crate::uperf::master::conduct::{Conductor, Halt};
use crate::uperf::master::controls::{Control, Entry, connect_all};
use crate::uperf::strand::{
    Durations, Gate, History, Listener, Remote, Side, Strand, StrandResult, Total, not_offered,
    open_listeners, ports_of,
};
use crate::uperf::wire::{Command, Goodbye, Layout, Ports};
use crate::uperf::workorder::{Group, Profile};

const GOODBYE_LIMIT: Duration = Duration::from_secs(15);
const GOODBYE_LIMIT_AFTER_ERRORS: Duration = Duration::from_secs(1);
const STACK_BYTES: usize = 256 * 1024;

/// Most strands of a run.
const MOST_STRANDS: u64 = 30_000;

/// How a profile is to be run.
#[derive(Debug, Clone)]
pub struct MasterOptions {
    /// Where slaves listen.
    pub control_port: u16,
    /// Between two progress events.
    pub interval: Duration,
    /// What slaves speak; found out where it is not given.
    pub layout: Option<Layout>,
    /// File for a line of each flowop record.
    pub history: Option<PathBuf>,
    /// Whether slaves are asked for their figures.
    pub goodbyes: bool,
    /// Whether a distribution of iterations is wanted.
    pub latencies: bool,
}

/// Why a run did not begin.
#[derive(Debug, thiserror::Error)]
pub enum MasterError {
    /// No control connection.
    #[error("Error connecting to {host}")]
    Connect {
        /// The slave.
        host: String,
        /// Its control port.
        port: u16,
        /// Why.
        cause: io::Error,
    },
    /// The slave will not.
    #[error("{host} says: {message}")]
    Refused {
        /// The slave.
        host: String,
        /// Its words.
        message: String,
    },
    /// The handshake failed.
    #[error("Error while handshaking with {host}")]
    Handshake {
        /// The slave.
        host: String,
        /// What happened.
        message: String,
    },
    /// This end can't.
    #[error("{0}")]
    Here(String),
}

/// How far a transaction is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Progress {
    /// The transaction, from 0.
    pub index: u32,
    /// All strands' figures since it began.
    pub total: Total,
    /// Since it began, nanoseconds.
    pub elapsed_ns: u64,
}

/// What happens during a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RunEvent {
    /// The handshake is over, after this many nanoseconds.
    Ready(u64),
    /// A transaction began.
    Began(Progress),
    /// An interval is over.
    Progress(Progress),
    /// A transaction is over.
    Ended(Progress),
}

/// What all strands did in one transaction.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TransactionResult {
    /// The transaction, from 0.
    pub index: u32,
    /// Bytes and operations.
    pub total: Total,
    /// From its begin to the end of its last operation, nanoseconds.
    pub elapsed_ns: u64,
}

/// What one slave said of one group.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HostResult {
    /// The slave.
    pub host: String,
    /// Its figures; none where it gave none, with the reason.
    pub goodbye: Result<Goodbye, String>,
}

/// What one strand or group did.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PartResult {
    /// Its label.
    pub name: String,
    /// Bytes and operations.
    pub total: Total,
    /// From its start to its end, nanoseconds.
    pub elapsed_ns: u64,
}

/// What a run came to.
#[derive(Debug, Clone, Default)]
pub struct Outcome {
    /// From the end of the handshake to the end of the last strand, nanoseconds.
    pub elapsed_ns: u64,
    /// All strands of the master.
    pub total: Total,
    /// Each transaction.
    pub transactions: Vec<TransactionResult>,
    /// Each group.
    pub groups: Vec<PartResult>,
    /// Each strand.
    pub strands: Vec<PartResult>,
    /// Each strand, as a record has it.
    pub readings: Vec<StreamReading>,
    /// Durations of iterations, by transaction.
    pub iterations: Vec<Durations>,
    /// Durations of flowops, by name.
    pub flowops: Vec<(&'static str, Durations)>,
    /// Each slave.
    pub hosts: Vec<HostResult>,
    /// What was granted otherwise than asked.
    pub warnings: Vec<String>,
    /// What went wrong, and whose fault it is.
    pub errors: Vec<String>,
    /// A slave ended the run.
    pub slave_aborted: bool,
    /// A signal ended the run.
    pub interrupted: bool,
}

/// What a master does in a trial, beside what it does as uperf.
pub(crate) struct Led<'a> {
    pub(crate) entry: Entry,
    /// Hears of the strands' gates before they begin.
    pub(crate) watch: &'a dyn Fn(&[Arc<Gate>]),
    /// Is called before the transaction of this index is begun: the first that moves payload.
    pub(crate) hold: (u32, &'a dyn Fn()),
}

/// Runs a profile; `tell` hears of its progress.
///
/// # Errors
/// It did not begin. What goes wrong later is in the outcome.
pub fn run_profile(
    profile: &Profile,
    options: &MasterOptions,
    interrupted: &AtomicBool,
    tell: &mut dyn FnMut(RunEvent),
) -> Result<Outcome, MasterError> {
    run_led(profile, options, interrupted, tell, None)
}

/// As [`run_profile`], in a trial.
pub(crate) fn run_led(
    profile: &Profile,
    options: &MasterOptions,
    interrupted: &AtomicBool,
    tell: &mut dyn FnMut(RunEvent),
    led: Option<&Led<'_>>,
) -> Result<Outcome, MasterError> {
    let begun_ns = clock::monotonic_ns();
    let groups: Vec<Arc<Group>> = profile.groups.iter().cloned().map(Arc::new).collect();
    check(&groups)?;
    let history = open_history(options)?;
    let mut controls = connect_all(&groups, options.control_port, options.layout, led.map(|l| &l.entry))?;
    let listeners = handshake(&groups, &mut controls)?;
    let gates: Vec<_> = groups.iter().map(|g| Arc::new(Gate::new(g.strands as usize))).collect();
    if let Some(led) = led {
        (led.watch)(&gates);
    }
    let from = led.map(|l| l.entry.from);
    let mut strands = Vec::new();
    for (index, listeners) in listeners.into_iter().enumerate() {
        let started = start(
            index,
            &groups[index],
            &gates[index],
            listeners,
            &controls,
            (history.as_ref(), options.latencies, from),
        );
        match started {
            Ok(threads) => strands.push(threads),
            Err(e) => {
                gates.iter().for_each(|g| g.kill());
                return Err(e);
            }
        }
    }
    if let Err(e) = controls.iter_mut().try_for_each(Control::end) {
        gates.iter().for_each(|g| g.kill());
        return Err(e);
    }
    let ready_ns = clock::monotonic_ns();
    tell(RunEvent::Ready(ready_ns - begun_ns));
    let mut conductor = Conductor {
        groups: &groups,
        gates: &gates,
        controls: &mut controls,
        interval: options.interval,
        interrupted,
        tell,
        hold: led.map(|l| l.hold),
        transactions: Vec::new(),
        timers: Vec::new(),
    };
    let halted = conductor.run().err();
    let mut outcome = Outcome { transactions: conductor.transactions, ..Outcome::default() };
    if halted.is_some() {
        gates.iter().for_each(|g| g.kill());
    }
    note_halt(&mut outcome, halted.as_ref());
    if options.goodbyes {
        ask_for_goodbyes(&mut controls, halted.as_ref());
    }
    let results = join(strands);
    outcome.elapsed_ns = clock::monotonic_ns() - ready_ns;
    gather(&mut outcome, &groups, &results);
    if options.goodbyes {
        hear_goodbyes(&mut outcome, &mut controls);
    }
    if let Some(Err(e)) = history.map(|h| h.flush()) {
        outcome.errors.push(format!("write history: {e}"));
    }
    Ok(outcome)
}

fn check(groups: &[Arc<Group>]) -> Result<(), MasterError> {
    let strands: u64 = groups.iter().map(|g| u64::from(g.strands)).sum();
    if strands > MOST_STRANDS {
        return Err(MasterError::Here(format!("{strands} threads are more than {MOST_STRANDS}")));
    }
    if let Some(protocol) = groups.iter().flat_map(|g| g.protocols()).find(|p| !p.is_offered()) {
        return Err(MasterError::Here(not_offered(protocol)));
    }
    if groups.iter().any(|g| g.accepts() && g.hosts().len() > 1) {
        return Err(MasterError::Here("a group that accepts can have one remotehost".into()));
    }
    Ok(())
}

fn open_history(options: &MasterOptions) -> Result<Option<Arc<History>>, MasterError> {
    let Some(path) = &options.history else { return Ok(None) };
    let opened = History::create(path);
    opened.map(|h| Some(Arc::new(h))).map_err(|e| MasterError::Here(format!("{}: {e}", path.display())))
}

/// Up to the point where slaves have started their strands; returns the master's own listeners.
fn handshake(
    groups: &[Arc<Group>],
    controls: &mut [Control],
) -> Result<Vec<Vec<Vec<Listener>>>, MasterError> {
    controls.iter_mut().try_for_each(Control::first)?;
    let mut listeners = Vec::new();
    for group in groups {
        listeners.push(open_listeners(group).map_err(MasterError::Here)?);
    }
    for control in controls {
        let own = &listeners[control.group];
        let ports: Vec<Ports> = if groups[control.group].accepts() {
            own.iter().map(|l| ports_of(l)).collect::<Result<_, _>>().map_err(MasterError::Here)?
        } else {
            Vec::new()
        };
        control.second(&ports)?;
    }
    Ok(listeners)
}

fn start(
    group_index: usize,
    group: &Arc<Group>,
    gate: &Arc<Gate>,
    listeners: Vec<Vec<Listener>>,
    controls: &[Control],
    (history, latencies, from): (Option<&Arc<History>>, bool, Option<IpAddr>),
) -> Result<Vec<JoinHandle<StrandResult>>, MasterError> {
    let mut threads = Vec::new();
    for (index, listeners) in listeners.into_iter().enumerate() {
        let remotes = controls.iter().filter(|c| c.group == group_index).map(|control| Remote {
            host: control.host.clone(),
            address: control.address,
            ports: control.ports.get(index).copied().unwrap_or_default(),
            from,
        });
        let strand = Strand {
            index,
            side: Side::Master,
            group: group.clone(),
            gate: gate.clone(),
            remotes: remotes.collect(),
            listeners,
            history: history.cloned(),
            latencies,
            bits_per_second: None,
        };
        let builder = thread::Builder::new().name(format!("uperf-{index}")).stack_size(STACK_BYTES);
        let thread = builder.spawn(move || strand.run());
        threads.push(thread.map_err(|e| MasterError::Here(format!("start thread {index}: {e}")))?);
    }
    Ok(threads)
}

fn note_halt(outcome: &mut Outcome, halted: Option<&Halt>) {
    match halted {
        None => {}
        Some(Halt::Interrupted) => outcome.interrupted = true,
        Some(Halt::SlaveAborted(_)) => outcome.slave_aborted = true,
        Some(Halt::Failed(failure)) => outcome.errors.push(failure.clone()),
    }
}

fn ask_for_goodbyes(controls: &mut [Control], halted: Option<&Halt>) {
    let command = if halted.is_none() { Command::SendStats } else { Command::Abort };
    for control in controls {
        // A slave that is gone is found when its goodbye does not come.
        let _gone = control.command(command);
    }
}

fn hear_goodbyes(outcome: &mut Outcome, controls: &mut [Control]) {
    for control in controls {
        let sound = outcome.errors.is_empty() && !outcome.slave_aborted && !outcome.interrupted;
        let limit = if sound { GOODBYE_LIMIT } else { GOODBYE_LIMIT_AFTER_ERRORS };
        let goodbye = control.goodbye(limit);
        outcome.hosts.push(HostResult { host: control.host.clone(), goodbye });
    }
}

fn join(strands: Vec<Vec<JoinHandle<StrandResult>>>) -> Vec<Vec<StrandResult>> {
    let ended = |t: JoinHandle<StrandResult>| {
        t.join().unwrap_or_else(|_| StrandResult {
            failure: Some("a strand panicked".into()),
            ..StrandResult::default()
        })
    };
    strands.into_iter().map(|group| group.into_iter().map(ended).collect()).collect()
}

fn gather(outcome: &mut Outcome, groups: &[Arc<Group>], results: &[Vec<StrandResult>]) {
    let most = groups.iter().map(|g| g.transactions.len()).max().unwrap_or(0);
    outcome.iterations = vec![Durations::default(); most];
    for (index, (group, results)) in groups.iter().zip(results).enumerate() {
        let mut sum = Total::default();
        for result in results {
            let total = Total { bytes: result.bytes, operations: result.operations };
            sum = sum.plus(total);
            let name = format!("Thr{}", outcome.strands.len());
            outcome.readings.push(reading(outcome.readings.len(), result));
            outcome.strands.push(PartResult { name, total, elapsed_ns: result.elapsed_ns });
            merge_times(outcome, group, result);
            for warning in &result.warnings {
                push_once(&mut outcome.warnings, warning);
            }
            if let Some(failure) = &result.failure {
                push_once(&mut outcome.errors, failure);
            }
        }
        let elapsed_ns = results.iter().map(|r| r.elapsed_ns).max().unwrap_or(0);
        let name = group.name.clone().unwrap_or_else(|| format!("Group{index}"));
        outcome.groups.push(PartResult { name, total: sum, elapsed_ns });
        outcome.total = outcome.total.plus(sum);
    }
}

fn reading(index: usize, result: &StrandResult) -> StreamReading {
    StreamReading {
        index: u32::try_from(index).unwrap_or(u32::MAX),
        sent: result.moved.sent,
        received: result.moved.received,
        transactions: result.moved.transactions,
        latency: result.latency.clone(),
        error: result.failure.clone(),
        ..StreamReading::default()
    }
}

fn merge_times(outcome: &mut Outcome, group: &Group, result: &StrandResult) {
    for (index, (transaction, times)) in group.transactions.iter().zip(&result.transactions).enumerate() {
        outcome.iterations[index].merge(&times.iterations);
        for (flowop, durations) in transaction.flowops.iter().zip(&times.flowops) {
            let name = flowop.kind.name();
            match outcome.flowops.iter_mut().find(|(n, _)| *n == name) {
                Some((_, sum)) => sum.merge(durations),
                None => outcome.flowops.push((name, *durations)),
            }
        }
    }
}

fn push_once(list: &mut Vec<String>, text: &str) {
    if !list.iter().any(|t| t == text) {
        list.push(text.to_owned());
    }
}
