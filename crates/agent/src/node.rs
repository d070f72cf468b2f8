//! The controller's handle to an agent.

use std::fmt;
use std::io::{Read, Write};
use std::net::IpAddr;
use std::sync::mpsc::{self, Receiver, RecvTimeoutError};
use std::time::{Duration, Instant};

use linerate_link::inventory::Inventory;
use linerate_link::restore::{Report, Restored};
use linerate_link::settings::SettingInfo;
use linerate_model::NodeUrl;
use linerate_model::environment::{Environment, LinkInfo};
use linerate_model::reading::Reading;
use linerate_model::trial::{Side, Trial};

use crate::auth::{self, Prover, Secret};
use crate::frame::{FrameError, MAX_MESSAGE_BYTES, read_message, write_message};
use crate::launch::Carrier;
use crate::launch::vm::Machine;
use crate::protocol::{
    Applied, Dump, Memory, PROTOCOL, Prepare, Refusal, Reply, Request, RouteReply, Schedule, StaleOptions,
};

/// How long a node may take to answer what it can answer at once.
const ANSWER_LIMIT: Duration = Duration::from_secs(15);
/// How long changing settings may take: a real NIC may start anew for each, and then negotiate.
const SETTINGS_LIMIT: Duration = Duration::from_secs(180);
/// How long opening or finishing traffic may take: connecting and proving are given 10 s there, preparing threads 30 s.
const TRAFFIC_LIMIT: Duration = Duration::from_secs(45);

/// A node that could not do what was asked of it.
#[derive(Debug, thiserror::Error)]
#[error("node {node}: {operation}: {cause}")]
pub struct NodeError {
    /// Which node.
    pub node: String,
    /// What was asked.
    pub operation: &'static str,
    /// Why it failed.
    pub cause: NodeFailure,
}

/// Why a node failed.
#[derive(Debug, thiserror::Error)]
pub enum NodeFailure {
    /// The agent could not be started or reached; with what it, or ssh, had to say.
    #[error("{0}")]
    Unreachable(String),
    /// The agent speaks another version of the protocol.
    #[error(
        "it runs linerate {theirs} (agent protocol {their_protocol}), this is {ours} (protocol {PROTOCOL}); \
         install the same version on both, or use --push with ssh:"
    )]
    Version {
        /// Program version there.
        theirs: String,
        /// Protocol version there.
        their_protocol: u32,
        /// Program version here.
        ours: String,
    },
    /// A secret is needed, or the wrong one was given.
    #[error("{0}")]
    Secret(String),
    /// The agent refused.
    #[error("{reason}")]
    Refused {
        /// Its words.
        reason: String,
        /// What kind of refusal.
        kind: Refusal,
    },
    /// The connection to the agent ended.
    #[error("the connection to its agent ended: {0}")]
    Lost(String),
    /// No answer in time.
    #[error("no answer within {0:?}")]
    Silent(Duration),
    /// No answer in time from a guest; with what is known of it.
    #[error("no answer within {limit:?}: {words}")]
    SilentGuest {
        /// How long it was waited for.
        limit: Duration,
        /// Its state and its last console lines.
        words: String,
    },
    /// An answer that does not fit.
    #[error("unexpected answer '{0}'")]
    Unexpected(&'static str),
}

impl NodeError {
    /// Whether a permission or a proof was missing.
    pub fn is_permission(&self) -> bool {
        matches!(&self.cause, NodeFailure::Secret(_) | NodeFailure::Refused { kind: Refusal::Permission, .. })
    }

    /// Whether the node could be asked and refused, be it for want of a permission, of sense or of the means.
    pub fn is_refusal(&self) -> bool {
        matches!(&self.cause, NodeFailure::Refused { .. })
    }

    /// Whether the request made no sense to the node.
    pub fn is_usage(&self) -> bool {
        matches!(&self.cause, NodeFailure::Refused { kind: Refusal::Usage, .. })
    }
}

/// A connected agent.
pub struct Node {
    url: NodeUrl,
    writer: Box<dyn Write + Send>,
    replies: Receiver<Result<Reply, FrameError>>,
    carrier: Carrier,
    traffic_only: bool,
    reached_at: Option<IpAddr>,
}

impl fmt::Debug for Node {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Node").field("url", &self.url).finish_non_exhaustive()
    }
}

/// What came while waiting for a window to close.
#[derive(Debug)]
pub enum WindowEvent {
    /// An interval has passed.
    Interval(linerate_model::reading::IntervalReading),
    /// This node's part of the count is reached.
    Done,
    /// The window is closed.
    Closed,
    /// Nothing came in time.
    Nothing,
}

impl Node {
    /// Greets the agent at the far end of a byte stream and, where it asks, proves that we know the secret.
    ///
    /// # Errors
    /// Where the agent can't be reached, has another version, or refuses.
    pub fn greet(
        url: NodeUrl,
        reader: impl Read + Send + 'static,
        writer: impl Write + Send + 'static,
        carrier: Carrier,
        secret: Option<&Secret>,
        limit: Duration,
    ) -> Result<Self, NodeError> {
        let (sender, replies) = mpsc::channel();
        let mut reader = reader;
        let read_all = move || {
            loop {
                let message = read_message::<Reply>(&mut reader, MAX_MESSAGE_BYTES);
                let ended = message.is_err();
                if sender.send(message).is_err() || ended {
                    return;
                }
            }
        };
        let mut node =
            Self { url, writer: Box::new(writer), replies, carrier, traffic_only: false, reached_at: None };
        std::thread::Builder::new()
            .name("node-reader".to_owned())
            .spawn(read_all)
            .map_err(|e| node.error("start a thread", NodeFailure::Unreachable(e.to_string())))?;
        node.handshake(secret, limit)?;
        Ok(node)
    }

    fn handshake(&mut self, secret: Option<&Secret>, limit: Duration) -> Result<(), NodeError> {
        const OPERATION: &str = "greet its agent";
        let version = env!("CARGO_PKG_VERSION").to_owned();
        let ours = auth::nonce().map_err(|e| self.error(OPERATION, NodeFailure::Secret(e.to_string())))?;
        self.send(
            OPERATION,
            &Request::Hello { protocol: PROTOCOL, version: version.clone(), nonce: ours.clone() },
        )?;
        let (theirs, secret_needed) = match self.receive(OPERATION, limit)? {
            Reply::Hello { protocol, nonce, secret_needed, .. } if protocol == PROTOCOL => {
                (nonce, secret_needed)
            }
            Reply::Hello { protocol, version: theirs, .. } => {
                let cause = NodeFailure::Version { theirs, their_protocol: protocol, ours: version };
                return Err(self.error(OPERATION, cause));
            }
            other => return Err(self.error(OPERATION, NodeFailure::Unexpected(other.name()))),
        };
        if secret_needed {
            let Some(secret) = secret else {
                let words = "the server wants a secret: give the same file with --secret-file";
                return Err(self.error(OPERATION, NodeFailure::Secret(words.to_owned())));
            };
            self.send(OPERATION, &Request::Prove { proof: secret.proof(Prover::Client, &ours, &theirs) })?;
        }
        let Reply::Welcome { proof, traffic_only, reached_at } = self.receive(OPERATION, ANSWER_LIMIT)?
        else {
            return Err(self.error(OPERATION, NodeFailure::Unexpected("not welcome")));
        };
        if let Some(secret) = secret {
            let proved = proof.is_some_and(|p| secret.accepts(&p, Prover::Server, &ours, &theirs));
            if !proved {
                let words = "the server did not prove that it knows the secret: it is not the one you mean";
                return Err(self.error(OPERATION, NodeFailure::Secret(words.to_owned())));
            }
        }
        self.traffic_only = traffic_only;
        self.reached_at = reached_at;
        Ok(())
    }

    /// Its address as a node.
    pub fn url(&self) -> &NodeUrl {
        &self.url
    }

    /// The machine that the node is, where linerate emulates it: what can be done to a `vm:` node from outside.
    pub fn machine(&self) -> Option<&Machine> {
        self.carrier.machine()
    }

    /// Whether it does traffic only.
    pub fn is_traffic_only(&self) -> bool {
        self.traffic_only
    }

    /// The address at which this node's machine was reached, where it was over a network.
    pub fn reached_at(&self) -> Option<IpAddr> {
        self.reached_at
    }

    /// All links of the node's namespace.
    ///
    /// # Errors
    /// Where the node fails or refuses.
    pub fn links(&mut self) -> Result<Vec<LinkInfo>, NodeError> {
        const OPERATION: &str = "list its links";
        match self.ask(OPERATION, &Request::Links, ANSWER_LIMIT)? {
            Reply::Links(links) => Ok(links),
            other => Err(self.error(OPERATION, NodeFailure::Unexpected(other.name()))),
        }
    }

    /// How the node would reach `to`.
    ///
    /// # Errors
    /// Where the node fails, or has no route.
    pub fn route(&mut self, to: IpAddr) -> Result<RouteReply, NodeError> {
        const OPERATION: &str = "look up its route";
        match self.ask(OPERATION, &Request::Route { to }, ANSWER_LIMIT)? {
            Reply::Route(route) => Ok(route),
            other => Err(self.error(OPERATION, NodeFailure::Unexpected(other.name()))),
        }
    }

    /// The node's monotonic clock, nanoseconds.
    ///
    /// # Errors
    /// Where the node fails.
    pub fn clock_ns(&mut self) -> Result<u64, NodeError> {
        const OPERATION: &str = "read its clock";
        match self.ask(OPERATION, &Request::Clock, ANSWER_LIMIT)? {
            Reply::Clock { monotonic_ns } => Ok(monotonic_ns),
            other => Err(self.error(OPERATION, NodeFailure::Unexpected(other.name()))),
        }
    }

    /// Machine, kernel and link.
    ///
    /// # Errors
    /// Where the node fails, or has no such link.
    pub fn environment(&mut self, link: Option<&str>) -> Result<Environment, NodeError> {
        const OPERATION: &str = "describe its environment";
        match self.ask(OPERATION, &Request::Describe { link: link.map(str::to_owned) }, ANSWER_LIMIT)? {
            Reply::Environment(environment) => Ok(*environment),
            other => Err(self.error(OPERATION, NodeFailure::Unexpected(other.name()))),
        }
    }

    /// All settings of a link.
    ///
    /// # Errors
    /// Where the node fails, or does traffic only.
    pub fn settings(&mut self, link: &str) -> Result<Vec<SettingInfo>, NodeError> {
        const OPERATION: &str = "list its settings";
        match self.ask(OPERATION, &Request::Settings { link: link.to_owned() }, ANSWER_LIMIT)? {
            Reply::Settings(settings) => Ok(settings),
            other => Err(self.error(OPERATION, NodeFailure::Unexpected(other.name()))),
        }
    }

    /// A link in full, or all.
    ///
    /// # Errors
    /// Where the node fails, or does traffic only.
    pub fn inventory(&mut self, link: Option<&str>) -> Result<Vec<Inventory>, NodeError> {
        const OPERATION: &str = "describe its links";
        let request = Request::Inventory { link: link.map(str::to_owned) };
        match self.ask(OPERATION, &request, ANSWER_LIMIT)? {
            Reply::Inventory(inventory) => Ok(inventory),
            other => Err(self.error(OPERATION, NodeFailure::Unexpected(other.name()))),
        }
    }

    /// What the driver of a link keeps in memory.
    ///
    /// # Errors
    /// Where the node fails or does traffic only, and the kernel's refusal.
    pub fn dump(&mut self, link: &str, memory: Memory) -> Result<Dump, NodeError> {
        const OPERATION: &str = "read a device's memory";
        match self.ask(OPERATION, &Request::Dump { link: link.to_owned(), memory }, SETTINGS_LIMIT)? {
            Reply::Dump(dump) => Ok(dump),
            other => Err(self.error(OPERATION, NodeFailure::Unexpected(other.name()))),
        }
    }

    /// Makes these, and no others, the settings that differ from what they were before.
    ///
    /// # Errors
    /// Where the node fails or does traffic only, and the kernel's refusal.
    pub fn apply(&mut self, link: &str, settings: &[(String, String)]) -> Result<Applied, NodeError> {
        const OPERATION: &str = "change its settings";
        self.carrier.wait_for_settings();
        let request = Request::Apply { link: link.to_owned(), settings: settings.to_vec() };
        match self.ask(OPERATION, &request, SETTINGS_LIMIT)? {
            Reply::Applied(applied) => Ok(applied),
            other => Err(self.error(OPERATION, NodeFailure::Unexpected(other.name()))),
        }
    }

    /// Puts back all that was changed over this connection.
    ///
    /// # Errors
    /// Where the node fails or does traffic only.
    pub fn restore(&mut self) -> Result<Report, NodeError> {
        const OPERATION: &str = "put its settings back";
        match self.ask(OPERATION, &Request::Restore, SETTINGS_LIMIT)? {
            Reply::Restored(report) => Ok(report),
            other => Err(self.error(OPERATION, NodeFailure::Unexpected(other.name()))),
        }
    }

    /// Puts back what dead linerates left changed on the node's machine, or forgets it.
    ///
    /// # Errors
    /// Where the node fails or does traffic only.
    pub fn restore_stale(&mut self, options: StaleOptions) -> Result<Vec<Restored>, NodeError> {
        const OPERATION: &str = "put back what earlier runs left";
        match self.ask(OPERATION, &Request::Stale(options), SETTINGS_LIMIT)? {
            Reply::Stale(restored) => Ok(restored),
            other => Err(self.error(OPERATION, NodeFailure::Unexpected(other.name()))),
        }
    }

    /// Asks whether a trial makes sense on the node's machine.
    ///
    /// # Errors
    /// Where it does not, or the node fails.
    pub fn check(&mut self, trial: &Trial, side: Side) -> Result<(), NodeError> {
        const OPERATION: &str = "check what is asked for";
        let request = Request::Check { trial: Box::new(trial.clone()), side };
        match self.ask(OPERATION, &request, ANSWER_LIMIT)? {
            Reply::Checked => Ok(()),
            other => Err(self.error(OPERATION, NodeFailure::Unexpected(other.name()))),
        }
    }

    /// Opens the endpoint of a trial; gives the ports it listens on, and the link that its reading will be of.
    ///
    /// # Errors
    /// Where the node fails, or the kernel there refuses.
    pub fn prepare(&mut self, prepare: Prepare) -> Result<(Vec<u16>, Option<String>), NodeError> {
        const OPERATION: &str = "open its end of the traffic";
        match self.ask(OPERATION, &Request::Prepare(Box::new(prepare)), TRAFFIC_LIMIT)? {
            Reply::Prepared { ports, link } => Ok((ports, link)),
            other => Err(self.error(OPERATION, NodeFailure::Unexpected(other.name()))),
        }
    }

    /// Waits until all data connections stand.
    ///
    /// # Errors
    /// Where they do not in time.
    pub fn await_ready(&mut self) -> Result<(), NodeError> {
        const OPERATION: &str = "wait for the data connections";
        match self.ask(OPERATION, &Request::AwaitReady, TRAFFIC_LIMIT)? {
            Reply::Ready => Ok(()),
            other => Err(self.error(OPERATION, NodeFailure::Unexpected(other.name()))),
        }
    }

    /// Starts the trial; [`Node::window_event`] tells how it goes.
    ///
    /// # Errors
    /// Where the connection is lost.
    pub fn run(&mut self, schedule: Schedule) -> Result<(), NodeError> {
        self.send("start the traffic", &Request::Run(schedule))
    }

    /// Asks to close the window now.
    ///
    /// # Errors
    /// Where the connection is lost.
    pub fn close_window(&mut self) -> Result<(), NodeError> {
        self.send("close the window", &Request::Close)
    }

    /// Waits at most `limit` for what happens next in a running trial.
    ///
    /// # Errors
    /// Where the node fails.
    pub fn window_event(&mut self, limit: Duration) -> Result<WindowEvent, NodeError> {
        const OPERATION: &str = "run the traffic";
        match self.receive_within(OPERATION, limit)? {
            None => Ok(WindowEvent::Nothing),
            Some(Reply::Interval(interval)) => Ok(WindowEvent::Interval(interval)),
            Some(Reply::Done) => Ok(WindowEvent::Done),
            Some(Reply::WindowClosed) => Ok(WindowEvent::Closed),
            Some(other) => Err(self.error(OPERATION, NodeFailure::Unexpected(other.name()))),
        }
    }

    /// Stops what this node sends, once both windows are closed.
    ///
    /// # Errors
    /// Where the node fails.
    pub fn stop_traffic(&mut self) -> Result<(), NodeError> {
        const OPERATION: &str = "stop its traffic";
        match self.ask(OPERATION, &Request::Stop, ANSWER_LIMIT)? {
            Reply::Stopped => Ok(()),
            other => Err(self.error(OPERATION, NodeFailure::Unexpected(other.name()))),
        }
    }

    /// Ends the traffic and takes the reading. `sent_in_window` tells a receiver of datagrams what to expect.
    ///
    /// # Errors
    /// Where the node fails.
    pub fn finish(&mut self, sent_in_window: Vec<u64>) -> Result<Reading, NodeError> {
        const OPERATION: &str = "take its reading";
        match self.ask(OPERATION, &Request::Finish { sent_in_window }, TRAFFIC_LIMIT)? {
            Reply::Reading(reading) => Ok(*reading),
            other => Err(self.error(OPERATION, NodeFailure::Unexpected(other.name()))),
        }
    }

    pub(crate) fn ask(
        &mut self,
        operation: &'static str,
        request: &Request,
        limit: Duration,
    ) -> Result<Reply, NodeError> {
        self.send(operation, request)?;
        self.receive(operation, limit)
    }

    fn send(&mut self, operation: &'static str, request: &Request) -> Result<(), NodeError> {
        let Err(error) = write_message(&mut self.writer, request) else { return Ok(()) };
        // The agent may have said why before it went: its words are better than "broken pipe".
        self.drain_last_words(operation)?;
        Err(self.lost(operation, &error))
    }

    fn drain_last_words(&mut self, operation: &'static str) -> Result<(), NodeError> {
        while let Ok(Ok(reply)) = self.replies.recv_timeout(Duration::from_millis(200)) {
            if let Reply::Refused { reason, kind } = reply {
                return Err(self.error(operation, NodeFailure::Refused { reason, kind }));
            }
        }
        Ok(())
    }

    fn receive(&mut self, operation: &'static str, limit: Duration) -> Result<Reply, NodeError> {
        let give_up = Instant::now() + limit;
        while let Some(reply) =
            self.receive_within(operation, give_up.saturating_duration_since(Instant::now()))?
        {
            // Left over from a trial that was ended early: nobody waits for these any more.
            if !matches!(reply, Reply::Interval(_) | Reply::Done | Reply::WindowClosed) {
                return Ok(reply);
            }
        }
        Err(self.error(operation, self.silence(limit)))
    }

    fn receive_within(
        &mut self,
        operation: &'static str,
        limit: Duration,
    ) -> Result<Option<Reply>, NodeError> {
        match self.replies.recv_timeout(limit) {
            Ok(Ok(Reply::Refused { reason, kind })) => {
                Err(self.error(operation, NodeFailure::Refused { reason, kind }))
            }
            Ok(Ok(reply)) => Ok(Some(reply)),
            Ok(Err(error)) => Err(self.lost(operation, &error)),
            Err(RecvTimeoutError::Timeout) => Ok(None),
            Err(RecvTimeoutError::Disconnected) => Err(self.lost(operation, &FrameError::Closed)),
        }
    }

    /// Says that no answer came, and for a guest what its console says.
    pub fn silence(&self, limit: Duration) -> NodeFailure {
        match self.machine() {
            Some(machine) => NodeFailure::SilentGuest { limit, words: machine.last_words(Duration::ZERO) },
            None => NodeFailure::Silent(limit),
        }
    }

    fn lost(&mut self, operation: &'static str, error: &FrameError) -> NodeError {
        let cause = match self.carrier.last_words() {
            Some(words) => NodeFailure::Unreachable(words),
            None => NodeFailure::Lost(error.to_string()),
        };
        self.error(operation, cause)
    }

    pub(crate) fn error(&self, operation: &'static str, cause: NodeFailure) -> NodeError {
        NodeError { node: self.url.to_string(), operation, cause }
    }
}
