//! One trial: every pair opens its ends, all run within one window, and the readings become a record.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use linerate_agent::auth;
use linerate_agent::node::{NodeError, WindowEvent};
use linerate_agent::protocol::{Prepare, Remote, Schedule};
use linerate_model::event::Event;
use linerate_model::reading::{IntervalReading, Reading};
use linerate_model::record::{NodeRecord, Outcome, Record};
use linerate_model::trial::{Amount, Side, Trial};
use linerate_model::workload::WorkloadKind;

use crate::bench::Pair;
use crate::emulation;
use crate::join::{self, Joined, Place};
use crate::runner::{RunError, Surroundings};
use crate::together;

/// Time between the last preparation and the start of traffic: all nodes must have heard by then.
const LEAD_NS: u64 = 20_000_000;
/// The same for a profile.
const PROFILE_LEAD_NS: u64 = 100_000_000;
/// How much longer than planned a node may take to close its window.
const GRACE: Duration = Duration::from_secs(15);
/// How long one round over the nodes takes while they have nothing to say. A signal may wait so long; shorter rounds would
/// take CPU from the traffic.
const ROUND: Duration = Duration::from_millis(100);
const SIDES: [Side; 2] = [Side::Dut, Side::Peer];

pub(crate) struct OneTrial<'a> {
    /// As many as the trial has peers, in their order.
    pub(crate) pairs: Vec<&'a mut Pair>,
    pub(crate) around: &'a Surroundings,
    pub(crate) trial: &'a Trial,
    pub(crate) sequence: u32,
    pub(crate) place: Place,
    pub(crate) stop: &'a AtomicBool,
    pub(crate) tell: &'a mut dyn FnMut(Event),
}

impl OneTrial<'_> {
    pub(crate) fn run(&mut self, run: &str) -> Result<Record, RunError> {
        let started_at = jiff::Timestamp::now().to_string();
        for at in 0..self.pairs.len() {
            self.open(at)?;
        }
        for pair in &mut self.pairs {
            pair.peer.await_ready()?;
            pair.dut.await_ready()?;
        }
        // Guests come in pairs: they are the first pair or none.
        let mut emulation = emulation::Watch::begin(self.pairs[0]);
        emulation.opens_at(self.start()?);
        let outcome = self.watch(&mut emulation)?;
        let [dut_guest, mut peer_guest] = emulation.records();
        let readings = self.finish()?;
        let mut of_dut = Vec::new();
        let mut peers = Vec::new();
        for (at, (dut, peer)) in readings.into_iter().enumerate() {
            let (environment, clock) = &self.around.peers[at];
            let node = self.pairs[at].peer.url().clone();
            let guest = peer_guest.take();
            peers.push((NodeRecord { node, environment: environment.clone(), reading: peer, guest }, *clock));
            of_dut.push(dut);
        }
        let dut_further = of_dut.split_off(1);
        Ok(join::record(Joined {
            run: run.to_owned(),
            sequence: self.sequence,
            place: self.place,
            started_at,
            trial: self.trial.clone(),
            outcome,
            dut: NodeRecord {
                node: self.pairs[0].dut.url().clone(),
                environment: self.around.dut.clone(),
                reading: of_dut.swap_remove(0),
                guest: dut_guest,
            },
            dut_further,
            peers,
            shared_kernel: self.around.shared_kernel,
            stand_in: None,
        }))
    }

    /// The peer listens, then the dut connects.
    fn open(&mut self, at: usize) -> Result<(), RunError> {
        let nonce = auth::nonce().map_err(|source| RunError::System { operation: "draw a token", source })?;
        let token: String = nonce.chars().take(32).collect();
        let trial = of_pair(self.trial, at);
        let pair = &mut *self.pairs[at];
        let path = pair.path(trial.family)?.clone();
        let prepare = |side: Side, remote| {
            let end = path.end(side);
            Prepare {
                trial: trial.clone(),
                side,
                token: token.clone(),
                local: Some(end.address),
                scope_id: end.scope_id,
                remote,
                link: end.link.as_ref().map(|l| l.name.clone()),
            }
        };
        let (ports, _) = pair.peer.prepare(prepare(Side::Peer, None))?;
        let remote = Remote { address: path.peer.address, ports };
        pair.dut.prepare(prepare(Side::Dut, Some(remote)))?;
        Ok(())
    }

    /// Starts the traffic; gives the instant at which the window opens.
    fn start(&mut self) -> Result<Instant, RunError> {
        let asked = Instant::now();
        let dut_ns = self.pairs[0].dut.clock_ns()?;
        for (at, pair) in self.pairs.iter_mut().enumerate() {
            if at > 0 {
                pair.dut.clock_ns()?;
            }
            pair.peer.clock_ns()?;
        }
        // As long again for each node to hear of it, and as much to spare.
        let round_trips_ns = u64::try_from(asked.elapsed().as_nanos()).unwrap_or(u64::MAX / 8);
        // A profile's peer hears of the start over a connection of its own.
        let lead_ns = if self.trial.amount == Amount::Whole { PROFILE_LEAD_NS } else { LEAD_NS };
        let start_ns = dut_ns + lead_ns + 3 * round_trips_ns;
        let window_start_ns = start_ns + self.trial.warmup_ns;
        let window_end_ns = match self.trial.amount {
            Amount::DurationNs(ns) => Some(window_start_ns + ns),
            Amount::Bytes(_) | Amount::Transactions(_) | Amount::Whole => None,
        };
        let schedule = Schedule { traffic_start_ns: start_ns, window_start_ns, window_end_ns };
        // The peers first: a receiver that is late loses nothing but its own start.
        for (pair, (_, clock)) in self.pairs.iter_mut().zip(&self.around.peers) {
            pair.peer.run(shifted(schedule, clock.peer_minus_dut_ns))?;
        }
        for pair in &mut self.pairs {
            pair.dut.run(schedule)?;
        }
        // The dut told its clock at most all round trips ago.
        Ok(asked + Duration::from_nanos(window_start_ns.saturating_sub(dut_ns)))
    }

    /// Waits until all windows are closed.
    fn watch(&mut self, emulation: &mut emulation::Watch) -> Result<Outcome, RunError> {
        let mut waiting: Vec<Waiting> = self.pairs.iter().map(|_| Waiting::new(self.trial)).collect();
        let mut gather = SIDES.map(|_| vec![VecDeque::new(); self.pairs.len()]);
        let mut close_when_done = !matches!(self.trial.amount, Amount::DurationNs(_));
        let mut outcome = Outcome::Complete;
        let mut give_up = match self.trial.amount {
            Amount::DurationNs(ns) => {
                Some(Instant::now() + Duration::from_nanos(ns + self.trial.warmup_ns) + GRACE)
            }
            Amount::Bytes(_) | Amount::Transactions(_) | Amount::Whole => None,
        };
        while let Some(open) = waiting.iter().map(Waiting::open).reduce(|a, b| a + b).filter(|n| *n > 0) {
            let turn = emulation.opens_in().map_or(ROUND, |wait| wait.min(ROUND)) / open;
            for at in 0..self.pairs.len() {
                for (side, gather) in SIDES.into_iter().zip(&mut gather) {
                    if waiting[at].is_closed(side) {
                        continue;
                    }
                    match self.pairs[at].node(side).window_event(turn)? {
                        WindowEvent::Interval(interval) => {
                            gather[at].push_back(self.renumbered(interval, at));
                            self.tell_intervals(side, gather);
                        }
                        WindowEvent::Done => waiting[at].done(side),
                        WindowEvent::Closed => waiting[at].closed(side),
                        WindowEvent::Nothing => {}
                    }
                }
            }
            emulation.look();
            let interrupted = self.stop.load(Ordering::Relaxed) && outcome == Outcome::Complete;
            if interrupted {
                outcome = Outcome::Interrupted;
            }
            let all_done = close_when_done && waiting.iter().all(Waiting::all_done);
            if interrupted || all_done {
                close_when_done = false;
                for pair in &mut self.pairs {
                    pair.dut.close_window()?;
                    pair.peer.close_window()?;
                }
                give_up = Some(Instant::now() + GRACE);
            }
            if give_up.is_some_and(|at| Instant::now() > at) {
                return Err(self.silent(&waiting).into());
            }
        }
        emulation.close();
        Ok(outcome)
    }

    /// An interval of a pair, its streams numbered on from those of the pairs before.
    fn renumbered(&self, mut interval: IntervalReading, at: usize) -> IntervalReading {
        let by = u32::try_from(at).unwrap_or(u32::MAX).saturating_mul(self.trial.streams);
        interval.streams.iter_mut().for_each(|s| s.index += by);
        interval
    }

    /// Tells of an interval once all nodes of a side have closed it.
    fn tell_intervals(&mut self, side: Side, gather: &mut [VecDeque<IntervalReading>]) {
        if gather.iter().any(VecDeque::is_empty) {
            return;
        }
        let parts: Vec<IntervalReading> = gather.iter_mut().filter_map(VecDeque::pop_front).collect();
        let places = self.places(side);
        let interval =
            together::interval(&places.iter().collect::<Vec<_>>(), &parts.iter().collect::<Vec<_>>());
        (self.tell)(Event::Interval { sequence: self.sequence, side, interval });
    }

    fn places(&self, side: Side) -> Vec<together::Place> {
        let environment = |at: usize| match side {
            Side::Dut => &self.around.dut,
            Side::Peer => &self.around.peers[at].0,
        };
        let place = |(at, pair): (usize, &&mut Pair)| {
            let node = if side == Side::Dut { &pair.dut } else { &pair.peer };
            together::Place::of(node.url(), environment(at))
        };
        self.pairs.iter().enumerate().map(place).collect()
    }

    fn silent(&self, waiting: &[Waiting]) -> NodeError {
        let mut open = self.pairs.iter().zip(waiting).filter(|(_, w)| w.open() > 0);
        let node = match open.next() {
            Some((pair, waiting)) if waiting.dut_closed => &pair.peer,
            Some((pair, _)) => &pair.dut,
            None => &self.pairs[0].dut,
        };
        let cause = node.silence(GRACE);
        NodeError { node: node.url().to_string(), operation: "close its window", cause }
    }

    /// All stop sending before any hangs up on another; then of each pair the sender first: it tells the receiver what to
    /// wait for.
    fn finish(&mut self) -> Result<Vec<(Reading, Reading)>, RunError> {
        for pair in &mut self.pairs {
            pair.dut.stop_traffic()?;
        }
        for pair in &mut self.pairs {
            pair.peer.stop_traffic()?;
        }
        let trial = self.trial;
        self.pairs.iter_mut().map(|pair| finish(pair, trial)).collect()
    }
}

fn finish(pair: &mut Pair, trial: &Trial) -> Result<(Reading, Reading), RunError> {
    if trial.workload.kind() == WorkloadKind::TcpReverse {
        let peer = pair.peer.finish(Vec::new())?;
        let dut = pair.dut.finish(Vec::new())?;
        return Ok((dut, peer));
    }
    let dut = pair.dut.finish(Vec::new())?;
    let sent = dut.streams.iter().map(|s| s.udp.map_or(0, |u| u.sent)).collect();
    let is_udp = trial.workload.kind().is_udp();
    let peer = pair.peer.finish(if is_udp { sent } else { Vec::new() })?;
    Ok((dut, peer))
}

/// What a pair is asked for: its threads on the dut go on in the list of CPUs where those of the pairs before ended.
fn of_pair(trial: &Trial, at: usize) -> Trial {
    let mut trial = trial.clone();
    let cpus = &mut trial.pin.dut;
    if !cpus.is_empty() {
        let by = at * trial.streams as usize % cpus.len();
        cpus.rotate_left(by);
    }
    trial
}

fn shifted(schedule: Schedule, by_ns: i64) -> Schedule {
    let shift = |ns: u64| ns.saturating_add_signed(by_ns);
    Schedule {
        traffic_start_ns: shift(schedule.traffic_start_ns),
        window_start_ns: shift(schedule.window_start_ns),
        window_end_ns: schedule.window_end_ns.map(shift),
    }
}

/// Who of a pair still has to say what before the trial is over.
struct Waiting {
    dut_done: bool,
    peer_done: bool,
    dut_closed: bool,
    peer_closed: bool,
}

impl Waiting {
    fn new(trial: &Trial) -> Self {
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
        Self { dut_done: !dut_counts, peer_done: !peer_counts, dut_closed: false, peer_closed: false }
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

    fn is_closed(&self, side: Side) -> bool {
        match side {
            Side::Dut => self.dut_closed,
            Side::Peer => self.peer_closed,
        }
    }

    /// How many windows are still open.
    fn open(&self) -> u32 {
        u32::from(!self.dut_closed) + u32::from(!self.peer_closed)
    }

    fn all_done(&self) -> bool {
        self.dut_done && self.peer_done
    }
}
