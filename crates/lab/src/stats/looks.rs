//! Looking at the data more than once, for `linerate ab`: it judges after some blocks and runs on while undecided.
//!
//! Judging at 95 % after every block would raise false alarms far above 5 %. So there are few looks, at a growing
//! number of blocks, and look k may err with 1/(k(k+1)) of the allowed error: the shares sum to less than one for any
//! number of looks, so the promise holds wherever the budget ends (union bound; alpha spending after Lan and DeMets,
//! "Discrete sequential boundaries for clinical trials", Biometrika 70, 1983).

use serde::{Deserialize, Serialize};

use super::confidence::Confidence;
use super::error::StatsError;
use super::shift::smallest_paired_p;

/// When to look, and at what confidence.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct LookPlan {
    confidence: Confidence,
    first: u32,
}

/// One look at the data.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Look {
    /// From 1.
    pub number: u32,
    /// Blocks that are to be finished by then.
    pub blocks: u32,
    /// Confidence to judge at (for the [`super::compare::Rule`]), stricter than the plan's.
    pub confidence: Confidence,
}

impl LookPlan {
    /// A plan for a table of so many comparisons: the first look comes with the fewest blocks that can decide a single
    /// row of it.
    ///
    /// # Errors
    /// [`StatsError::OutOfRange`] for an empty table.
    pub fn new(confidence: Confidence, comparisons: usize) -> Result<Self, StatsError> {
        if comparisons == 0 {
            return Err(StatsError::OutOfRange { what: "comparisons", value: 0.0, allowed: "at least 1" });
        }
        let needed = look_confidence(confidence, 1).alpha() / comparisons as f64;
        let first = (1..1_024).find(|blocks| smallest_paired_p(*blocks) <= needed).unwrap_or(1_024);
        Ok(Self { confidence, first: first as u32 })
    }

    /// All looks, without end; each with half as many blocks again as the one before.
    pub fn looks(self) -> impl Iterator<Item = Look> {
        let blocks = std::iter::successors(Some(self.first), |blocks| blocks.checked_add(blocks.div_ceil(2)));
        (1..).zip(blocks).map(move |(number, blocks)| Look {
            number,
            blocks,
            confidence: look_confidence(self.confidence, number),
        })
    }

    /// The look that is due when exactly so many blocks are finished.
    pub fn due(self, blocks: u32) -> Option<Look> {
        self.looks().take_while(|look| look.blocks <= blocks).find(|look| look.blocks == blocks)
    }

    /// The look to take when the budget ends after so many blocks: the one that would have come next, taken early.
    pub fn last(self, blocks: u32) -> Look {
        let passed = self.looks().take_while(|look| look.blocks <= blocks).count() as u32;
        Look { number: passed + 1, blocks, confidence: look_confidence(self.confidence, passed + 1) }
    }
}

fn look_confidence(confidence: Confidence, number: u32) -> Confidence {
    confidence.split(f64::from(number) * f64::from(number + 1))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_looks_together_keep_the_promise() {
        let plan = LookPlan::new(Confidence::P95, 3).unwrap();
        let spent: f64 = plan.looks().take(20).map(|look| look.confidence.alpha()).sum();
        assert!(spent <= 0.05 && spent > 0.045, "{spent}");
    }

    #[test]
    fn looks_grow_and_are_due_once() {
        let plan = LookPlan::new(Confidence::P95, 3).unwrap();
        let blocks: Vec<u32> = plan.looks().take(5).map(|look| look.blocks).collect();
        assert_eq!(blocks, [8, 12, 18, 27, 41]);
        let due: Vec<u32> = (0..45).filter_map(|blocks| plan.due(blocks)).map(|look| look.number).collect();
        assert_eq!(due, [1, 2, 3, 4, 5]);
        assert_eq!((plan.last(20).number, plan.last(20).blocks, plan.last(3).number), (4, 20, 1));
    }

    #[test]
    fn an_empty_table_has_no_plan() {
        assert!(LookPlan::new(Confidence::P95, 0).is_err());
    }
}
