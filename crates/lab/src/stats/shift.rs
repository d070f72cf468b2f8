//! The permutation test of a shift, exact for any number of values, and the interval that is its inverse.
//!
//! Paired: Wilcoxon's signed-rank test, the sign-flip permutation test on ranks. Within a randomised block the sign of
//! a difference is the coin that set the order, so under "no difference" the test's error is what it says, whatever the
//! shape, drift or dependence of the noise. Unpaired: the rank-sum test of Wilcoxon, Mann and Whitney, which needs
//! independent trials and like shapes.
//!
//! Both count how many shifts (means of two differences, or differences between the two samples) lie on one side of a
//! value. Sorted, the same shifts give the estimate (their median: Hodges and Lehmann, "Estimates of location based on
//! rank tests", Ann. Math. Stat. 34, 1963) and the interval (Bauer, "Constructing confidence sets using rank
//! statistics", JASA 67, 1972), so interval and p-value never contradict each other. A shift equal to the value tested
//! counts against a decision: with ties the test errs on the safe side.

use super::confidence::Confidence;
use super::describe::sorted_quantile;
use super::distribution::normal_cdf;
use super::error::{StatsError, check};

/// Values a side at most: beyond, the list of shifts would grow out of bounds.
pub const MAX_VALUES: usize = 2_000;

/// Up to here the null distribution is counted out; beyond, it is the normal one with continuity correction.
const EXACT_PAIRS: usize = 200;
const EXACT_SIDE: usize = 50;

/// A sample (or two) prepared for tests of its shift.
#[derive(Debug, Clone)]
pub struct ShiftTest {
    /// Ascending.
    shifts: Vec<f64>,
    /// Chance of at most so many shifts beyond the true value, by that number.
    at_most: Vec<f64>,
}

impl ShiftTest {
    /// The test of differences, one a block.
    ///
    /// # Errors
    /// [`StatsError::TooFew`] for none, [`StatsError::TooMany`] above [`MAX_VALUES`], [`StatsError::NotFinite`].
    pub fn paired(differences: &[f64]) -> Result<Self, StatsError> {
        check_side("paired shift", differences)?;
        let mut shifts: Vec<f64> = differences
            .iter()
            .enumerate()
            .flat_map(|(i, a)| differences[i..].iter().map(move |b| f64::midpoint(*a, *b)))
            .collect();
        shifts.sort_by(f64::total_cmp);
        Ok(Self { shifts, at_most: signed_rank(differences.len()) })
    }

    /// The test of the shift from `base` to `new`, two independent samples.
    ///
    /// # Errors
    /// As [`ShiftTest::paired`], for either sample.
    pub fn unpaired(base: &[f64], new: &[f64]) -> Result<Self, StatsError> {
        check_side("unpaired shift", base)?;
        check_side("unpaired shift", new)?;
        let mut shifts: Vec<f64> = new.iter().flat_map(|n| base.iter().map(move |b| n - b)).collect();
        shifts.sort_by(f64::total_cmp);
        if let Some(value) = shifts.iter().copied().find(|shift| !shift.is_finite()) {
            return Err(StatsError::NotFinite { what: "unpaired shift", index: 0, value });
        }
        Ok(Self { shifts, at_most: rank_sum(base.len(), new.len()) })
    }

    /// The Hodges-Lehmann estimate of the shift.
    pub fn estimate(&self) -> f64 {
        sorted_quantile(&self.shifts, 0.5)
    }

    /// Two-sided p-value of "the shift is zero".
    pub fn p_zero(&self) -> f64 {
        (2.0 * self.p_at_or_below(0.0).min(self.p_at_or_above(0.0))).min(1.0)
    }

    /// p-value of "the shift is not within these limits" (the two one-sided tests of Schuirmann, J. Pharmacokinetics
    /// and Biopharmaceutics 15, 1987).
    pub fn p_outside(&self, low: f64, high: f64) -> f64 {
        self.p_at_or_below(low).max(self.p_at_or_above(high))
    }

    /// The interval that holds the true shift with this confidence; `None` when there are too few values for any.
    pub fn interval(&self, confidence: Confidence) -> Option<(f64, f64)> {
        let (depth, _) = self.depth(confidence.alpha() / 2.0)?;
        Some((self.shifts[depth], self.shifts[self.shifts.len() - 1 - depth]))
    }

    /// Standard error of the estimate, read off the 80 % interval or the widest there is; `None` for a single pair.
    pub(super) fn standard_error(&self) -> Option<f64> {
        let (depth, tail) = self.depth(0.1).unwrap_or((0, self.at_most[0]));
        if tail >= 0.5 {
            return None;
        }
        let half = (self.shifts[self.shifts.len() - 1 - depth] - self.shifts[depth]) / 2.0;
        Some(half / super::distribution::normal_quantile(1.0 - tail))
    }

    /// The largest count whose chance does not exceed `tail`, with its chance.
    fn depth(&self, tail: f64) -> Option<(usize, f64)> {
        let depth = self.at_most.partition_point(|chance| *chance <= tail).checked_sub(1)?;
        let depth = depth.min((self.shifts.len() - 1) / 2);
        Some((depth, self.at_most[depth]))
    }

    /// p-value of "the true shift is `limit` or less".
    fn p_at_or_below(&self, limit: f64) -> f64 {
        self.at_most[self.shifts.partition_point(|shift| *shift <= limit)]
    }

    /// p-value of "the true shift is `limit` or more".
    fn p_at_or_above(&self, limit: f64) -> f64 {
        self.at_most[self.shifts.len() - self.shifts.partition_point(|shift| *shift < limit)]
    }
}

/// The smallest p-value that `pairs` blocks can give; below it no verdict is possible.
pub fn smallest_paired_p(pairs: usize) -> f64 {
    2.0_f64.powi(1 - i32::try_from(pairs).unwrap_or(i32::MAX)).min(1.0)
}

/// The smallest p-value that two independent samples can give.
pub fn smallest_unpaired_p(base: usize, new: usize) -> f64 {
    let orders = (1..=base).fold(1.0, |orders, i| orders * (new + i) as f64 / i as f64);
    (2.0 / orders).min(1.0)
}

fn check_side(what: &'static str, values: &[f64]) -> Result<(), StatsError> {
    check(what, values, 1)?;
    if values.len() > MAX_VALUES {
        return Err(StatsError::TooMany { what, have: values.len(), limit: MAX_VALUES });
    }
    Ok(())
}

/// Distribution of the sum of the ranks 1..=n that got a plus sign, by counting out all signs.
fn signed_rank(n: usize) -> Vec<f64> {
    let most = n * (n + 1) / 2;
    if n > EXACT_PAIRS {
        let variance = most as f64 * (2 * n + 1) as f64 / 12.0;
        return normal_table(most, variance);
    }
    let mut chance = vec![0.0; most + 1];
    chance[0] = 1.0;
    for rank in 1..=n {
        for sum in (0..=rank * (rank + 1) / 2).rev() {
            let with = if sum >= rank { chance[sum - rank] } else { 0.0 };
            chance[sum] = f64::midpoint(chance[sum], with);
        }
    }
    accumulate(chance)
}

/// Distribution of the number of pairs in which the first sample's value is the larger, by counting out all orders:
/// the largest of all values belongs to either sample with a chance as its size.
fn rank_sum(first: usize, second: usize) -> Vec<f64> {
    let most = first * second;
    if first > EXACT_SIDE || second > EXACT_SIDE {
        let variance = most as f64 * (first + second + 1) as f64 / 12.0;
        return normal_table(most, variance);
    }
    // rows[i] holds the distribution for i values of the first and j of the second, j growing.
    let mut rows: Vec<Vec<f64>> = vec![vec![1.0]; first + 1];
    for j in 1..=second {
        for i in 1..=first {
            let largest_is_first = i as f64 / (i + j) as f64;
            let chance = |pairs: usize| {
                let with = pairs.checked_sub(j).and_then(|rest| rows[i - 1].get(rest)).unwrap_or(&0.0);
                let without = rows[i].get(pairs).unwrap_or(&0.0);
                largest_is_first * with + (1.0 - largest_is_first) * without
            };
            rows[i] = (0..=i * j).map(chance).collect();
        }
    }
    accumulate(rows.swap_remove(first))
}

fn normal_table(most: usize, variance: f64) -> Vec<f64> {
    let (mean, deviation) = (most as f64 / 2.0, variance.sqrt());
    (0..=most).map(|count| normal_cdf((count as f64 + 0.5 - mean) / deviation)).collect()
}

fn accumulate(mut chance: Vec<f64>) -> Vec<f64> {
    let mut sum = 0.0;
    for entry in &mut chance {
        sum += *entry;
        *entry = sum.min(1.0);
    }
    chance
}

#[cfg(test)]
mod tests {
    use super::*;

    fn level(percent: f64) -> Confidence {
        Confidence::from_percent(percent).unwrap()
    }

    /// All sign patterns, tried one by one.
    #[test]
    fn signed_rank_agrees_with_brute_force() {
        let n = 7;
        let table = signed_rank(n);
        for (limit, chance) in table.iter().enumerate() {
            let hits = (0u32..1 << n).filter(|signs| {
                (0..n).filter(|i| signs >> i & 1 == 1).map(|i| i + 1).sum::<usize>() <= limit
            });
            assert!((chance - hits.count() as f64 / 128.0).abs() < 1e-12);
        }
    }

    /// All ways to give 4 of 9 ranks to the first sample, tried one by one.
    #[test]
    fn rank_sum_agrees_with_brute_force() {
        let table = rank_sum(4, 5);
        let mut counts = [0u32; 21];
        for chosen in (0u32..1 << 9).filter(|bits| bits.count_ones() == 4) {
            let pairs: u32 = (0..9)
                .filter(|i| chosen >> i & 1 == 1)
                .map(|i| (0..i).filter(|j| chosen >> j & 1 == 0).count() as u32)
                .sum();
            counts[pairs as usize] += 1;
        }
        let mut sum = 0;
        for (pairs, count) in counts.iter().enumerate() {
            sum += count;
            assert!((table[pairs] - f64::from(sum) / 126.0).abs() < 1e-12, "{pairs}");
        }
    }

    #[test]
    fn normal_tables_continue_the_exact_ones() {
        let n = EXACT_PAIRS;
        let approximate = normal_table(n * (n + 1) / 2, (n * (n + 1) * (2 * n + 1)) as f64 / 24.0);
        let worst = signed_rank(n).iter().zip(&approximate).map(|(a, b)| (a - b).abs()).fold(0.0, f64::max);
        assert!(worst < 5e-4, "{worst}");
        let m = EXACT_SIDE;
        let approximate = normal_table(m * m, (m * m * (2 * m + 1)) as f64 / 12.0);
        let worst = rank_sum(m, m).iter().zip(&approximate).map(|(a, b)| (a - b).abs()).fold(0.0, f64::max);
        assert!(worst < 1e-3, "{worst}");
    }

    #[test]
    fn interval_and_p_value_agree() {
        let differences = [0.02, 0.05, 0.01, 0.04, 0.03, 0.06, -0.005, 0.07];
        let test = ShiftTest::paired(&differences).unwrap();
        for percent in [60.0, 80.0, 90.0, 95.0, 98.0, 99.0] {
            let excludes = test.interval(level(percent)).is_some_and(|(low, high)| low > 0.0 || high < 0.0);
            assert_eq!(excludes, test.p_zero() <= 1.0 - percent / 100.0, "{percent}");
        }
    }

    #[test]
    fn smallest_p_is_reached_when_all_agree() {
        let test = ShiftTest::paired(&[0.1; 6]).unwrap();
        assert_eq!(test.p_zero(), smallest_paired_p(6));
        let test = ShiftTest::unpaired(&[1.0, 1.1, 1.2, 1.3], &[2.0, 2.1, 2.2]).unwrap();
        assert!((test.p_zero() - smallest_unpaired_p(4, 3)).abs() < 1e-12);
        assert!((smallest_unpaired_p(4, 3) - 2.0 / 35.0).abs() < 1e-12);
    }

    #[test]
    fn too_few_values_have_no_interval() {
        assert_eq!(ShiftTest::paired(&[0.1; 5]).unwrap().interval(Confidence::P95), None);
        assert!(ShiftTest::paired(&[0.1; 6]).unwrap().interval(Confidence::P95).is_some());
        assert_eq!(ShiftTest::paired(&[0.1]).unwrap().p_zero(), 1.0);
        assert!(ShiftTest::paired(&[]).is_err());
    }

    #[test]
    fn equal_values_decide_nothing_about_zero_but_all_about_limits() {
        let test = ShiftTest::paired(&[0.0; 8]).unwrap();
        assert_eq!((test.p_zero(), test.interval(Confidence::P95)), (1.0, Some((0.0, 0.0))));
        assert!(test.p_outside(-0.01, 0.01) < 0.01);
    }

    #[test]
    fn one_outlier_does_not_move_the_estimate_far() {
        let mut differences = vec![0.03; 9];
        differences.push(-0.9);
        assert!((ShiftTest::paired(&differences).unwrap().estimate() - 0.03).abs() < 1e-9);
    }

    #[test]
    fn many_values_are_treated_and_too_many_refused() {
        let many: Vec<f64> = (0..MAX_VALUES).map(|i| (i as f64).sin()).collect();
        assert!(ShiftTest::paired(&many).unwrap().p_zero() > 0.05);
        assert!(matches!(ShiftTest::paired(&vec![0.0; MAX_VALUES + 1]), Err(StatsError::TooMany { .. })));
    }
}
