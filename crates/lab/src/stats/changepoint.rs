//! Change points in a series, for `linerate trend`: E-divisive with permutation test (Matteson and James, "A
//! nonparametric approach for multiple change point analysis of multivariate data", JASA 109, 2014), as used on
//! performance histories by `MongoDB` (Daly et al., "The use of change point detection to identify software performance
//! regressions in a continuous integration system", ICPE 2020).
//!
//! It asks for no shape of the noise and no number of changes. The series is split where the energy distance between
//! both sides is largest, over all segments found so far, until the best split is no better than what random order
//! within the segments gives. Time grows with the square of the length times the permutations.

use serde::{Deserialize, Serialize};

use super::describe::median;
use super::error::{StatsError, check};
use super::random::Generator;

/// Longest series: beyond, time and memory (its square) get out of hand; give the newest part.
pub const MAX_LENGTH: usize = 1_000;

/// How sure a change has to be.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct ChangeRule {
    /// Chance of marking a change in a series that has none.
    pub significance: f64,
    /// Shortest stretch between changes, values; at least 2.
    pub min_segment: usize,
    /// Random orders to hold a split against.
    pub permutations: u32,
    /// Recorded seed of those orders.
    pub seed: u64,
}

impl ChangeRule {
    /// 1 % significance, stretches of five values or more, 499 permutations.
    pub fn seeded(seed: u64) -> Self {
        Self { significance: 0.01, min_segment: 5, permutations: 499, seed }
    }
}

/// A place where the series changed.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct ChangePoint {
    /// Position of the first value after the change, from 0.
    pub index: usize,
    /// Median from the previous change (or the start) to here, in the unit of the values.
    pub before: f64,
    /// Median from here to the next change (or the end).
    pub after: f64,
    /// The difference, percent of before; `None` when that is zero.
    pub effect_percent: Option<f64>,
    /// Share of random orders that split at least as well.
    pub p: f64,
}

/// Finds the changes, in order of position. A series too short for two stretches has none.
///
/// # Errors
/// [`StatsError::NotFinite`], [`StatsError::TooMany`] above [`MAX_LENGTH`], [`StatsError::OutOfRange`] for a rule whose
/// significance its permutations cannot show, or with stretches below 2.
pub fn change_points(values: &[f64], rule: &ChangeRule) -> Result<Vec<ChangePoint>, StatsError> {
    check("change points", values, 0)?;
    if values.len() > MAX_LENGTH {
        return Err(StatsError::TooMany { what: "change points", have: values.len(), limit: MAX_LENGTH });
    }
    rule.check()?;
    let mut generator = Generator::new(rule.seed);
    let mut found: Vec<(usize, f64)> = Vec::new();
    let mut segments =
        vec![Segment { start: 0, end: values.len(), split: best_split(values, rule.min_segment) }];
    while let Some(best) = segments.iter().filter_map(|s| s.split.map(|split| (*s, split))).max_by(by_gain) {
        let (segment, split) = best;
        let Some(p) = permutation_p(values, &segments, split.gain, rule, &mut generator) else { break };
        let middle = segment.start + split.at;
        found.push((middle, p));
        segments.retain(|other| other.start != segment.start);
        for (start, end) in [(segment.start, middle), (middle, segment.end)] {
            segments.push(Segment { start, end, split: best_split(&values[start..end], rule.min_segment) });
        }
    }
    found.sort_by_key(|(index, _)| *index);
    describe_changes(values, &found)
}

impl ChangeRule {
    fn check(&self) -> Result<(), StatsError> {
        if self.min_segment < 2 {
            let value = self.min_segment as f64;
            return Err(StatsError::OutOfRange { what: "shortest stretch", value, allowed: "2 and more" });
        }
        let finest = 1.0 / (f64::from(self.permutations) + 1.0);
        if (finest..1.0).contains(&self.significance) {
            return Ok(());
        }
        Err(StatsError::OutOfRange {
            what: "significance",
            value: self.significance,
            allowed: "from 1/(permutations + 1) to below 1",
        })
    }
}

#[derive(Debug, Clone, Copy)]
struct Segment {
    start: usize,
    end: usize,
    split: Option<Split>,
}

#[derive(Debug, Clone, Copy)]
struct Split {
    /// First position of the right side.
    at: usize,
    /// Scaled energy distance of the two sides.
    gain: f64,
}

fn by_gain(a: &(Segment, Split), b: &(Segment, Split)) -> std::cmp::Ordering {
    a.1.gain.total_cmp(&b.1.gain)
}

/// The best split of a stretch: over all positions and all ends of the right side, so that a change is not hidden by
/// another one that undoes it. `None` when the stretch is too short or has no differences.
fn best_split(values: &[f64], min_segment: usize) -> Option<Split> {
    let count = values.len();
    if count < 2 * min_segment {
        return None;
    }
    let sums = DistanceSums::new(values);
    let mut best: Option<Split> = None;
    for at in min_segment..=count - min_segment {
        for end in at + min_segment..=count {
            let gain = sums.energy(at, end);
            if gain > best.map_or(0.0, |split| split.gain) {
                best = Some(Split { at, gain });
            }
        }
    }
    best
}

/// Sums of |x_i - x_j| over all i < a, j < b, so that any split costs a few additions.
struct DistanceSums {
    width: usize,
    sums: Vec<f64>,
}

impl DistanceSums {
    fn new(values: &[f64]) -> Self {
        let width = values.len() + 1;
        let mut sums = vec![0.0; width * width];
        for (i, a) in values.iter().enumerate() {
            let mut row = 0.0;
            for (j, b) in values.iter().enumerate() {
                row += (a - b).abs();
                sums[(i + 1) * width + j + 1] = sums[i * width + j + 1] + row;
            }
        }
        Self { width, sums }
    }

    /// Scaled energy distance between the values before `at` and those from `at` to before `end`.
    fn energy(&self, at: usize, end: usize) -> f64 {
        let sum = |a: usize, b: usize| self.sums[a * self.width + b];
        let (left, right) = (at as f64, (end - at) as f64);
        let within_left = sum(at, at);
        let across = sum(at, end) - within_left;
        let within_right = sum(end, end) - 2.0 * sum(at, end) + within_left;
        let distance = 2.0 * across / (left * right)
            - within_left / (left * (left - 1.0))
            - within_right / (right * (right - 1.0));
        left * right / (left + right) * distance
    }
}

/// The share of random orders within the segments whose best split is at least as good; `None` as soon as it is too
/// large to matter (Besag and Clifford, "Sequential Monte Carlo p-values", Biometrika 78, 1991).
fn permutation_p(
    values: &[f64],
    segments: &[Segment],
    gain: f64,
    rule: &ChangeRule,
    generator: &mut Generator,
) -> Option<f64> {
    let orders = f64::from(rule.permutations) + 1.0;
    let mut as_good = 1.0;
    let mut shuffled = values.to_vec();
    for _ in 0..rule.permutations {
        let rivals = segments.iter().any(|segment| {
            let part = &mut shuffled[segment.start..segment.end];
            generator.shuffle(part);
            best_split(part, rule.min_segment).is_some_and(|split| split.gain >= gain)
        });
        if rivals {
            as_good += 1.0;
        }
        if as_good / orders > rule.significance {
            return None;
        }
    }
    Some(as_good / orders)
}

fn describe_changes(values: &[f64], found: &[(usize, f64)]) -> Result<Vec<ChangePoint>, StatsError> {
    let starts = std::iter::once(0).chain(found.iter().map(|(index, _)| *index));
    let ends = found.iter().skip(1).map(|(index, _)| *index).chain(std::iter::once(values.len()));
    let around = starts.zip(ends);
    around
        .zip(found)
        .map(|((start, end), &(index, p))| {
            let (before, after) = (median(&values[start..index])?, median(&values[index..end])?);
            let effect = (after - before) / before.abs() * 100.0;
            let effect_percent = Some(effect).filter(|effect| effect.is_finite());
            Ok(ChangePoint { index, before, after, effect_percent, p })
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn noise(generator: &mut Generator) -> f64 {
        (0..12).map(|_| generator.unit()).sum::<f64>() - 6.0
    }

    fn series(levels: &[(usize, f64)], seed: u64) -> Vec<f64> {
        let mut generator = Generator::new(seed);
        levels
            .iter()
            .flat_map(|(count, level)| vec![*level; *count])
            .map(|x| x + noise(&mut generator))
            .collect()
    }

    #[test]
    fn finds_a_step_where_it_is() {
        let found = change_points(&series(&[(30, 100.0), (30, 97.0)], 1), &ChangeRule::seeded(1)).unwrap();
        assert_eq!(found.len(), 1, "{found:?}");
        assert!((29..=31).contains(&found[0].index), "{found:?}");
        assert!((found[0].effect_percent.unwrap() + 3.0).abs() < 1.0 && found[0].p <= 0.01);
    }

    #[test]
    fn finds_a_dip_that_is_undone() {
        let values = series(&[(30, 100.0), (12, 96.0), (30, 100.0)], 2);
        let found = change_points(&values, &ChangeRule::seeded(1)).unwrap();
        let places: Vec<usize> = found.iter().map(|change| change.index).collect();
        assert_eq!(places.len(), 2, "{found:?}");
        assert!(places[0].abs_diff(30) <= 1 && places[1].abs_diff(42) <= 1, "{found:?}");
        assert!(found[0].after < found[0].before && found[1].after > found[1].before);
    }

    #[test]
    fn a_level_series_an_equal_one_and_a_short_one_have_none() {
        let rule = ChangeRule::seeded(1);
        assert!(change_points(&series(&[(60, 100.0)], 5), &rule).unwrap().is_empty());
        assert!(change_points(&[5.0; 40], &rule).unwrap().is_empty());
        assert!(change_points(&[1.0, 9.0, 1.0], &rule).unwrap().is_empty());
        assert!(change_points(&[], &rule).unwrap().is_empty());
    }

    #[test]
    fn one_outlier_is_not_a_change() {
        let mut values = series(&[(40, 100.0)], 4);
        values[20] = 60.0;
        assert!(change_points(&values, &ChangeRule::seeded(1)).unwrap().is_empty());
    }

    #[test]
    fn a_step_from_zero_has_no_percentage() {
        let values: Vec<f64> = (0..40).map(|i| if i < 20 { 0.0 } else { 5.0 }).collect();
        let found = change_points(&values, &ChangeRule::seeded(1)).unwrap();
        assert_eq!((found.len(), found[0].index, found[0].effect_percent), (1, 20, None));
    }

    #[test]
    fn energy_agrees_with_its_definition() {
        let values = [1.0, 4.0, 2.0, 9.0, 7.0, 8.0, 3.0];
        let (at, end) = (3, 6);
        let (left, right) = (&values[..at], &values[at..end]);
        let mean = |a: &[f64], b: &[f64], pairs: f64| {
            a.iter().flat_map(|x| b.iter().map(move |y| (x - y).abs())).sum::<f64>() / pairs
        };
        let expected = 1.5 * (2.0 * mean(left, right, 9.0) - mean(left, left, 6.0) - mean(right, right, 6.0));
        assert!((DistanceSums::new(&values).energy(at, end) - expected).abs() < 1e-12);
    }

    #[test]
    fn refuses_what_it_cannot_show() {
        let rule = ChangeRule::seeded(1);
        assert!(change_points(&[1.0; 9], &ChangeRule { significance: 0.001, ..rule }).is_err());
        assert!(change_points(&[1.0; 9], &ChangeRule { min_segment: 1, ..rule }).is_err());
        assert!(change_points(&[f64::NAN], &rule).is_err());
        assert!(matches!(change_points(&vec![0.0; MAX_LENGTH + 1], &rule), Err(StatsError::TooMany { .. })));
    }
}
