//! Pumps a slave's machine over a control connection, and conducts its strands.

use std::io::{self, Read, Write};
use std::net::TcpStream;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use linerate_sys::clock;

use crate::uperf::slave::machine::{SlaveAction, SlaveMachine, Workorder};
use crate::uperf::strand::{Gate, Remote, Side, Strand, StrandResult, Total, open_listeners, ports_of, wake};
use crate::uperf::wire::{Goodbye, GoodbyeKind, Layout, Ports};
use crate::uperf::workorder::Group;

/// How often a quiet connection looks at its strands and the stop flag.
const POLL: Duration = Duration::from_millis(20);

/// Longest wait for bytes of a handshake that began.
const HANDSHAKE_LIMIT_NS: u64 = 30_000_000_000;

/// Silence after which what still runs of a transaction ends, once the master has gone on.
const STALL_NS: u64 = 250_000_000;

/// Silence after which a transaction whose time is over has ended, though the master has not gone on yet.
const QUIET_NS: u64 = 300_000_000;

/// Longest that a timed transaction may take to end.
const LONGEST_SETTLE_NS: u64 = 5_000_000_000;

const SETTLE_POLL: Duration = Duration::from_millis(2);

const STACK_BYTES: usize = 256 * 1024;

/// What one client may ask for.
#[derive(Debug, Clone, Copy)]
pub struct Limits {
    /// Strands of a workorder.
    pub most_strands: u32,
    /// From the end of the handshake.
    pub max_duration: Option<Duration>,
    /// What all strands of a workorder send together.
    pub max_bits_per_second: Option<u64>,
}

impl Default for Limits {
    fn default() -> Self {
        Self { most_strands: 4096, max_duration: None, max_bits_per_second: None }
    }
}

/// What a control connection came to.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct SlaveSummary {
    /// The layout that the master spoke.
    pub layout: Option<Layout>,
    /// Strands that ran; 0 where the handshake never ended, as of masters that only look.
    pub strands: u32,
    /// Payload, both ways.
    pub bytes: u64,
    /// Flowops executed.
    pub operations: u64,
    /// From the end of the handshake to the end of the last strand, nanoseconds.
    pub elapsed_ns: u64,
    /// What went wrong, if anything.
    pub failure: Option<String>,
}

/// Serves one master until it closes or all is done. The caller has checked who the peer is, and runs this on a thread of the
/// client's own. UDP is sent only to the control connection's peer.
///
/// # Errors
/// The control connection fails.
pub fn serve_connection(stream: &TcpStream, limits: &Limits, stop: &AtomicBool) -> io::Result<SlaveSummary> {
    serve_watched(stream, limits, stop, None)
}

/// Hears of the gate of the strands that a workorder made, before they begin.
pub(crate) type GateWatch<'a> = &'a (dyn Fn(&Arc<Gate>) + Sync);

/// As [`serve_connection`], for who wants to look at the strands meanwhile.
pub(crate) fn serve_watched(
    stream: &TcpStream,
    limits: &Limits,
    stop: &AtomicBool,
    watch: Option<GateWatch<'_>>,
) -> io::Result<SlaveSummary> {
    stream.set_read_timeout(Some(POLL))?;
    stream.set_nodelay(true)?;
    let mut session = Session {
        stream,
        limits,
        watch,
        machine: SlaveMachine::new(limits.most_strands),
        running: None,
        summary: SlaveSummary::default(),
        open: true,
    };
    let outcome = session.pump(stop);
    session.end_strands();
    outcome?;
    Ok(session.summary)
}

struct Session<'a> {
    stream: &'a TcpStream,
    limits: &'a Limits,
    watch: Option<GateWatch<'a>>,
    machine: SlaveMachine,
    running: Option<Running>,
    summary: SlaveSummary,
    open: bool,
}

/// Strands at work.
struct Running {
    group: Arc<Group>,
    gate: Arc<Gate>,
    threads: Vec<JoinHandle<StrandResult>>,
    started_ns: u64,
    /// When the released transaction is to end by this side's clock.
    timer_ns: Option<u64>,
    /// What was moved when that was last looked at, and since when it is so.
    seen: (Total, u64),
    /// When all is to end, whatever the master wants.
    deadline_ns: u64,
}

impl Session<'_> {
    fn pump(&mut self, stop: &AtomicBool) -> io::Result<()> {
        let mut buffer = [0; 16384];
        let mut heard_ns = clock::monotonic_ns();
        while self.open {
            let actions = match { self.stream }.read(&mut buffer) {
                Ok(0) => self.machine.closed(),
                Ok(count) => {
                    heard_ns = clock::monotonic_ns();
                    self.machine.receive(&buffer[..count])
                }
                Err(e) if is_pause(&e) => self.tend(heard_ns, stop),
                // A master that was killed while we were in the middle.
                Err(e) if self.summary.strands > 0 => {
                    self.summary.failure = Some(format!("control connection: {e}"));
                    self.machine.closed()
                }
                // Masters look with connections that they throw away.
                Err(e) if e.kind() == io::ErrorKind::ConnectionReset => self.machine.closed(),
                Err(e) => return Err(e),
            };
            self.act(actions)?;
        }
        Ok(())
    }

    /// What is to be looked after though the master says nothing.
    fn tend(&mut self, heard_ns: u64, stop: &AtomicBool) -> Vec<SlaveAction> {
        let now_ns = clock::monotonic_ns();
        let Some(running) = &mut self.running else {
            if stop.load(Relaxed) || now_ns - heard_ns > HANDSHAKE_LIMIT_NS {
                return self.machine.closed();
            }
            return Vec::new();
        };
        running.tend(now_ns);
        if let Some(failure) = running.gate.failure() {
            return vec![SlaveAction::Kill(Some(failure))];
        }
        if now_ns > running.deadline_ns {
            return vec![SlaveAction::Kill(Some("the longest duration was reached".into()))];
        }
        if stop.load(Relaxed) {
            return vec![SlaveAction::Kill(Some("the server stops".into()))];
        }
        Vec::new()
    }

    fn act(&mut self, actions: Vec<SlaveAction>) -> io::Result<()> {
        for action in actions {
            match action {
                SlaveAction::Send(bytes) => {
                    // The master may be gone: then there's nobody to tell.
                    if let Err(e) = { self.stream }.write_all(&bytes) {
                        self.summary.failure.get_or_insert_with(|| format!("control connection: {e}"));
                        self.open = false;
                    }
                }
                SlaveAction::Prepare(work) => {
                    let outcome = self.prepare(*work);
                    if let Err(message) = &outcome {
                        self.summary.failure = Some(message.clone());
                    }
                    let next = self.machine.prepared(outcome);
                    self.act(next)?;
                }
                SlaveAction::Begin => {
                    if let Some(running) = &mut self.running {
                        running.started_ns = clock::monotonic_ns();
                        self.summary.strands = running.group.strands;
                    }
                }
                SlaveAction::Release(index) => {
                    if let Some(running) = &mut self.running {
                        running.release(index);
                    }
                }
                SlaveAction::Finish => {
                    if let Some(running) = &mut self.running {
                        running.finish();
                    }
                    self.say_goodbye(None)?;
                }
                SlaveAction::Kill(why) => self.say_goodbye(why)?,
                SlaveAction::Close => self.open = false,
            }
        }
        Ok(())
    }

    fn prepare(&mut self, work: Workorder) -> Result<Vec<Ports>, String> {
        let peer = self.stream.peer_addr().map_err(|e| format!("read the master's address: {e}"))?;
        wake::prepare().map_err(|e| format!("handle signal: {e}"))?;
        let Workorder { group, ports } = work;
        let listeners = open_listeners(&group)?;
        let own_ports = if group.accepts() {
            listeners.iter().map(|l| ports_of(l)).collect::<Result<_, _>>()?
        } else {
            Vec::new()
        };
        let share = self.limits.max_bits_per_second.map(|most| most / u64::from(group.strands.max(1)));
        let group = Arc::new(group);
        let gate = Arc::new(Gate::new(group.strands as usize));
        let mut threads = Vec::new();
        for (index, listeners) in listeners.into_iter().enumerate() {
            let remote = Remote {
                host: peer.ip().to_string(),
                address: peer.ip().to_canonical(),
                ports: ports.get(index).copied().unwrap_or_default(),
                from: self
                    .stream
                    .local_addr()
                    .ok()
                    .map(|a| a.ip().to_canonical())
                    .filter(|_| self.watch.is_some()),
            };
            let strand = Strand {
                index,
                side: Side::Slave,
                group: group.clone(),
                gate: gate.clone(),
                remotes: vec![remote],
                listeners,
                history: None,
                latencies: false,
                bits_per_second: share,
            };
            let builder = thread::Builder::new().name(format!("uperf-{index}")).stack_size(STACK_BYTES);
            match builder.spawn(move || strand.run()) {
                Ok(thread) => threads.push(thread),
                Err(e) => {
                    gate.kill();
                    threads.into_iter().for_each(|t| drop(t.join()));
                    return Err(format!("start thread {index}: {e}"));
                }
            }
        }
        self.summary.layout = self.machine.layout();
        if let Some(watch) = self.watch {
            watch(&gate);
        }
        let started_ns = clock::monotonic_ns();
        let limit_ns = self.limits.max_duration.map_or(u64::MAX, |d| d.as_nanos() as u64);
        let deadline_ns = started_ns.saturating_add(limit_ns);
        self.running = Some(Running {
            group,
            gate,
            threads,
            started_ns,
            timer_ns: None,
            seen: (Total::default(), 0),
            deadline_ns,
        });
        Ok(own_ports)
    }

    fn say_goodbye(&mut self, why: Option<String>) -> io::Result<()> {
        let (results, elapsed_ns) = self.end_strands();
        let total = results
            .iter()
            .fold(Total::default(), |sum, r| sum.plus(Total { bytes: r.bytes, operations: r.operations }));
        let goodbye = goodbye(&results, why.as_deref(), total, elapsed_ns);
        self.summary.bytes = total.bytes;
        self.summary.operations = total.operations;
        self.summary.elapsed_ns = elapsed_ns;
        let failure = results.iter().find_map(|r| r.failure.clone());
        self.summary.failure = self.summary.failure.take().or(why).or(failure);
        let actions = self.machine.finished(&goodbye);
        self.act(actions)
    }

    /// Ends what runs, and gathers it.
    fn end_strands(&mut self) -> (Vec<StrandResult>, u64) {
        let Some(running) = self.running.take() else { return (Vec::new(), 0) };
        running.gate.kill();
        let results = running.threads.into_iter().filter_map(|t| t.join().ok()).collect();
        (results, clock::monotonic_ns() - running.started_ns)
    }
}

impl Running {
    /// Ends a transaction by this side's clock. Whoever only sends or thinks ends at once; whoever receives ends when nothing
    /// comes any more, so that no sender is left with nobody to read.
    fn tend(&mut self, now_ns: u64) {
        let Some(timer_ns) = self.timer_ns else { return };
        let total = self.gate.total();
        if total != self.seen.0 {
            self.seen = (total, now_ns);
        }
        if now_ns < timer_ns {
            return;
        }
        let index = self.gate.released().saturating_sub(1);
        if !self.receives(index) {
            self.gate.stop_softly(index);
            self.timer_ns = None;
        } else if now_ns - self.seen.1.max(timer_ns) > QUIET_NS {
            self.gate.stop_blocked(index);
            wake::wake(&self.threads);
            self.timer_ns = None;
        }
    }

    fn receives(&self, index: u32) -> bool {
        let transaction = self.group.transactions.get(index as usize);
        transaction.is_some_and(|t| t.flowops.iter().any(|f| f.kind.receives()))
    }

    /// Lets transaction `index` begin once earlier ones are over.
    fn release(&mut self, index: u32) {
        let released = self.gate.released();
        if released > 0 {
            let timed = self.group.transactions[released as usize - 1].duration_ns > 0;
            if timed {
                self.gate.stop_blocked(released - 1);
                if !self.receives(released - 1) {
                    self.gate.stop_softly(released - 1);
                }
            }
            self.settle(index);
        }
        self.gate.release(index);
        let now_ns = clock::monotonic_ns();
        let duration_ns = self.group.transactions[index as usize].duration_ns;
        self.timer_ns = (duration_ns > 0).then(|| now_ns.saturating_add(duration_ns));
        self.seen = (self.gate.total(), now_ns);
    }

    /// Lets the last released transaction come to its end.
    fn finish(&mut self) {
        let released = self.gate.released();
        if released == 0 {
            return;
        }
        if self.group.transactions[released as usize - 1].duration_ns > 0 && !self.receives(released - 1) {
            self.gate.stop_softly(released - 1);
        }
        self.settle(u32::MAX);
    }

    /// Waits until all strands are at barrier `index`, and ends those that make no headway: the master has gone on.
    fn settle(&mut self, index: u32) {
        let released = self.gate.released();
        let timed = self.group.transactions[released as usize - 1].duration_ns > 0;
        let mut seen = self.gate.total();
        let begun_ns = clock::monotonic_ns();
        let mut moved_ns = begun_ns;
        // Strands at the barrier after the released one go no further.
        while !self.gate.all_at(index.min(released)) && self.gate.failure().is_none() {
            if self.gate.stops_blocked(released - 1) {
                wake::wake(&self.threads);
            }
            self.gate.wait(SETTLE_POLL);
            let (total, now_ns) = (self.gate.total(), clock::monotonic_ns());
            if total != seen {
                (seen, moved_ns) = (total, now_ns);
            }
            if now_ns - moved_ns > STALL_NS {
                self.gate.stop_blocked(released - 1);
            }
            if timed && now_ns - begun_ns > LONGEST_SETTLE_NS {
                self.gate.stop_softly(released - 1);
            }
            if now_ns > self.deadline_ns {
                return self.gate.kill();
            }
        }
    }
}

fn goodbye(results: &[StrandResult], why: Option<&str>, total: Total, elapsed_ns: u64) -> Goodbye {
    let mut errors: Vec<&str> = results.iter().filter_map(|r| r.failure.as_deref()).collect();
    let failed = errors.len() as u64;
    errors.extend(why);
    errors.dedup();
    let mut warnings: Vec<&str> =
        results.iter().flat_map(|r| r.warnings.iter().map(String::as_str)).collect();
    warnings.sort_unstable();
    warnings.dedup();
    let lines =
        errors.iter().map(|e| format!(" {e} \n")).chain(warnings.iter().map(|w| format!("Warning: {w} \n")));
    let text: String = lines.collect();
    let (kind, text) =
        if text.is_empty() { (GoodbyeKind::Info, "Success".into()) } else { (GoodbyeKind::Error, text) };
    Goodbye { kind, elapsed_ns, errors: failed, bytes: total.bytes, operations: total.operations, text }
}

fn is_pause(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut | io::ErrorKind::Interrupted)
}
