//! Verdicts as data: what changed from base to new, by how much, and how sure that is.
//!
//! How they are reached is told in `docs/statistics.md`; here is only what a reader of the result needs.

use serde::{Deserialize, Serialize};

/// All comparisons of a base with a new one, judged together.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct VerdictTable {
    /// What the base is, in words: a run's id or tag, a file, a level of a factor.
    pub base: String,
    /// What the new one is.
    pub new: String,
    /// Confidence of the intervals, and of all verdicts together, percent.
    pub confidence_percent: f64,
    /// The smallest change that matters, percent.
    pub margin_percent: f64,
    /// A row for each trial and metric.
    pub rows: Vec<VerdictRow>,
}

/// One metric of one trial.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct VerdictRow {
    /// The trial in words; the same in all rows of one trial.
    pub trial: String,
    /// The metric's name.
    pub metric: String,
    /// Unit of its values: `bit/s`, `packets/s`, `transactions/s`, `%`, `ns`, `us/KiB`, `us/transaction`; empty for a
    /// count.
    pub unit: String,
    /// The answer.
    pub judgement: Judgement,
}

/// Whether a row could be judged.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Judgement {
    /// It could.
    Judged(Judged),
    /// It could not, and why.
    Refused(String),
}

/// A comparison with its answer.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Judged {
    /// Which way the metric should go.
    pub better: Better,
    /// Median of the base's values, in their unit.
    pub base: f64,
    /// Median of the new one's values, in their unit.
    pub new: f64,
    /// How many values the base has.
    pub base_values: u64,
    /// How many values the new one has.
    pub new_values: u64,
    /// The difference, percent of base; it need not equal the ratio of the two medians.
    pub effect_percent: f64,
    /// Its interval, percent; `None` with too few values for one.
    pub interval: Option<EffectInterval>,
    /// The answer.
    pub verdict: Verdict,
    /// Not paired by block: drift between the two runs counts as change.
    pub weaker: bool,
    /// Neighbouring trials of a run are alike: the interval is too narrow.
    pub dependent: bool,
    /// One side scatters far more than the other: false alarms are more frequent than promised.
    pub uneven: bool,
    /// For [`Verdict::Undecided`]: what would settle it, where that is known.
    pub more_repeats: Option<MoreRepeats>,
}

/// Which way a metric should go.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Better {
    /// Goodput, transactions a second.
    Higher,
    /// CPU, service demand, latency.
    Lower,
}

/// An interval of an effect, percent of base.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct EffectInterval {
    /// Lower end, percent.
    pub low_percent: f64,
    /// Upper end, percent.
    pub high_percent: f64,
}

/// The answer for one comparison.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Verdict {
    /// It changed for the better, by the margin or more.
    Better,
    /// It changed for the worse, by the margin or more.
    Worse,
    /// What change there is lies within the margin.
    Same,
    /// Neither can be said.
    Undecided,
}

impl Verdict {
    /// Every verdict, most alarming first.
    pub const ALL: [Self; 4] = [Self::Worse, Self::Better, Self::Undecided, Self::Same];

    /// The word for it, the same as in JSON.
    pub fn name(self) -> &'static str {
        match self {
            Self::Better => "better",
            Self::Worse => "worse",
            Self::Same => "same",
            Self::Undecided => "undecided",
        }
    }
}

/// What it would take to settle a comparison.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum MoreRepeats {
    /// So many more repeats on each side are likely to do.
    Likely(u64),
    /// More than anyone would run.
    OutOfReach,
}

impl VerdictTable {
    /// How many rows have this verdict.
    pub fn count(&self, verdict: Verdict) -> usize {
        self.judged().filter(|judged| judged.verdict == verdict).count()
    }

    /// The rows that could be judged.
    pub fn judged(&self) -> impl Iterator<Item = &Judged> {
        self.rows.iter().filter_map(|row| match &row.judgement {
            Judgement::Judged(judged) => Some(judged),
            Judgement::Refused(_) => None,
        })
    }
}
