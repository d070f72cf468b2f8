//! The record: the versioned unit that is stored, and that every report derives from.

use serde::{Deserialize, Serialize};

use crate::environment::Environment;
use crate::guest::GuestRecord;
use crate::hazard::Hazard;
use crate::limit::Limit;
use crate::node::NodeUrl;
use crate::reading::Reading;
use crate::summary::Summary;
use crate::trial::{Side, Trial};

/// Name and version of the record's layout, in every record.
pub const RECORD_SCHEMA: &str = "linerate.record/1";

/// A trial with both readings and the environment.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Record {
    /// [`RECORD_SCHEMA`].
    pub schema: String,
    /// Id of the run that the trial belongs to: 32 hex digits.
    pub run: String,
    /// Number of the trial within the run, from 0, in the order run.
    pub sequence: u32,
    /// Seed of the order of trials; `None` in records from before there was one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub seed: Option<u64>,
    /// The randomised block that the trial is part of, from 0: each block runs every combination once.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub block: Option<u32>,
    /// Place of the trial's combination in the plan, from 0: the order in which reports show them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub combination: Option<u32>,
    /// When the trial started, UTC, RFC 3339.
    pub started_at: String,
    /// What was asked for.
    pub trial: Trial,
    /// How it ended.
    pub outcome: Outcome,
    /// The node under test.
    pub dut: NodeRecord,
    /// Its partner. Of several peers: the first one's node and environment, with the reading of all together (streams and
    /// threads of all, CPU of each machine once, counters added up).
    pub peer: NodeRecord,
    /// Where there are several peers: each by itself. Their streams are numbered on, as those of the dut are.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub peers: Vec<NodeRecord>,
    /// How well the two windows coincide.
    pub clock: ClockSync,
    /// Both nodes run on one kernel: CPU is the machine's, counted once.
    pub shared_kernel: bool,
    /// The figures of the table.
    pub summary: Summary,
    /// What held it back.
    pub limit: Limit,
    /// Reasons to distrust it.
    pub hazards: Vec<Hazard>,
    /// Which tool linerate stood in for, where it spoke another tool's protocol.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stand_in: Option<StandIn>,
}

/// A tool that linerate stood in for. The other end is another program, or may be: see `knowledge` of its reading.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct StandIn {
    /// `netperf`, `iperf3`, `uperf` or `ttcp`.
    pub tool: String,
    /// Which node linerate was: the dut connects, the peer listens.
    pub side: Side,
    /// The words after the tool's name.
    pub command: Vec<String>,
}

/// How a trial ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum Outcome {
    /// As planned.
    Complete,
    /// Stopped by a signal; the window is shorter than asked for.
    Interrupted,
}

/// One node's part in a record.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct NodeRecord {
    /// Where the agent ran.
    pub node: NodeUrl,
    /// Machine, kernel and link.
    pub environment: Environment,
    /// What it measured.
    pub reading: Reading,
    /// What it cost to emulate it, where it is a `vm:` node.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub guest: Option<GuestRecord>,
}

/// How well the two windows coincide; of several peers' windows that which is known least.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ClockSync {
    /// Peer's `CLOCK_MONOTONIC` minus the dut's, nanoseconds, as estimated over the control connections.
    pub peer_minus_dut_ns: i64,
    /// The estimate is off by at most this, nanoseconds: half the sum of the shortest control round trips.
    pub uncertainty_ns: u64,
}
