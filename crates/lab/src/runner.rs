//! Runs the trials of a run one after the other, and tells what happens as events.

use std::io;
use std::sync::atomic::AtomicBool;
use std::time::{Duration, Instant};

use linerate_agent::auth;
use linerate_agent::node::NodeError;
use linerate_model::environment::Environment;
use linerate_model::event::Event;
use linerate_model::record::{ClockSync, Outcome, Record};
use linerate_model::trial::{Family, Side, Trial};

use crate::bench::{Bench, Pair, node_of};
use crate::clock;
use crate::join::Place;
use crate::one_trial::OneTrial;
use crate::settings::{InForce, SettingError};

/// A trial that was stopped sooner measured nothing.
const SHORTEST_WINDOW_NS: u64 = 10_000_000;
/// How long a comparison of the nodes' clocks holds.
const CLOCK_LIFE: Duration = Duration::from_secs(20);

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
    /// A trial wants more peers than there are.
    #[error("--peers {wanted}: only {there} are named")]
    TooFewPeers {
        /// How many it wants.
        wanted: u32,
        /// How many there are.
        there: usize,
    },
    /// Some peers run on the dut's kernel, and some do not: nobody could tell whose CPU time was whose.
    #[error("{here} runs on the dut's machine and {elsewhere} does not: name peers of one kind")]
    MixedMachines {
        /// A peer on the dut's machine.
        here: String,
        /// A peer elsewhere.
        elsewhere: String,
    },
    /// A trial names a node under test that does not take part.
    #[error("node {0} is not among those of this run")]
    NoSuchNode(String),
    /// The system refused what the runner itself needs.
    #[error("{operation}: {source}")]
    System {
        /// What was tried.
        operation: &'static str,
        /// The kernel's reason.
        source: io::Error,
    },
}

/// What is known of the nodes along the paths of one IP version.
pub(crate) struct Surroundings {
    pub(crate) dut: Environment,
    /// Of each peer, with how its clock relates to the dut's.
    pub(crate) peers: Vec<(Environment, ClockSync)>,
    pub(crate) shared_kernel: bool,
    synchronized: Instant,
}

/// Trials one after the other between two nodes, all of one run.
pub struct Session<'a> {
    bench: &'a mut Bench,
    run: &'a str,
    stop: &'a AtomicBool,
    /// What is known of the nodes, as long as neither path nor settings change.
    known: Option<(Family, Surroundings)>,
    in_force: InForce,
    /// Pause after a setting changed.
    settle: Duration,
}

impl<'a> Session<'a> {
    /// `run` is the run's id; `settle` the pause after a setting changed; `stop` ends the trial that is under way.
    pub fn new(bench: &'a mut Bench, run: &'a str, settle: Duration, stop: &'a AtomicBool) -> Self {
        let in_force = InForce::of(bench);
        Self { bench, run, stop, known: None, in_force, settle }
    }

    /// Finds out before any traffic whether the nodes take all settings of these trials.
    ///
    /// # Errors
    /// The first refusal.
    pub fn rehearse(&mut self, trials: &[Trial]) -> Result<(), RunError> {
        self.check(trials)?;
        let mut nodes: Vec<Option<&str>> = trials.iter().map(node_of).collect();
        nodes.sort();
        nodes.dedup();
        for node in nodes {
            let its: Vec<Trial> = trials.iter().filter(|trial| node_of(trial) == node).cloned().collect();
            its.first().map_or(Ok(()), |trial| self.switch_for(trial))?;
            self.in_force.rehearse(self.bench, &its, self.stop)?;
        }
        Ok(())
    }

    /// Makes the node that a trial names the one under test.
    fn switch_for(&mut self, trial: &Trial) -> Result<(), RunError> {
        let Some(node) = node_of(trial) else { return Ok(()) };
        if self.bench.first.dut.url().to_string() == node {
            return Ok(());
        }
        self.in_force.put_back(self.bench)?;
        self.bench.switch_to(node)?;
        self.in_force = InForce::of(self.bench);
        self.known = None;
        Ok(())
    }

    /// Puts back what the trials changed.
    ///
    /// # Errors
    /// Where a node fails, or a setting does not go back.
    pub fn put_back(&mut self) -> Result<(), RunError> {
        self.in_force.put_back(self.bench)
    }

    /// Asks all nodes whether every trial makes sense there: a mistake in the last is told before the first.
    fn check(&mut self, trials: &[Trial]) -> Result<(), RunError> {
        let what_matters =
            |t: &Trial| (t.pin.clone(), t.workload.tcp_options().and_then(|o| o.congestion.clone()));
        let mut checked = Vec::new();
        for trial in trials {
            let matters = what_matters(trial);
            if checked.contains(&matters) {
                continue;
            }
            for pair in self.bench.pairs() {
                pair.dut.check(trial, Side::Dut)?;
                pair.peer.check(trial, Side::Peer)?;
            }
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
        self.switch_for(trial)?;
        if self.in_force.bring(self.bench, trial, self.settle, self.stop)? {
            self.known = None;
        }
        let mut around = match self.known.take() {
            Some((family, around)) if family == trial.family => around,
            _ => survey(self.bench, trial.family)?,
        };
        around.synchronize_again(self.bench)?;
        tell(Event::TrialStarted { sequence, trial: trial.clone(), shared_kernel: around.shared_kernel });
        let there = 1 + self.bench.further.len();
        let pairs: Vec<&mut Pair> = self.bench.pairs().take(trial.peers as usize).collect();
        if pairs.len() < trial.peers as usize {
            return Err(RunError::TooFewPeers { wanted: trial.peers, there });
        }
        let mut one = OneTrial { pairs, around: &around, trial, sequence, place, stop: self.stop, tell };
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

fn survey(bench: &mut Bench, family: Family) -> Result<Surroundings, RunError> {
    let path = bench.first.path(family)?;
    let link = path.dut.link.as_ref().map(|l| l.name.clone());
    let dut = bench.first.dut.environment(link.as_deref())?;
    let mut peers = Vec::new();
    for pair in bench.pairs() {
        let end = pair.path(family)?.peer.clone();
        // A stranger's server tells of the link it was reached at, and takes no wishes.
        let link = end.link.as_ref().filter(|_| !pair.peer.is_traffic_only()).map(|l| l.name.as_str());
        let mut peer = pair.peer.environment(link)?;
        if peer.link.is_none() {
            peer.link = end.link;
        }
        let shared_kernel = !dut.boot_id.is_empty() && dut.boot_id == peer.boot_id;
        let clock = clock::synchronize(&mut pair.dut, &mut pair.peer, shared_kernel)?;
        peers.push((peer, clock, shared_kernel, pair.peer.url().to_string()));
    }
    let here = peers.iter().find(|p| p.2);
    if let (Some(here), Some(elsewhere)) = (here, peers.iter().find(|p| !p.2)) {
        return Err(RunError::MixedMachines { here: here.3.clone(), elsewhere: elsewhere.3.clone() });
    }
    Ok(Surroundings {
        dut,
        shared_kernel: here.is_some(),
        peers: peers.into_iter().map(|(environment, clock, ..)| (environment, clock)).collect(),
        synchronized: Instant::now(),
    })
}

impl Surroundings {
    /// Compares the clocks anew where that was long ago: quartz drifts by some 50 millionths, 3 ms a minute.
    fn synchronize_again(&mut self, bench: &mut Bench) -> Result<(), RunError> {
        if self.shared_kernel || self.synchronized.elapsed() < CLOCK_LIFE {
            return Ok(());
        }
        for (pair, (_, known)) in bench.pairs().zip(&mut self.peers) {
            *known = clock::synchronize(&mut pair.dut, &mut pair.peer, false)?;
        }
        self.synchronized = Instant::now();
        Ok(())
    }
}
