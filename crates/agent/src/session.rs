//! The agent's end of one conversation: takes requests in turn until the stream ends.

use std::io::{Read, Write};
use std::net::IpAddr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use linerate_link::{inventory, links, route, settings};
use linerate_model::environment::LinkInfo;
use linerate_model::trial::{Amount, Side};
use linerate_sys::{clock, ethtool_memory};
use linerate_traffic::OpenProfile;

use crate::auth::{self, Prover, Secret};
use crate::bench::Bench;
use crate::changes::{self, NodeChanges};
use crate::frame::{
    FrameError, MAX_GREETING_BYTES, MAX_MESSAGE_BYTES, MAX_REQUEST_BYTES, read_message, write_message,
};
use crate::protocol::{Dump, Memory, PROTOCOL, Prepare, Refusal, Reply, Request, RouteReply, Schedule};
use crate::stranger;
use crate::trial::{self, OpenTrial, TrialFailure, link_of};

/// How long a stranger may say nothing while no trial runs.
const IDLE_LIMIT: Duration = Duration::from_secs(60);
/// How much longer than its window a trial may take before it is given up.
const GRACE: Duration = Duration::from_secs(30);
/// How far in the future a trial may begin.
const MAX_LEAD: Duration = Duration::from_secs(60);
/// What opening, starting and finishing a stranger's trial may take beyond its own length.
const TRIAL_OVERHEAD: Duration = Duration::from_secs(120);
/// How much longer than `--max-duration` the traffic of a trial may run that its schedule does not end.
const OVERTIME: Duration = Duration::from_secs(2);
/// Longest that a session of an agent of our own may be idle: as long as its controller lives.
const FOREVER: Duration = Duration::from_secs(365 * 86_400);

/// What a session may do.
#[derive(Debug, Clone, Default)]
pub struct SessionOptions {
    /// Traffic only, for strangers.
    pub traffic_only: bool,
    /// Secret that the controller must know.
    pub secret: Option<Secret>,
    /// Longest trial; `None` is no limit.
    pub max_duration: Option<Duration>,
    /// Most bits a second that a stranger may have sent to it; `None` is no limit.
    pub max_rate: Option<u64>,
    /// The address at which the controller reached us.
    pub reached_at: Option<IpAddr>,
    /// What the session changes on its node; put back at its end.
    pub changes: NodeChanges,
    /// What runs profiles here; `None` is nothing.
    pub profiles: Option<OpenProfile>,
}

/// Why a session ended badly.
#[derive(Debug, thiserror::Error)]
pub enum SessionError {
    /// The stream failed, or what came was no message.
    #[error(transparent)]
    Frame(#[from] FrameError),
    /// The other end did not greet as the protocol wants.
    #[error("{0}")]
    Greeting(&'static str),
    /// The other end said nothing for too long.
    #[error("said nothing for {0:?}")]
    Idle(Duration),
    /// The system refused what a session needs.
    #[error("{operation}: {source}")]
    System {
        /// What was tried.
        operation: &'static str,
        /// The kernel's reason.
        source: std::io::Error,
    },
}

/// Serves one controller until it hangs up. All traffic ends with the session, however it ends.
///
/// # Errors
/// Where the conversation broke; a controller that hangs up between two requests is no error.
pub fn serve(
    reader: impl Read + Send + 'static,
    writer: impl Write + Send,
    options: &SessionOptions,
) -> Result<(), SessionError> {
    let writer = Mutex::new(writer);
    let lost = Arc::new(AtomicBool::new(false));
    let requests = read_requests(reader, options, Arc::clone(&lost))?;
    let bench = Bench::new(options.changes.clone(), lost);
    let mut session =
        Session { options, writer: &writer, requests, bench, trial: None, trial_deadline: None };
    let served = session.greet().and_then(|()| session.serve());
    // What does not go back stays in the journal, and the next linerate here tells of it.
    let _ = options.changes.close();
    served
}

fn read_requests(
    mut reader: impl Read + Send + 'static,
    options: &SessionOptions,
    lost: Arc<AtomicBool>,
) -> Result<Receiver<Result<Request, FrameError>>, SessionError> {
    // Room for few: a controller never has more than two requests under way.
    let (sender, requests) = mpsc::sync_channel(4);
    let changes = options.changes.clone();
    let longest = if options.traffic_only { MAX_REQUEST_BYTES } else { MAX_MESSAGE_BYTES };
    let read_all = move || {
        let mut limit = MAX_GREETING_BYTES;
        loop {
            let message = read_message::<Request>(&mut reader, limit);
            let ended = message.is_err();
            if matches!(message, Ok(ref request) if !request.is_greeting()) {
                limit = longest;
            }
            if ended {
                // At once, whatever the session is waiting for.
                lost.store(true, Ordering::Relaxed);
                let _ = changes.close();
            }
            if sender.send(message).is_err() || ended {
                return;
            }
        }
    };
    std::thread::Builder::new()
        .name("session-reader".to_owned())
        .spawn(read_all)
        .map_err(|source| SessionError::System { operation: "start a thread", source })?;
    Ok(requests)
}

struct Session<'a, W> {
    options: &'a SessionOptions,
    writer: &'a Mutex<W>,
    requests: Receiver<Result<Request, FrameError>>,
    bench: Bench,
    trial: Option<OpenTrial>,
    /// When a stranger's open trial must be over.
    trial_deadline: Option<Instant>,
}

impl<W: Write + Send> Session<'_, W> {
    fn serve(&mut self) -> Result<(), SessionError> {
        let mut next = None;
        loop {
            let request = match next.take() {
                Some(request) => request,
                None => match self.next_request(self.patience())? {
                    Some(request) => request,
                    None => return Ok(()),
                },
            };
            next = self.answer(request)?;
        }
    }

    fn greet(&mut self) -> Result<(), SessionError> {
        const LIMIT: Duration = Duration::from_secs(10);
        let Some(Request::Hello { protocol, nonce: theirs, .. }) = self.next_request(LIMIT)? else {
            return Err(SessionError::Greeting("no greeting"));
        };
        let ours =
            auth::nonce().map_err(|source| SessionError::System { operation: "draw a nonce", source })?;
        let secret = self.options.secret.as_ref();
        self.say(&Reply::Hello {
            protocol: PROTOCOL,
            version: env!("CARGO_PKG_VERSION").to_owned(),
            nonce: ours.clone(),
            secret_needed: secret.is_some(),
        })?;
        if protocol != PROTOCOL {
            return Err(SessionError::Greeting("another version of the protocol"));
        }
        let mut proof = None;
        if let Some(secret) = secret {
            let Some(Request::Prove { proof: given }) = self.next_request(LIMIT)? else {
                return Err(SessionError::Greeting("no proof of the secret"));
            };
            if !secret.accepts(&given, Prover::Client, &theirs, &ours) {
                self.refuse(Refusal::Permission, "the secret is not the one this server has".to_owned())?;
                return Err(SessionError::Greeting("wrong secret"));
            }
            proof = Some(secret.proof(Prover::Server, &theirs, &ours));
        }
        let (traffic_only, reached_at) = (self.options.traffic_only, self.options.reached_at);
        self.say(&Reply::Welcome { proof, traffic_only, reached_at })
    }

    /// The next request; `None` when the controller hung up.
    fn next_request(&self, limit: Duration) -> Result<Option<Request>, SessionError> {
        match self.requests.recv_timeout(limit) {
            Ok(Ok(request)) => Ok(Some(request)),
            Ok(Err(FrameError::Closed)) | Err(RecvTimeoutError::Disconnected) => Ok(None),
            Ok(Err(error)) => Err(error.into()),
            Err(RecvTimeoutError::Timeout) => Err(SessionError::Idle(limit)),
        }
    }

    /// How long the next request may take: a stranger may not hold a trial open without end.
    fn patience(&self) -> Duration {
        if !self.options.traffic_only {
            return FOREVER;
        }
        let left = self.trial_deadline.map(|at| at.saturating_duration_since(Instant::now()));
        left.map_or(IDLE_LIMIT, |left| left.min(IDLE_LIMIT))
    }

    /// Answers a request; gives the one that was heard behind it, if there was one.
    fn answer(&mut self, request: Request) -> Result<Option<Request>, SessionError> {
        let refused =
            |e: &dyn std::fmt::Display| Reply::Refused { reason: e.to_string(), kind: Refusal::Network };
        let reply = match request {
            Request::Links => self.links().map_or_else(|e| refused(&e), Reply::Links),
            Request::Route { .. } if self.options.traffic_only => Reply::Refused {
                reason: "a tcp: node tells nobody its routes".to_owned(),
                kind: Refusal::Permission,
            },
            Request::Route { to } => route_reply(to).map_or_else(|e| refused(&e), Reply::Route),
            Request::Clock => Reply::Clock { monotonic_ns: clock::monotonic_ns() },
            Request::Describe { link } => describe(self.told_link(link).as_deref()),
            Request::Check { trial, side } => match trial::check(&trial, side) {
                Ok(()) => Reply::Checked,
                Err(failure) => failure.into_reply(),
            },
            Request::Prepare(prepare) => self.prepare(*prepare),
            Request::AwaitReady => self.with_trial(|trial| trial.await_ready().map(|()| Reply::Ready)),
            Request::Run(schedule) => return self.run(schedule),
            Request::Stop => self.with_trial(|trial| trial.stop().map(|()| Reply::Stopped)),
            Request::Finish { sent_in_window } => {
                let reply = self
                    .with_trial(|trial| trial.finish(&sent_in_window).map(|r| Reply::Reading(Box::new(r))));
                (self.trial, self.trial_deadline) = (None, None);
                reply
            }
            Request::Settings { .. }
            | Request::Inventory { .. }
            | Request::Dump { .. }
            | Request::Apply { .. }
            | Request::Restore
            | Request::Stale(_)
            | Request::Bench(_)
                if self.options.traffic_only =>
            {
                let reason = "a tcp: node does traffic only: it shows and changes no setting".to_owned();
                Reply::Refused { reason, kind: Refusal::Permission }
            }
            Request::Settings { link } => reply(settings::list(&link), Reply::Settings),
            Request::Inventory { link: Some(link) } => {
                reply(inventory::in_full(&link), |one| Reply::Inventory(vec![one]))
            }
            Request::Inventory { link: None } => reply(inventory::all(), Reply::Inventory),
            Request::Dump { link, memory } => reply(dump(&link, memory), Reply::Dump),
            Request::Apply { link, settings } => {
                reply(self.options.changes.apply(&link, &settings), Reply::Applied)
            }
            Request::Restore => reply(self.options.changes.restore(), Reply::Restored),
            Request::Stale(options) => reply(changes::stale(options), Reply::Stale),
            Request::Bench(request) => self.bench.answer(*request),
            // The window closed by itself while the request was on its way.
            Request::Close => return Ok(None),
            Request::Hello { .. } | Request::Prove { .. } => {
                Reply::Refused { reason: "the greeting is over".to_owned(), kind: Refusal::Usage }
            }
        };
        self.say(&reply).map(|()| None)
    }

    /// All links; a stranger is told only of the one that it came by.
    fn links(&self) -> linerate_link::Result<Vec<LinkInfo>> {
        let mut all = links::all()?;
        if self.options.traffic_only {
            all.retain(|link| link.addresses.iter().any(|a| Some(a.address) == self.options.reached_at));
        }
        Ok(all)
    }

    /// The link to describe: the one that was asked for; for a stranger the one that it came by.
    fn told_link(&self, asked: Option<String>) -> Option<String> {
        if !self.options.traffic_only {
            return asked;
        }
        self.options.reached_at.and_then(link_of)
    }

    fn prepare(&mut self, mut prepare: Prepare) -> Reply {
        (self.trial, self.trial_deadline) = (None, None); // whatever was left open ends first
        let usage = |reason: String| Reply::Refused { reason, kind: Refusal::Usage };
        if let Err(error) = prepare.trial.check() {
            return usage(error.to_string());
        }
        if self.options.traffic_only {
            if prepare.side == Side::Dut {
                return usage("a tcp: node only listens: it can be the peer, not the dut".to_owned());
            }
            let allowed = stranger::check_size(&prepare.trial)
                .and_then(|()| stranger::check_rate(&prepare.trial, self.options.max_rate));
            if let Err(reason) = allowed {
                return usage(reason);
            }
            // A stranger's wish for an address of another link is not heard.
            prepare.local = prepare.local.filter(|wish| self.may_use(*wish)).or(self.options.reached_at);
            prepare.link = None;
            let most = self.options.max_duration.unwrap_or(stranger::LONGEST_TRIAL);
            if let Amount::DurationNs(ns) = prepare.trial.amount {
                let asked = Duration::from_nanos(ns.saturating_add(prepare.trial.warmup_ns));
                if asked > most {
                    return usage(format!(
                        "{asked:?} is longer than the {most:?} that this server allows (--max-duration)"
                    ));
                }
            }
            self.trial_deadline = Some(Instant::now() + most + TRIAL_OVERHEAD);
        }
        match OpenTrial::open(prepare, self.options.profiles) {
            Ok(trial) => {
                let reply = Reply::Prepared { ports: trial.ports(), link: trial.link().map(str::to_owned) };
                self.trial = Some(trial);
                reply
            }
            Err(failure) => failure.into_reply(),
        }
    }

    /// Whether a stranger may have a trial on this address: one of the link that it came by.
    fn may_use(&self, address: IpAddr) -> bool {
        self.links().is_ok_and(|links| links.iter().any(|l| l.addresses.iter().any(|a| a.address == address)))
    }

    fn with_trial(&mut self, act: impl FnOnce(&mut OpenTrial) -> Result<Reply, TrialFailure>) -> Reply {
        match &mut self.trial {
            Some(trial) => act(trial).unwrap_or_else(TrialFailure::into_reply),
            None => Reply::Refused { reason: "no trial is open".to_owned(), kind: Refusal::Usage },
        }
    }

    /// Runs the window on a thread of its own, and hears `Close` and the end of the stream meanwhile.
    fn run(&mut self, schedule: Schedule) -> Result<Option<Request>, SessionError> {
        let trial_left = self.trial_deadline.map(|at| at.saturating_duration_since(Instant::now()));
        let Some(trial) = self.trial.as_mut().filter(|trial| !trial.has_run()) else {
            return self.refuse(Refusal::Usage, "no trial is ready to run".to_owned());
        };
        let until = |ns: u64| Duration::from_nanos(ns.saturating_sub(clock::monotonic_ns()));
        if until(schedule.window_start_ns) > MAX_LEAD + Duration::from_nanos(trial.warmup_ns()) {
            return self.refuse(Refusal::Usage, "the trial is to start too far in the future".to_owned());
        }
        let window = schedule.window_end_ns.map_or(FOREVER, |end| until(end).saturating_add(GRACE));
        let most = self.options.max_duration.map_or(FOREVER, |most| most.saturating_add(OVERTIME));
        let give_up_after = window.min(trial_left.unwrap_or(FOREVER)).min(most);
        let control = Arc::new(crate::window::WindowControl::default());
        let (writer, requests) = (self.writer, &self.requests);
        let say = |reply: &Reply| {
            // A lost controller is noticed by the reader; the window then ends.
            let _ = write_message(&mut *writer.lock().unwrap_or_else(PoisonError::into_inner), reply);
        };
        let lost = std::thread::scope(|scope| {
            let window_control = Arc::clone(&control);
            let (finished, window_finished) = mpsc::channel();
            let window = scope.spawn(move || {
                let outcome = trial.run(schedule, &window_control, &say);
                if let Err(failure) = outcome {
                    say(&failure.into_reply());
                }
                let _ = finished.send(());
            });
            let lost = hear(requests, &window_finished, &control, give_up_after);
            if matches!(lost, Err(SessionError::Idle(_))) && self.options.max_duration.is_some() {
                let reason = "the trial takes longer than --max-duration allows here".to_owned();
                say(&Reply::Refused { reason, kind: Refusal::Network });
            }
            control.abort_if(lost.is_err());
            let _ = window.join();
            lost
        });
        // What a stranger's trial still has to do is short: to stop, and to tell its reading.
        self.trial_deadline = self.trial_deadline.map(|at| at.min(Instant::now() + GRACE));
        if lost.is_err() {
            self.trial = None;
        }
        lost
    }

    fn refuse(&self, kind: Refusal, reason: String) -> Result<Option<Request>, SessionError> {
        self.say(&Reply::Refused { reason, kind }).map(|()| None)
    }

    fn say(&self, reply: &Reply) -> Result<(), SessionError> {
        Ok(write_message(&mut *self.writer.lock().unwrap_or_else(PoisonError::into_inner), reply)?)
    }
}

/// Hears requests while a window runs, until it is finished; gives the request that came right behind its end.
fn hear(
    requests: &Receiver<Result<Request, FrameError>>,
    window_finished: &Receiver<()>,
    control: &crate::window::WindowControl,
    give_up_after: Duration,
) -> Result<Option<Request>, SessionError> {
    // Requests come as they come: this is only how often the limit is looked at. A short one would take CPU from the
    // traffic.
    const TICK: Duration = Duration::from_millis(500);
    const JUST_ENDED: Duration = Duration::from_secs(1);
    let give_up = Instant::now() + give_up_after;
    loop {
        match requests.recv_timeout(TICK) {
            Ok(Ok(Request::Close)) => control.close(),
            // The controller may know of the window's end before we do here.
            Ok(Ok(next)) => match window_finished.recv_timeout(JUST_ENDED) {
                Ok(()) => return Ok(Some(next)),
                Err(_) => {
                    return Err(SessionError::Greeting("a request other than close while a trial runs"));
                }
            },
            Ok(Err(error)) => return Err(error.into()),
            Err(RecvTimeoutError::Disconnected) => return Err(FrameError::Closed.into()),
            Err(RecvTimeoutError::Timeout) => {}
        }
        match window_finished.try_recv() {
            Ok(()) | Err(mpsc::TryRecvError::Disconnected) => return Ok(None),
            Err(mpsc::TryRecvError::Empty) => {}
        }
        if Instant::now() > give_up {
            return Err(SessionError::Idle(give_up_after));
        }
    }
}

fn reply<T>(outcome: linerate_link::Result<T>, wrap: impl FnOnce(T) -> Reply) -> Reply {
    outcome.map_or_else(|error| changes::refused(&error), wrap)
}

fn dump(link: &str, memory: Memory) -> linerate_link::Result<Dump> {
    Ok(match memory {
        Memory::Registers => {
            let registers = ethtool_memory::registers(link)?;
            Dump { layout: registers.version, bytes: registers.bytes }
        }
        Memory::Eeprom => Dump { layout: 0, bytes: ethtool_memory::eeprom(link)? },
        Memory::Module => {
            let module = ethtool_memory::module(link)?;
            Dump { layout: module.layout, bytes: module.bytes }
        }
    })
}

fn route_reply(to: IpAddr) -> linerate_link::Result<RouteReply> {
    let route = route::route_to(to)?;
    Ok(RouteReply { link: route.link, source: route.source, gateway: route.gateway })
}

fn describe(link: Option<&str>) -> Reply {
    let mut environment = linerate_meter::environment();
    environment.linerate_version = env!("CARGO_PKG_VERSION").to_owned();
    let found: Option<linerate_link::Result<LinkInfo>> = link.map(inventory::describe);
    match found.transpose() {
        Ok(link) => {
            environment.link = link;
            Reply::Environment(Box::new(environment))
        }
        Err(error) => Reply::Refused { reason: error.to_string(), kind: Refusal::Network },
    }
}
