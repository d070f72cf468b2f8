//! A run as the history knows it.

use serde::{Deserialize, Serialize};

use crate::error::StoreError;
use crate::time::nanoseconds;

/// What is known of a run when it begins.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RunInfo {
    /// 32 lower-case hex digits.
    pub id: String,
    /// UTC, RFC 3339.
    pub started_at: String,
    /// The command line, word by word.
    pub command: Vec<String>,
    /// Version of the linerate that ran it.
    pub linerate_version: String,
    /// The planned trials as JSON, for `--resume`; `None` where the run can't be resumed.
    pub plan_json: Option<String>,
    /// Seed of the order of trials.
    pub seed: u64,
}

/// How a run ended. A run without an outcome is under way, or its writer was killed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum RunOutcome {
    /// Every planned trial was run.
    Complete,
    /// Stopped by a signal or a budget; `--resume` can go on.
    Interrupted,
    /// A node, the network or a setting failed.
    Failed,
}

impl RunOutcome {
    /// The word for it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Complete => "complete",
            Self::Interrupted => "interrupted",
            Self::Failed => "failed",
        }
    }

    pub(crate) fn from_name(name: &str) -> Option<Self> {
        [Self::Complete, Self::Interrupted, Self::Failed].into_iter().find(|outcome| outcome.name() == name)
    }
}

/// A run with what the history knows of its trials. The lists have each value once, by alphabet.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RunSummary {
    /// What was known when it began.
    pub info: RunInfo,
    /// When it ended, UTC, RFC 3339; `None` as for `outcome`.
    pub ended_at: Option<String>,
    /// How it ended; `None` is under way or killed.
    pub outcome: Option<RunOutcome>,
    /// Its tags.
    pub tags: Vec<String>,
    /// Trials stored.
    pub trials: u64,
    /// Cases of a qualification; `None` for a run of trials.
    pub cases: Option<u64>,
    /// Workloads of its trials (`tcp-stream` ...).
    pub workloads: Vec<String>,
    /// The dut's links under test.
    pub links: Vec<String>,
    /// Drivers of those links.
    pub drivers: Vec<String>,
    /// The dut's kernel releases.
    pub kernels: Vec<String>,
    /// The dut's host names.
    pub machines: Vec<String>,
}

/// Digits of a run's id.
const ID_DIGITS: usize = 32;

/// Whether a text is a run's id: 32 lower-case hex digits.
pub(crate) fn is_id(text: &str) -> bool {
    text.len() == ID_DIGITS && is_hex(text)
}

/// Whether a text could be the beginning of an id: at least four digits, so that a slip names no run.
pub(crate) fn is_id_prefix(text: &str) -> bool {
    (4..=ID_DIGITS).contains(&text.len()) && is_hex(text)
}

fn is_hex(text: &str) -> bool {
    text.bytes().all(|b| b.is_ascii_digit() || (b'a'..=b'f').contains(&b))
}

/// # Errors
/// [`StoreError::BadTag`].
pub(crate) fn check_tag(name: &str) -> Result<(), StoreError> {
    let allowed = |b: u8| b.is_ascii_alphanumeric() || b"._:/+@-".contains(&b);
    let good = (1..=64).contains(&name.len()) && name.bytes().all(allowed);
    if good && name != "last" && !is_id(name) && !name.starts_with('-') {
        return Ok(());
    }
    Err(StoreError::BadTag(name.to_owned()))
}

/// The start of a checked run, nanoseconds since 1970.
///
/// # Errors
/// Says which field would make the run impossible to find again.
pub(crate) fn check_info(info: &RunInfo) -> Result<i64, String> {
    if !is_id(&info.id) {
        return Err("its id is not 32 lower-case hex digits".to_owned());
    }
    nanoseconds(&info.started_at).ok_or_else(|| format!("'{}' is no RFC 3339 time", info.started_at))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tags_can_not_be_taken_for_ids() {
        for good in ["baseline", "v6.18-rc1", "20261130", "beef", "team/a:b+c@d"] {
            assert!(check_tag(good).is_ok(), "{good}");
        }
        let id = "0123456789abcdef0123456789abcdef";
        for wrong in ["", "last", "two words", "-x", "naïve", id, &"x".repeat(65)] {
            assert!(check_tag(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn outcomes_round_trip() {
        for outcome in [RunOutcome::Complete, RunOutcome::Interrupted, RunOutcome::Failed] {
            assert_eq!(RunOutcome::from_name(outcome.name()), Some(outcome));
            assert_eq!(serde_json::to_value(outcome).unwrap(), outcome.name());
        }
        assert_eq!(RunOutcome::from_name("other"), None);
    }
}
