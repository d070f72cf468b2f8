//! A qualification: what the suite asked of a link and its driver, and what came of each case.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::bench::Bytes;
use crate::environment::Environment;
use crate::node::NodeUrl;

/// Name and version of the layout, in every qualification.
pub const QUALIFICATION_SCHEMA: &str = "linerate.qualification/1";

/// One run of the suite on one link.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Qualification {
    /// [`QUALIFICATION_SCHEMA`].
    pub schema: String,
    /// Id of the run: 32 hex digits.
    pub run: String,
    /// When it started, UTC, RFC 3339.
    pub started_at: String,
    /// How long it took, nanoseconds.
    pub duration_ns: u64,
    /// The command line.
    pub command: Vec<String>,
    /// Seed of every random choice.
    pub seed: u64,
    /// Cases up to this level were asked for.
    pub level: Level,
    /// The end under test.
    pub dut: End,
    /// The neutral observer.
    pub peer: End,
    /// What joins them: `veth`, `hub`, `cable`, `switch`, `tap`, `injector`.
    pub medium: String,
    /// Emulator with its version, where the device is emulated.
    pub emulator: Option<String>,
    /// What the slower end can do; `None` where the run ended before it was found.
    pub calibration: Option<Calibration>,
    /// One for each case, or variant of a case, in the order run.
    pub cases: Vec<CaseResult>,
    /// How the run ended.
    pub ended: Ended,
    /// Changes made to the nodes, in order, with what became of putting them back.
    pub journal: Vec<JournalEntry>,
}

/// One end of the link.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct End {
    /// Where its agent runs.
    pub node: NodeUrl,
    /// The link's name.
    pub link: String,
    /// Machine, kernel and link.
    pub environment: Environment,
    /// Settings before the first case, by key.
    pub settings_before: BTreeMap<String, String>,
    /// Settings after the last case that differ, by key.
    pub settings_after: BTreeMap<String, String>,
    /// Facts of the device and its module: `srcversion`, `vendor`, `device`, `revision`, `eeprom-sha256`, `module.NAME` ...
    pub identity: BTreeMap<String, String>,
}

/// What the slower end can do.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Calibration {
    /// Small probe frames a second, one way, sent and judged.
    pub frames_per_second: f64,
    /// TCP bits a second with every byte compared.
    pub flow_bits_per_second: f64,
    /// Lock-step round trip of an agent request, nanoseconds.
    pub request_ns: u64,
    /// Median of ICMP round trips, nanoseconds.
    pub round_trip_ns: u64,
}

/// How a run ended.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum Ended {
    /// All cases were run.
    Complete,
    /// A signal ended it.
    Interrupted,
    /// A case failed and `--stop-on-fail` was given.
    StoppedOnFail,
    /// A node or the link was lost; with the reason.
    Lost(String),
}

/// How much a case belongs to a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum Level {
    /// Part of the run of under a minute.
    Quick,
    /// Level A of the catalogue.
    Core,
    /// Level B.
    Extended,
    /// Level C: long, special, benchmarks.
    Full,
}

/// What came of a case, or of one variant of it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct CaseResult {
    /// Catalogue id: `CSUM-03`.
    pub id: String,
    /// Variant: `v6_udp_len7`; empty where the case has only one.
    pub variant: String,
    /// Area: `csum`.
    pub area: String,
    /// What it does, in a line.
    pub title: String,
    /// The answer.
    pub outcome: Outcome,
    /// Why, where it is not a plain pass.
    pub reason: Option<Reason>,
    /// The rest of what was found wrong.
    pub more_reasons: Vec<Reason>,
    /// Worth knowing, no reason to fail.
    pub warnings: Vec<String>,
    /// How long it took, nanoseconds.
    pub duration_ns: u64,
    /// Numbers that it measured.
    pub measured: Vec<Measured>,
    /// Counters that changed, dut first: `dut.link.rx_packets`.
    pub counters: BTreeMap<String, i64>,
    /// The first input that failed.
    pub evidence: Option<Evidence>,
    /// Kernel log lines since the case began, those that fail it and others, with their node: `dut: ...`.
    pub log: Vec<String>,
    /// File name of the packet capture around the failure.
    pub capture: Option<String>,
    /// The expected failure that covers it.
    pub expected: Option<Expected>,
    /// Which repeat, from 0.
    pub repeat: u32,
}

/// The answer of a case.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum Outcome {
    /// All that must hold did.
    Pass,
    /// Something that must hold did not.
    Fail,
    /// The feature is absent, or the environment cannot show it.
    Skip,
    /// It did not come to its end in time: counts as a failure.
    Timeout,
    /// The suite itself failed: counts as a failure.
    Error,
    /// Failed as expected.
    ExpectedFail,
    /// Passed though a failure was expected: the entry should go.
    UnexpectedPass,
}

impl Outcome {
    /// Whether it makes the run a failed one.
    pub fn is_bad(self) -> bool {
        matches!(self, Self::Fail | Self::Timeout | Self::Error)
    }

    /// In a word, as tables have it.
    pub fn word(self) -> &'static str {
        match self {
            Self::Pass => "pass",
            Self::Fail => "fail",
            Self::Skip => "skip",
            Self::Timeout => "timeout",
            Self::Error => "error",
            Self::ExpectedFail => "xfail",
            Self::UnexpectedPass => "xpass",
        }
    }
}

/// Why a case is not a plain pass.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Reason {
    /// For machines.
    pub code: ReasonCode,
    /// For people: what was expected and what came.
    pub text: String,
}

/// Reasons by kind.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
pub enum ReasonCode {
    /// Frames did not arrive.
    Loss,
    /// Frames arrived twice.
    Dup,
    /// Frames changed places.
    Reorder,
    /// A wrong length.
    Len,
    /// A wrong byte.
    Data,
    /// Padding with something in it.
    Pad,
    /// A bad checksum was called good.
    CsumFalseOk,
    /// A good checksum was called bad.
    CsumFalseBad,
    /// A wrong checksum was sent.
    CsumTx,
    /// Segments cut or merged wrongly.
    Seg,
    /// A wrong VLAN tag.
    Tag,
    /// A frame passed a filter that should keep it out.
    FilterLeak,
    /// A filter kept out what should pass.
    FilterMiss,
    /// A counter is wrong.
    Count,
    /// Counters contradict each other or their definition.
    CountRule,
    /// Sending stands still.
    StuckTx,
    /// Receiving stands still.
    StuckRx,
    /// The transmit watchdog fired.
    Watchdog,
    /// The kernel warned.
    Klog,
    /// A setting was lost, or did not go back.
    ConfigLost,
    /// What should be accepted was refused.
    Refused,
    /// What should be refused was accepted.
    Accepted,
    /// A value does not read back as set.
    Readback,
    /// Memory or another resource was not given back.
    Leak,
    /// The link is not as it should be.
    Link,
    /// A figure is beyond its bound.
    Perf,
    /// It took too long.
    Slow,
    /// The suite itself failed.
    Harness,
    /// A skip: the driver does not have the feature.
    NoFeature,
    /// A skip: the medium or the environment cannot show it.
    NotShown,
    /// A skip: a permission is missing.
    NoPermission,
    /// A skip: it may do harm and was not allowed, or takes the link down.
    NotAllowed,
    /// A skip: it cannot be judged at this speed.
    TooSlow,
    /// A skip: the suite does not offer it.
    NotOffered,
}

impl ReasonCode {
    /// As it is written: `CSUM_FALSE_OK`.
    pub fn word(self) -> String {
        let named = format!("{self:?}");
        let mut word = String::with_capacity(named.len() + 4);
        for (index, letter) in named.chars().enumerate() {
            if letter.is_uppercase() && index > 0 {
                word.push('_');
            }
            word.extend(letter.to_uppercase());
        }
        word
    }
}

/// A number that a case measured.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Measured {
    /// What.
    pub name: String,
    /// How much.
    pub value: f64,
    /// In what.
    pub unit: String,
}

/// The first input that failed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Evidence {
    /// What it was, in words: `frame 17 of length 61, dut to peer`.
    pub what: String,
    /// What was sent, or what should have come.
    pub expected: Option<Bytes>,
    /// What came; `None` where nothing did.
    pub got: Option<Bytes>,
    /// The first byte that differs.
    pub offset: Option<u64>,
}

/// An entry of the list of expected failures.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Expected {
    /// Why.
    pub reason: String,
    /// Where to read more.
    pub link: Option<String>,
}

/// A change that was made to a node.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct JournalEntry {
    /// Case during which it was made.
    pub case: String,
    /// `dut` or `peer`.
    pub end: String,
    /// What was changed.
    pub what: String,
    /// What it was.
    pub before: Option<String>,
    /// What it was changed to.
    pub after: String,
    /// It was put back; `None` where nothing was to be.
    pub restored: Option<bool>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_word_of_a_code_is_its_serde_form() {
        for code in [ReasonCode::Loss, ReasonCode::CsumFalseOk, ReasonCode::StuckTx, ReasonCode::NotOffered] {
            assert_eq!(serde_json::to_string(&code).unwrap(), format!("\"{}\"", code.word()));
        }
    }
}
