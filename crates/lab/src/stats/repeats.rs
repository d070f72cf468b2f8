//! How many more repeats are likely to settle an undecided comparison.
//!
//! The interval shrinks with the square root of the number of repeats. If the estimate is beyond the margin, it has to
//! shrink until it leaves zero; if the estimate is within, until it fits within the margin. "Likely" means with a chance
//! of about 80 %, should the estimate and the spread seen so far be the true ones.

use serde::{Deserialize, Serialize};

use super::confidence::Confidence;
use super::distribution::normal_quantile;
use super::shift::{ShiftTest, smallest_paired_p, smallest_unpaired_p};

/// Beyond so many repeats in all, a number would be a fancy: the estimate sits on the margin or the noise is too large.
pub const MOST_REPEATS: usize = 1_000;

const POWER: f64 = 0.8;

/// What it would take to settle a comparison.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum MoreRepeats {
    /// So many more blocks (paired), or more trials on each side (unpaired).
    Likely(usize),
    /// More than [`MOST_REPEATS`] in all.
    OutOfReach,
}

/// How the values of a comparison are counted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Counts {
    Paired(usize),
    Unpaired(usize, usize),
}

/// The number for a comparison with this test, to be decided at this (corrected) level against these limits.
pub(super) fn more_repeats(
    test: &ShiftTest,
    counts: Counts,
    level: Confidence,
    limits: (f64, f64),
) -> MoreRepeats {
    let floor = floor_repeats(counts, level.alpha());
    let spread = spread_repeats(test, counts, level, limits);
    let (Some(floor), Some(spread)) = (floor, spread) else { return MoreRepeats::OutOfReach };
    MoreRepeats::Likely(floor.max(spread).max(1)).within(counts.fewest())
}

impl MoreRepeats {
    fn within(self, have: usize) -> Self {
        match self {
            Self::Likely(more) if have + more <= MOST_REPEATS => self,
            _ => Self::OutOfReach,
        }
    }
}

impl Counts {
    fn fewest(self) -> usize {
        match self {
            Self::Paired(pairs) => pairs,
            Self::Unpaired(base, new) => base.min(new),
        }
    }

    fn smallest_p(self, more: usize) -> f64 {
        match self {
            Self::Paired(pairs) => smallest_paired_p(pairs + more),
            Self::Unpaired(base, new) => smallest_unpaired_p(base + more, new + more),
        }
    }
}

/// Repeats still missing before the permutation test can reach this p-value at all.
fn floor_repeats(counts: Counts, alpha: f64) -> Option<usize> {
    (0..=MOST_REPEATS).find(|more| counts.smallest_p(*more) <= alpha)
}

/// Repeats still missing by the spread seen; `None` for more than there is a number for.
fn spread_repeats(test: &ShiftTest, counts: Counts, level: Confidence, limits: (f64, f64)) -> Option<usize> {
    // A single pair tells nothing about spread: then only the floor speaks.
    let Some(error) = test.standard_error() else { return Some(0) };
    let estimate = test.estimate();
    let within = limits.0 < estimate && estimate < limits.1;
    let room = if within { (estimate - limits.0).min(limits.1 - estimate) } else { estimate.abs() };
    let needed_error = room / (normal_quantile(1.0 - level.alpha() / 2.0) + normal_quantile(POWER));
    let growth = (error / needed_error).powi(2);
    if error == 0.0 {
        return Some(0);
    }
    if !growth.is_finite() || growth > MOST_REPEATS as f64 {
        return None;
    }
    // Unpaired, both sides grow by the same number: solve (1/b + 1/n) = (1/(b+x) + 1/(n+x)) * growth by stepping.
    let (base, new) = match counts {
        Counts::Paired(pairs) => (pairs, pairs),
        Counts::Unpaired(base, new) => (base, new),
    };
    let inverse = |more: usize| 1.0 / (base + more) as f64 + 1.0 / (new + more) as f64;
    (0..=MOST_REPEATS).find(|more| inverse(*more) * growth <= inverse(0))
}

#[cfg(test)]
mod tests {
    use super::*;

    const MARGIN: (f64, f64) = (-0.01, 0.01);

    fn paired(differences: &[f64]) -> MoreRepeats {
        let test = ShiftTest::paired(differences).unwrap();
        more_repeats(&test, Counts::Paired(differences.len()), Confidence::P95, MARGIN)
    }

    #[test]
    fn too_few_blocks_ask_for_the_floor() {
        assert_eq!(paired(&[0.05]), MoreRepeats::Likely(5));
        assert_eq!(paired(&[0.05, 0.0501, 0.0502]), MoreRepeats::Likely(3));
    }

    #[test]
    fn twice_the_noise_asks_for_four_times_the_repeats() {
        let shape = [-1.6, -1.0, -0.7, -0.4, -0.1, 0.1, 0.4, 0.7, 1.0, 1.6];
        let total = |noise: f64| match paired(&shape.map(|x| 0.03 + noise * x)) {
            MoreRepeats::Likely(more) => more + shape.len(),
            MoreRepeats::OutOfReach => panic!("out of reach"),
        };
        let ratio = total(0.2) as f64 / total(0.1) as f64;
        assert!((3.8..4.2).contains(&ratio), "{ratio}");
    }

    #[test]
    fn hopeless_noise_is_out_of_reach() {
        assert_eq!(paired(&[-1.0, 1.1, -0.9, 1.0, -1.1, 0.9]), MoreRepeats::OutOfReach);
    }

    #[test]
    fn json_names_the_number() {
        assert_eq!(serde_json::to_string(&MoreRepeats::Likely(4)).unwrap(), r#"{"likely":4}"#);
        assert_eq!(serde_json::to_string(&MoreRepeats::OutOfReach).unwrap(), r#""out_of_reach""#);
    }
}
