//! Runs trials between two nodes, and tells what happens as events.

use std::io;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use linerate_agent::auth;
use linerate_agent::node::{Node, NodeError, WindowEvent};
use linerate_agent::protocol::{Prepare, Remote, Schedule};
use linerate_link::restore::Restored;
use linerate_model::NodeUrl;
use linerate_model::environment::Environment;
use linerate_model::event::Event;
use linerate_model::reading::Reading;
use linerate_model::record::{ClockSync, NodeRecord, Outcome, Record};
use linerate_model::trial::{Amount, Family, Side, Trial};
use linerate_model::workload::WorkloadKind;

use crate::clock;
use crate::emulation;
use crate::join::{self, Joined, Place};
use crate::path::Path;
use crate::settings::{InForce, SettingError};

/// Time between the last preparation and the start of traffic: both nodes must have heard by then.
const LEAD_NS: u64 = 20_000_000;
/// A trial that was stopped sooner measured nothing.
const SHORTEST_WINDOW_NS: u64 = 10_000_000;
/// How long a comparison of the nodes' clocks holds.
const CLOCK_LIFE: Duration = Duration::from_secs(20);
/// How much longer than planned a node may take to close its window.
const GRACE: Duration = Duration::from_secs(15);
/// How long each node is listened to in turn.
const TURN: Duration = Duration::from_millis(5);

/// Why a run ended early.
#[derive(Debug, thiserror::Error)]
pub enum RunError {
    /// A node failed.
    #[error(transparent)]
    Node(#[from] NodeError),
    /// A setting can't be meant as it is written.
    #[error(transparent)]
    Setting(#[from] SettingError),
    /// A setting did not go back at the end.
    #[error("node {node}: put its settings back: {what}; linerate restore tries again")]
    NotPutBack {
        /// The node.
        node: String,
        /// Which, and why.
        what: String,
    },
    /// The system refused what the runner itself needs.
    #[error("{operation}: {source}")]
    System {
        /// What was tried.
        operation: &'static str,
        /// The kernel's reason.
        source: io::Error,
    },
}

/// Two nodes with a path between them.
#[derive(Debug)]
pub struct Bench {
    /// The node under test.
    pub dut: Node,
    /// Its partner.
    pub peer: Node,
    /// The ways between them, one for each IP version.
    pub paths: Vec<Path>,
    /// What dead linerates had left changed on the nodes' machines, and what became of it.
    pub left_behind: Vec<(Side, Restored)>,
}

/// What is known of both nodes along one path.
struct Surroundings {
    dut: Environment,
    peer: Environment,
    shared_kernel: bool,
    clock: ClockSync,
    synchronized: Instant,
}

/// Trials one after the other between two nodes, all of one run.
pub struct Session<'a> {
    bench: &'a mut Bench,
    run: &'a str,
    stop: &'a AtomicBool,
    /// What is known of both nodes, as long as neither path nor settings change.
    known: Option<(Family, Surroundings)>,
    in_force: InForce,
    /// Pause after a setting changed.
    settle: Duration,
}

impl<'a> Session<'a> {
    /// `run` is the run's id; `settle` the pause after a setting changed; `stop` ends the trial that is under way.
    pub fn new(bench: &'a mut Bench, run: &'a str, settle: Duration, stop: &'a AtomicBool) -> Self {
        Self { bench, run, stop, known: None, in_force: InForce::default(), settle }
    }

    /// Finds out before any traffic whether the nodes take all settings of these trials.
    ///
    /// # Errors
    /// The first refusal.
    pub fn rehearse(&mut self, trials: &[Trial]) -> Result<(), RunError> {
        self.check(trials)?;
        self.in_force.rehearse(self.bench, trials, self.stop)
    }

    /// Puts back what the trials changed.
    ///
    /// # Errors
    /// Where a node fails, or a setting does not go back.
    pub fn put_back(&mut self) -> Result<(), RunError> {
        self.in_force.put_back(self.bench)
    }

    /// Asks both nodes whether every trial makes sense there: a mistake in the last is told before the first.
    fn check(&mut self, trials: &[Trial]) -> Result<(), RunError> {
        let what_matters =
            |t: &Trial| (t.pin.clone(), t.workload.tcp_options().and_then(|o| o.congestion.clone()));
        let mut checked = Vec::new();
        for trial in trials {
            let matters = what_matters(trial);
            if checked.contains(&matters) {
                continue;
            }
            self.bench.dut.check(trial, Side::Dut)?;
            self.bench.peer.check(trial, Side::Peer)?;
            checked.push(matters);
        }
        Ok(())
    }

    /// Runs one trial, and tells of its begin and its intervals. `None` where a signal came before there was anything to
    /// measure.
    ///
    /// # Errors
    /// Where a node fails.
    pub fn run(
        &mut self,
        trial: &Trial,
        sequence: u32,
        place: Place,
        tell: &mut dyn FnMut(Event),
    ) -> Result<Option<Record>, RunError> {
        let path = path_of(self.bench, trial)?;
        if self.in_force.bring(self.bench, &path, &trial.settings, self.settle, self.stop)? {
            self.known = None;
        }
        let mut around = match self.known.take() {
            Some((family, around)) if family == trial.family => around,
            _ => survey(self.bench, &path)?,
        };
        around.synchronize_again(self.bench)?;
        tell(Event::TrialStarted { sequence, trial: trial.clone(), shared_kernel: around.shared_kernel });
        let mut one = OneTrial {
            bench: self.bench,
            path: &path,
            around: &around,
            trial,
            sequence,
            place,
            stop: self.stop,
            tell,
        };
        let record = one.run(self.run)?;
        self.known = Some((trial.family, around));
        let measured = record.dut.reading.window.duration_ns >= SHORTEST_WINDOW_NS;
        Ok(Some(record).filter(|record| record.outcome == Outcome::Complete || measured))
    }
}

/// Draws an id for a run: 32 hex digits.
///
/// # Errors
/// Where the system has no random bytes.
pub fn run_id() -> Result<String, RunError> {
    let nonce = auth::nonce().map_err(|source| RunError::System { operation: "draw a run id", source })?;
    Ok(nonce.chars().take(32).collect())
}

pub(crate) fn path_of(bench: &Bench, trial: &Trial) -> Result<Path, RunError> {
    let found = bench.paths.iter().find(|p| p.family == trial.family);
    found.cloned().ok_or_else(|| RunError::System {
        operation: "find the path of the trial's IP version",
        source: io::ErrorKind::AddrNotAvailable.into(),
    })
}

fn survey(bench: &mut Bench, path: &Path) -> Result<Surroundings, RunError> {
    let link = |side| path.end(side).link.as_ref().map(|l| l.name.as_str());
    let dut = bench.dut.environment(link(Side::Dut))?;
    // A stranger's server tells of the link it was reached at, and takes no wishes.
    let peer_link = if bench.peer.is_traffic_only() { None } else { link(Side::Peer) };
    let mut peer = bench.peer.environment(peer_link)?;
    if peer.link.is_none() {
        peer.link.clone_from(&path.peer.link);
    }
    let shared_kernel = !dut.boot_id.is_empty() && dut.boot_id == peer.boot_id;
    let clock = clock::synchronize(&mut bench.dut, &mut bench.peer, shared_kernel)?;
    Ok(Surroundings { dut, peer, shared_kernel, clock, synchronized: Instant::now() })
}

impl Surroundings {
    /// Compares the clocks anew where that was long ago: quartz drifts by some 50 millionths, 3 ms a minute.
    fn synchronize_again(&mut self, bench: &mut Bench) -> Result<(), RunError> {
        if self.shared_kernel || self.synchronized.elapsed() < CLOCK_LIFE {
            return Ok(());
        }
        self.clock = clock::synchronize(&mut bench.dut, &mut bench.peer, false)?;
        self.synchronized = Instant::now();
        Ok(())
    }
}

struct OneTrial<'a> {
    bench: &'a mut Bench,
    path: &'a Path,
    around: &'a Surroundings,
    trial: &'a Trial,
    sequence: u32,
    place: Place,
    stop: &'a AtomicBool,
    tell: &'a mut dyn FnMut(Event),
}

impl OneTrial<'_> {
    fn run(&mut self, run: &str) -> Result<Record, RunError> {
        let started_at = jiff::Timestamp::now().to_string();
        let mut emulation = emulation::Watch::begin(self.bench);
        self.open()?;
        emulation.opens_at(self.start()?);
        let outcome = self.watch(&mut emulation)?;
        let (dut, peer) = self.finish()?;
        let [dut_guest, peer_guest] = emulation.records();
        let node = |url: &NodeUrl, environment: &Environment, reading, guest| NodeRecord {
            node: url.clone(),
            environment: environment.clone(),
            reading,
            guest,
        };
        Ok(join::record(Joined {
            run: run.to_owned(),
            sequence: self.sequence,
            place: self.place,
            started_at,
            trial: self.trial.clone(),
            outcome,
            dut: node(self.bench.dut.url(), &self.around.dut, dut, dut_guest),
            peer: node(self.bench.peer.url(), &self.around.peer, peer, peer_guest),
            clock: self.around.clock,
            shared_kernel: self.around.shared_kernel,
            stand_in: None,
        }))
    }

    /// The peer listens, then the dut connects.
    fn open(&mut self) -> Result<(), RunError> {
        let nonce = auth::nonce().map_err(|source| RunError::System { operation: "draw a token", source })?;
        let token: String = nonce.chars().take(32).collect();
        let prepare = |side: Side, remote| {
            let end = self.path.end(side);
            Prepare {
                trial: self.trial.clone(),
                side,
                token: token.clone(),
                local: Some(end.address),
                scope_id: end.scope_id,
                remote,
                link: end.link.as_ref().map(|l| l.name.clone()),
            }
        };
        let (ports, _) = self.bench.peer.prepare(prepare(Side::Peer, None))?;
        let remote = Remote { address: self.path.peer.address, ports };
        self.bench.dut.prepare(prepare(Side::Dut, Some(remote)))?;
        self.bench.peer.await_ready()?;
        self.bench.dut.await_ready()?;
        Ok(())
    }

    /// Starts the traffic; gives the instant at which the window opens.
    fn start(&mut self) -> Result<Instant, RunError> {
        let asked = Instant::now();
        let dut_ns = self.bench.dut.clock_ns()?;
        self.bench.peer.clock_ns()?;
        // As long again for each node to hear of it, and as much to spare.
        let round_trips_ns = u64::try_from(asked.elapsed().as_nanos()).unwrap_or(u64::MAX / 8);
        let start_ns = dut_ns + LEAD_NS + 3 * round_trips_ns;
        let window_start_ns = start_ns + self.trial.warmup_ns;
        let window_end_ns = match self.trial.amount {
            Amount::DurationNs(ns) => Some(window_start_ns + ns),
            Amount::Bytes(_) | Amount::Transactions(_) | Amount::Whole => None,
        };
        let schedule = Schedule { traffic_start_ns: start_ns, window_start_ns, window_end_ns };
        // The peer first: a receiver that is late loses nothing but its own start.
        self.bench.peer.run(shifted(schedule, self.around.clock.peer_minus_dut_ns))?;
        self.bench.dut.run(schedule)?;
        // The dut told its clock at most all round trips ago.
        Ok(asked + Duration::from_nanos(window_start_ns.saturating_sub(dut_ns)))
    }

    /// Waits until both windows are closed.
    fn watch(&mut self, emulation: &mut emulation::Watch) -> Result<Outcome, RunError> {
        let mut waiting = Waiting::new(self.trial);
        let mut outcome = Outcome::Complete;
        let mut give_up = match self.trial.amount {
            Amount::DurationNs(ns) => {
                Some(Instant::now() + Duration::from_nanos(ns + self.trial.warmup_ns) + GRACE)
            }
            Amount::Bytes(_) | Amount::Transactions(_) | Amount::Whole => None,
        };
        while !waiting.both_closed() {
            emulation.look();
            for side in [Side::Dut, Side::Peer] {
                let node = self.bench.node(side);
                match node.window_event(TURN)? {
                    WindowEvent::Interval(interval) => {
                        (self.tell)(Event::Interval { sequence: self.sequence, side, interval });
                    }
                    WindowEvent::Done => waiting.done(side),
                    WindowEvent::Closed => waiting.closed(side),
                    WindowEvent::Nothing => {}
                }
            }
            let interrupted = self.stop.load(Ordering::Relaxed) && outcome == Outcome::Complete;
            if interrupted {
                outcome = Outcome::Interrupted;
            }
            if interrupted || waiting.shall_close() {
                self.bench.dut.close_window()?;
                self.bench.peer.close_window()?;
                give_up = Some(Instant::now() + GRACE);
            }
            if give_up.is_some_and(|at| Instant::now() > at) {
                return Err(self.silent(&waiting).into());
            }
        }
        emulation.close();
        Ok(outcome)
    }

    fn silent(&self, waiting: &Waiting) -> NodeError {
        let node = if waiting.dut_closed { &self.bench.peer } else { &self.bench.dut };
        let cause = node.silence(GRACE);
        NodeError { node: node.url().to_string(), operation: "close its window", cause }
    }

    /// Both stop sending before either hangs up on the other; then the sender first: it tells the receiver what to wait for.
    fn finish(&mut self) -> Result<(Reading, Reading), RunError> {
        self.bench.dut.stop_traffic()?;
        self.bench.peer.stop_traffic()?;
        if self.trial.workload.kind() == WorkloadKind::TcpReverse {
            let peer = self.bench.peer.finish(Vec::new())?;
            let dut = self.bench.dut.finish(Vec::new())?;
            return Ok((dut, peer));
        }
        let dut = self.bench.dut.finish(Vec::new())?;
        let sent = dut.streams.iter().map(|s| s.udp.map_or(0, |u| u.sent)).collect();
        let is_udp = self.trial.workload.kind().is_udp();
        let peer = self.bench.peer.finish(if is_udp { sent } else { Vec::new() })?;
        Ok((dut, peer))
    }
}

impl Bench {
    /// Whether both nodes run on one kernel, so that their CPU is the same.
    ///
    /// # Errors
    /// Where a node fails.
    pub fn shares_a_kernel(&mut self) -> Result<bool, RunError> {
        let dut = self.dut.environment(None)?.boot_id;
        let peer = self.peer.environment(None)?.boot_id;
        Ok(!dut.is_empty() && dut == peer)
    }

    pub(crate) fn node(&mut self, side: Side) -> &mut Node {
        match side {
            Side::Dut => &mut self.dut,
            Side::Peer => &mut self.peer,
        }
    }
}

fn shifted(schedule: Schedule, by_ns: i64) -> Schedule {
    let shift = |ns: u64| ns.saturating_add_signed(by_ns);
    Schedule {
        traffic_start_ns: shift(schedule.traffic_start_ns),
        window_start_ns: shift(schedule.window_start_ns),
        window_end_ns: schedule.window_end_ns.map(shift),
    }
}

/// Who still has to say what before the trial is over.
struct Waiting {
    dut_done: bool,
    peer_done: bool,
    dut_closed: bool,
    peer_closed: bool,
    /// The window must be closed by us, once the count is reached.
    close_when_done: bool,
}

impl Waiting {
    fn new(trial: &Trial) -> Self {
        let counted = !matches!(trial.amount, Amount::DurationNs(_));
        let (dut_counts, peer_counts) = match trial.workload.kind() {
            WorkloadKind::TcpStream => (false, true),
            WorkloadKind::TcpBidir => (true, true),
            WorkloadKind::TcpReverse
            | WorkloadKind::TcpRr
            | WorkloadKind::TcpCrr
            | WorkloadKind::UdpStream
            | WorkloadKind::UdpRr
            | WorkloadKind::Profile => (true, false),
        };
        Self {
            dut_done: !dut_counts,
            peer_done: !peer_counts,
            dut_closed: false,
            peer_closed: false,
            close_when_done: counted,
        }
    }

    fn done(&mut self, side: Side) {
        match side {
            Side::Dut => self.dut_done = true,
            Side::Peer => self.peer_done = true,
        }
    }

    fn closed(&mut self, side: Side) {
        match side {
            Side::Dut => self.dut_closed = true,
            Side::Peer => self.peer_closed = true,
        }
    }

    fn both_closed(&self) -> bool {
        self.dut_closed && self.peer_closed
    }

    /// Whether both windows must be closed now; true once.
    fn shall_close(&mut self) -> bool {
        let now = self.close_when_done && self.dut_done && self.peer_done;
        self.close_when_done &= !now;
        now
    }
}
