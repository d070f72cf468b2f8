//! What a run is going to do: combinations of levels, in which order, and when it is enough.

use linerate_model::event::Event;
use linerate_model::experiment::LeftOut;
use linerate_model::trial::{Amount, Trial};
use serde::{Deserialize, Serialize};

use crate::stats::schedule::block_order;

/// Opening, draining and reading of a trial, as seen on veth.
const OVERHEAD_NS: u64 = 150_000_000;

/// The plan of a run. It is stored with the run, so that an interrupted one can go on.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Plan {
    /// Every combination of levels once, with repeat 0, in the order that reports show.
    pub combinations: Vec<Trial>,
    /// Seed of the order within each block; below 2^53, so that every reader of JSON keeps it whole.
    pub seed: u64,
    /// When it is enough.
    pub repeats: Repeats,
    /// Pause after a setting changed, nanoseconds.
    pub settle_ns: u64,
    /// A combination whose settings a node refuses is left out, rather than the run given up.
    #[serde(default)]
    pub skip_refused: bool,
    /// Metrics that an A/B run is decided by; empty is the usual ones.
    #[serde(default)]
    pub metrics: Vec<String>,
    /// What was left out before or at the rehearsal; what is named before it is not in `combinations`.
    #[serde(default)]
    pub left_out: Vec<LeftOut>,
}

/// When a run is enough.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Repeats {
    /// After so many blocks.
    Fixed(u32),
    /// When the intervals are narrow.
    Until(Until),
    /// When the two levels of one factor are told apart, or the budget is spent.
    Decide(Decide),
}

/// `--confidence 95 --width 2% --min-repeat 6 --max-repeat 30`.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Until {
    /// Percent.
    pub confidence_percent: f64,
    /// Longer half of the interval over the median: 0.02 for 2 %.
    pub width: f64,
    /// Fewest blocks.
    pub min: u32,
    /// Most blocks.
    pub max: u32,
}

/// `linerate ab`: blocks until every metric is decided.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Decide {
    /// Percent.
    pub confidence_percent: f64,
    /// The smallest change that matters: 0.01 for 1 %.
    pub margin: f64,
    /// Time that may be spent, nanoseconds.
    pub budget_ns: u64,
    /// Rows that are judged together.
    pub comparisons: u32,
}

impl Plan {
    /// The combinations of one block, in the order in which they run.
    pub fn order(&self, block: u32) -> Vec<usize> {
        block_order(self.combinations.len(), block, self.seed)
    }

    /// The trial of a combination in a block.
    pub fn trial(&self, combination: usize, block: u32) -> Trial {
        Trial { repeat: block, ..self.combinations[combination].clone() }
    }

    /// How many blocks there are at most; `None` where only a budget ends the run.
    pub fn most_blocks(&self) -> Option<u32> {
        match self.repeats {
            Repeats::Fixed(blocks) => Some(blocks),
            Repeats::Until(until) => Some(until.max),
            Repeats::Decide(_) => None,
        }
    }

    /// How many blocks run in any case.
    pub fn fewest_blocks(&self) -> u32 {
        match self.repeats {
            Repeats::Fixed(blocks) => blocks,
            Repeats::Until(until) => until.min.max(6).min(until.max),
            Repeats::Decide(_) => 1,
        }
    }

    /// How long one block takes if all goes well, nanoseconds; `None` where counts end its trials.
    pub fn block_ns(&self) -> Option<u64> {
        let changes = self.combinations.iter().any(|t| !t.settings.is_empty());
        let settle_ns = if changes { self.settle_ns } else { 0 };
        self.combinations.iter().map(|t| trial_ns(t).map(|ns| ns + settle_ns)).sum()
    }

    /// What a progress bar needs to know before the first trial.
    pub fn announcement(&self, done: usize) -> Event {
        let blocks = match self.repeats {
            Repeats::Until(until) => until.min,
            _ => self.fewest_blocks(),
        };
        let trials = (self.combinations.len() * blocks as usize).saturating_sub(done);
        let each_ns = self.block_ns().map(|ns| ns / self.combinations.len().max(1) as u64);
        let expected_ns = match self.repeats {
            Repeats::Decide(decide) => Some(decide.budget_ns),
            _ => each_ns.map(|ns| ns * trials as u64),
        };
        Event::Planned { trials, expected_ns }
    }
}

/// How long a trial takes if all goes well, nanoseconds; `None` where a count ends it.
pub fn trial_ns(trial: &Trial) -> Option<u64> {
    match trial.amount {
        Amount::DurationNs(ns) => Some(ns + trial.warmup_ns + OVERHEAD_NS),
        Amount::Bytes(_) | Amount::Transactions(_) | Amount::Whole => None,
    }
}
