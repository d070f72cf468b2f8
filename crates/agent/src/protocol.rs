//! The messages between a controller and an agent.
//!
//! ```text
//! controller                                agent
//!   Hello {protocol, version, nonce}   ->
//!                                      <-   Hello {protocol, version, nonce, secret_needed}
//!   Prove {proof}                      ->                       (only where a secret is needed)
//!                                      <-   Welcome {proof}
//!   Links | Route | Clock | Describe   ->
//!                                      <-   one answer each
//!   Settings | Inventory | Dump        ->                       (refused by a server for strangers, as the next three)
//!   Apply {link, settings}             ->                       (whole: what is not named goes back first)
//!   Restore | Stale                    ->
//!                                      <-   one answer each
//!   Check {trial}                      ->                       (every trial of a run, before any traffic)
//!                                      <-   Checked
//!   Prepare {trial, ...}               ->                       (peer first: it listens; then the dut connects)
//!                                      <-   Prepared {ports}
//!   AwaitReady                         ->
//!                                      <-   Ready
//!   Run {schedule}                     ->
//!                                      <-   Interval*, Done?, then WindowClosed
//!   Close                              ->                       (ends a window that no clock ends, or ends it early)
//!   Stop                               ->                       (both, once both windows are closed)
//!                                      <-   Stopped
//!   Finish {sent_in_window}            ->                       (sender first: the receiver drains by its counts)
//!                                      <-   Reading
//! ```
//! Any request may be answered by `Refused`. The end of the stream ends everything at the agent.

use std::net::IpAddr;

use linerate_link::inventory::Inventory;
use linerate_link::restore::{Report, Restored};
use linerate_link::settings::SettingInfo;
use linerate_model::bench::{BenchReply, BenchRequest};
use linerate_model::environment::{Environment, LinkInfo};
use linerate_model::reading::{IntervalReading, Reading};
use linerate_model::trial::{Side, Trial};
use serde::{Deserialize, Serialize};

/// Version of this protocol. Both ends must have the same.
pub const PROTOCOL: u32 = 1;

/// What a controller asks.
#[derive(Debug, Serialize, Deserialize)]
#[serde(tag = "request", content = "with", rename_all = "kebab-case")]
pub enum Request {
    /// Opens the conversation.
    Hello {
        /// [`PROTOCOL`].
        protocol: u32,
        /// Program version, for messages.
        version: String,
        /// Client nonce for [`crate::auth`].
        nonce: String,
    },
    /// Proves that the controller knows the secret.
    Prove {
        /// See [`crate::auth::Secret::proof`].
        proof: String,
    },
    /// All links of the node's namespace.
    Links,
    /// How the node would reach an address.
    Route {
        /// The address.
        to: IpAddr,
    },
    /// The node's monotonic clock.
    Clock,
    /// Machine, kernel and link.
    Describe {
        /// The link under test, where one is known.
        link: Option<String>,
    },
    /// All settings of a link.
    Settings {
        /// The link.
        link: String,
    },
    /// One link in full, or all.
    Inventory {
        /// The link; `None` is all.
        link: Option<String>,
    },
    /// What the driver keeps in memory.
    Dump {
        /// The link.
        link: String,
        /// Which memory.
        memory: Memory,
    },
    /// Makes these, and no others, the settings that differ from what they were before the session.
    Apply {
        /// The link.
        link: String,
        /// Keys and values, in the order in which they are set.
        settings: Vec<(String, String)>,
    },
    /// Puts back all that the session changed.
    Restore,
    /// Puts back what dead linerates left changed on this machine.
    Stale(StaleOptions),
    /// What a qualification asks; not of a node that does traffic only.
    Bench(Box<BenchRequest>),
    /// Whether a trial makes sense on this machine: its CPUs, its congestion control.
    Check {
        /// What is asked for.
        trial: Box<Trial>,
        /// Which end this node is.
        side: Side,
    },
    /// Opens the endpoint of a trial.
    Prepare(Box<Prepare>),
    /// Waits until all data connections stand.
    AwaitReady,
    /// Runs the trial.
    Run(Schedule),
    /// Closes the window now.
    Close,
    /// Stops what this node sends, once both windows are closed; what is on its way still arrives.
    Stop,
    /// Ends the traffic and asks for the reading.
    Finish {
        /// By stream: datagrams that the other side sent within its window; empty where that is not known.
        sent_in_window: Vec<u64>,
    },
}

impl Request {
    /// Whether it belongs to the greeting, which a stranger may send before it has proved anything.
    pub fn is_greeting(&self) -> bool {
        matches!(self, Self::Hello { .. } | Self::Prove { .. })
    }
}

/// What an endpoint needs to open.
#[derive(Debug, Serialize, Deserialize)]
pub struct Prepare {
    /// What is asked for.
    pub trial: Trial,
    /// Which end this node is: the peer listens, the dut connects.
    pub side: Side,
    /// By which data connections prove themselves, hex of 16 bytes.
    pub token: String,
    /// This node's test address; `None` for a server, which uses the one it was reached at.
    pub local: Option<IpAddr>,
    /// Interface index to go with a link-local IPv6 address; 0 for none.
    pub scope_id: u32,
    /// Where the peer listens; only for the dut.
    pub remote: Option<Remote>,
    /// The link whose counters belong in the reading; `None` is the link that has the local address.
    pub link: Option<String>,
}

/// Where the peer listens.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Remote {
    /// Its test address.
    pub address: IpAddr,
    /// TCP: one port; UDP: one for each stream.
    pub ports: Vec<u16>,
}

/// When things happen, on the clock of the node that gets it (`CLOCK_MONOTONIC`, nanoseconds).
#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
pub struct Schedule {
    /// Traffic starts.
    pub traffic_start_ns: u64,
    /// The window opens.
    pub window_start_ns: u64,
    /// The window closes; `None` is when the count is reached and the controller says `Close`.
    pub window_end_ns: Option<u64>,
}

/// What an agent answers.
#[derive(Debug, Serialize, Deserialize)]
#[serde(tag = "reply", content = "with", rename_all = "kebab-case")]
pub enum Reply {
    /// Answers `Hello`.
    Hello {
        /// [`PROTOCOL`] of the agent.
        protocol: u32,
        /// Program version, for messages.
        version: String,
        /// Server nonce for [`crate::auth`].
        nonce: String,
        /// Whether `Prove` must come next.
        secret_needed: bool,
    },
    /// The agent is ready for requests.
    Welcome {
        /// The agent's own proof, where a secret was needed.
        proof: Option<String>,
        /// Traffic only: no setting is changed here and no command run.
        traffic_only: bool,
        /// The address at which the controller reached this node, where there is one.
        reached_at: Option<IpAddr>,
    },
    /// Answers `Links`.
    Links(Vec<LinkInfo>),
    /// Answers `Route`.
    Route(RouteReply),
    /// Answers `Clock`.
    Clock {
        /// `CLOCK_MONOTONIC`, nanoseconds.
        monotonic_ns: u64,
    },
    /// Answers `Describe`.
    Environment(Box<Environment>),
    /// Answers `Settings`.
    Settings(Vec<SettingInfo>),
    /// Answers `Inventory`.
    Inventory(Vec<Inventory>),
    /// Answers `Dump`.
    Dump(Dump),
    /// Answers `Apply`.
    Applied(Applied),
    /// Answers `Restore`.
    Restored(Report),
    /// Answers `Stale`.
    Stale(Vec<Restored>),
    /// Answers `Bench`.
    Bench(Box<BenchReply>),
    /// Answers `Check`: it does.
    Checked,
    /// Answers `Prepare`.
    Prepared {
        /// Where the peer listens; empty for the dut.
        ports: Vec<u16>,
        /// The link whose counters go in the reading.
        link: Option<String>,
    },
    /// Answers `AwaitReady`.
    Ready,
    /// An interval has passed; only where the trial asks for intervals.
    Interval(IntervalReading),
    /// This side's part of the count is reached; the window stays open until `Close`.
    Done,
    /// The window is closed and sampled.
    WindowClosed,
    /// Answers `Stop`.
    Stopped,
    /// Answers `Finish`.
    Reading(Box<Reading>),
    /// The request could not be met.
    Refused {
        /// What was asked, its object, and why not.
        reason: String,
        /// What kind of refusal.
        kind: Refusal,
    },
}

/// How to treat what dead linerates left changed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct StaleOptions {
    /// Forget it instead of putting it back.
    pub forget: bool,
    /// Wait a few seconds for owners that live: one whose controller was lost is about to put its settings back.
    pub wait: bool,
}

/// What came of changing settings.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Applied {
    /// Something was changed; not so where all was in force already.
    pub changed: bool,
    /// The link lost its carrier meanwhile, and has it again.
    pub flapped: bool,
}

/// A memory of a link's driver or device.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Memory {
    /// Registers of the device.
    Registers,
    /// EEPROM of the device.
    Eeprom,
    /// EEPROM of the plugged-in module.
    Module,
}

/// The content of a memory.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Dump {
    /// The driver's number for the layout of registers, or `ETH_MODULE_SFF_*` for a module; 0 for an EEPROM.
    pub layout: u32,
    /// Its bytes.
    pub bytes: Vec<u8>,
}

/// What kind of refusal.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Refusal {
    /// The request makes no sense here.
    Usage,
    /// A permission or a proof is missing.
    Permission,
    /// The network or the machine failed.
    Network,
}

/// How a node would reach an address.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RouteReply {
    /// Link that packets leave by.
    pub link: String,
    /// Source address that the kernel would take.
    pub source: Option<IpAddr>,
    /// Next hop, where the address is not on the link.
    pub gateway: Option<IpAddr>,
}

impl Reply {
    /// Its name, for messages about an unexpected one.
    pub fn name(&self) -> &'static str {
        match self {
            Self::Hello { .. } => "hello",
            Self::Welcome { .. } => "welcome",
            Self::Links(_) => "links",
            Self::Route(_) => "route",
            Self::Clock { .. } => "clock",
            Self::Environment(_) => "environment",
            Self::Settings(_) => "settings",
            Self::Inventory(_) => "inventory",
            Self::Dump(_) => "dump",
            Self::Applied(_) => "applied",
            Self::Restored(_) => "restored",
            Self::Stale(_) => "stale",
            Self::Bench(_) => "bench",
            Self::Checked => "checked",
            Self::Prepared { .. } => "prepared",
            Self::Ready => "ready",
            Self::Interval(_) => "interval",
            Self::Done => "done",
            Self::WindowClosed => "window-closed",
            Self::Stopped => "stopped",
            Self::Reading(_) => "reading",
            Self::Refused { .. } => "refused",
        }
    }
}
