//! Verdicts: what changed from base to new, by how much, and how sure that is.
//!
//! The effect is a shift of the logarithm, shown as a percentage: a ratio of levels that one odd trial does not move.
//! Test and interval come from [`super::shift`]; the table's verdicts are corrected with Holm's procedure, once for
//! "it changed" and once for "it is the same".

use serde::{Deserialize, Serialize};

use super::confidence::Confidence;
use super::describe::{autocorrelation, mad, median};
use super::error::{StatsError, logarithms};
use super::holm::{holm, holm_divisors};
use super::repeats::{Counts, MoreRepeats, more_repeats};
use super::shift::ShiftTest;

/// Which way a metric should go.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Direction {
    /// Goodput, transactions a second.
    HigherIsBetter,
    /// CPU, service demand, latency.
    LowerIsBetter,
}

/// How base and new values belong together.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Pairing {
    /// Value i of both ran in the same randomised block.
    ByBlock,
    /// Two separate runs: drift between them cannot be told from a change.
    Separate,
}

/// One metric of one trial, measured repeatedly under base and under new.
#[derive(Debug, Clone, PartialEq)]
pub struct Comparison<'a> {
    /// Which way is better.
    pub direction: Direction,
    /// Values under base, above zero, in the order they ran.
    pub base: &'a [f64],
    /// Values under new, above zero, in the order they ran.
    pub new: &'a [f64],
    /// How they belong together.
    pub pairing: Pairing,
}

/// What a verdict is held against.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Rule {
    /// Confidence of intervals, and of the whole table's verdicts.
    pub confidence: Confidence,
    /// The smallest change that matters, as a share (0.01 for 1 %); from 0 to below 1.
    pub margin: f64,
}

/// The answer for one comparison.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Verdict {
    /// It changed for the better: zero is excluded and the estimate is at least the margin.
    Better,
    /// It changed for the worse: zero is excluded and the estimate is at least the margin.
    Worse,
    /// The whole interval lies within the margin.
    Same,
    /// Neither can be said.
    Undecided,
}

/// An interval of the effect, percent.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct PercentRange {
    /// Lower end, percent.
    pub low: f64,
    /// Upper end, percent.
    pub high: f64,
}

/// A comparison with its answer.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Compared {
    /// Median of the base values, in their unit.
    pub base: f64,
    /// Median of the new values, in their unit.
    pub new: f64,
    /// The difference, percent of base (Hodges-Lehmann; it need not equal the ratio of the two medians).
    pub effect_percent: f64,
    /// Its interval at the rule's confidence, for this comparison alone; `None` with too few values for one.
    pub interval: Option<PercentRange>,
    /// Its interval at the level that Holm's correction left for this comparison; what `Better` and `Worse` rest on.
    pub corrected_interval: Option<PercentRange>,
    /// p-value of "no difference".
    pub p: f64,
    /// The same, corrected over the table; at most 1 - confidence for `Better` and `Worse`.
    pub p_corrected: f64,
    /// p-value of "beyond the margin", corrected over the table; at most half of 1 - confidence for `Same`.
    pub p_beyond_margin_corrected: f64,
    /// The answer.
    pub verdict: Verdict,
    /// The whole corrected interval lies on or beyond the margin: not only changed, but surely by that much.
    pub surely_beyond_margin: bool,
    /// Not paired by block: drift between the runs counts as change.
    pub weaker: bool,
    /// Neighbouring trials of a separate run are alike (lag-1 autocorrelation beyond 1.96/sqrt(n) on either side): the
    /// interval is too narrow. Always false when paired, where it does no harm.
    pub dependent: bool,
    /// Separate runs, of which one scatters more than twice as much as the other (median absolute deviation of the
    /// logarithms): false alarms are more frequent than promised, most of all when the quieter one has more trials.
    pub uneven: bool,
    /// For `Undecided`: how many more repeats are likely to settle it.
    pub more_repeats: Option<MoreRepeats>,
}

/// Judges a table of comparisons together. A row that cannot be judged is an error in its place and does not count for
/// the correction; the others are judged all the same.
///
/// # Errors
/// [`StatsError::OutOfRange`] for the margin. Within a row: [`StatsError::TooFew`] for an empty side,
/// [`StatsError::NotPositive`], [`StatsError::NotFinite`], [`StatsError::UnequalPairs`], [`StatsError::TooMany`].
pub fn compare(
    table: &[Comparison<'_>],
    rule: &Rule,
) -> Result<Vec<Result<Compared, StatsError>>, StatsError> {
    let limits = rule.limits()?;
    let tests: Vec<Result<ShiftTest, StatsError>> = table.iter().map(Comparison::test).collect();
    let good = || tests.iter().flatten();
    let p_zero: Vec<f64> = good().map(ShiftTest::p_zero).collect();
    let p_outside: Vec<f64> = good().map(|test| test.p_outside(limits.0, limits.1)).collect();
    let alpha = rule.confidence.alpha();
    let same_divisors = holm_divisors(&p_outside, alpha / 2.0);
    let mut corrections = holm_divisors(&p_zero, alpha)
        .into_iter()
        .zip(same_divisors)
        .zip(p_zero.iter().copied().zip(holm(&p_zero)).zip(holm(&p_outside)))
        .map(|((divisor, same_divisor), ((p, p_corrected), p_beyond_margin_corrected))| Correction {
            level: rule.confidence.split(divisor as f64),
            open_level: rule.confidence.split(divisor.max(same_divisor) as f64),
            p,
            p_corrected,
            p_beyond_margin_corrected,
        });
    let rows = tests.into_iter().zip(table).map(|(test, comparison)| {
        let test = test?;
        let correction = corrections.next().expect("one correction for each good test");
        judge(comparison, &test, rule, limits, &correction)
    });
    Ok(rows.collect())
}

/// What the rest of the table does to one comparison.
struct Correction {
    level: Confidence,
    open_level: Confidence,
    p: f64,
    p_corrected: f64,
    p_beyond_margin_corrected: f64,
}

fn judge(
    comparison: &Comparison<'_>,
    test: &ShiftTest,
    rule: &Rule,
    limits: (f64, f64),
    correction: &Correction,
) -> Result<Compared, StatsError> {
    let estimate = test.estimate();
    let alpha = rule.confidence.alpha();
    let matters = estimate <= limits.0 || limits.1 <= estimate;
    let verdict = if correction.p_beyond_margin_corrected <= alpha / 2.0 {
        Verdict::Same
    } else if correction.p_corrected <= alpha && matters {
        comparison.direction.verdict(estimate)
    } else {
        Verdict::Undecided
    };
    let corrected = test.interval(correction.level);
    let decided = matches!(verdict, Verdict::Better | Verdict::Worse);
    let beyond = corrected.is_some_and(|(low, high)| high <= limits.0 || limits.1 <= low);
    let more = || more_repeats(test, comparison.counts(), correction.open_level, limits);
    Ok(Compared {
        base: median(comparison.base)?,
        new: median(comparison.new)?,
        effect_percent: percent(estimate),
        interval: test.interval(rule.confidence).map(PercentRange::of_logarithms),
        corrected_interval: corrected.map(PercentRange::of_logarithms),
        p: correction.p,
        p_corrected: correction.p_corrected,
        p_beyond_margin_corrected: correction.p_beyond_margin_corrected,
        verdict,
        surely_beyond_margin: decided && beyond,
        weaker: comparison.pairing == Pairing::Separate,
        dependent: comparison.dependent(),
        uneven: comparison.uneven()?,
        more_repeats: (verdict == Verdict::Undecided).then(more),
    })
}

impl Comparison<'_> {
    fn test(&self) -> Result<ShiftTest, StatsError> {
        let base = logarithms("base values", self.base, 1)?;
        let new = logarithms("new values", self.new, 1)?;
        if self.pairing == Pairing::Separate {
            return ShiftTest::unpaired(&base, &new);
        }
        if base.len() != new.len() {
            return Err(StatsError::UnequalPairs { base: base.len(), new: new.len() });
        }
        let differences: Vec<f64> = new.iter().zip(&base).map(|(new, base)| new - base).collect();
        ShiftTest::paired(&differences)
    }

    fn counts(&self) -> Counts {
        match self.pairing {
            Pairing::ByBlock => Counts::Paired(self.base.len()),
            Pairing::Separate => Counts::Unpaired(self.base.len(), self.new.len()),
        }
    }

    fn dependent(&self) -> bool {
        let suspicious = |values: &[f64]| {
            autocorrelation(values).is_ok_and(|lag1| lag1.abs() > 1.96 / (values.len() as f64).sqrt())
        };
        self.pairing == Pairing::Separate && (suspicious(self.base) || suspicious(self.new))
    }

    fn uneven(&self) -> Result<bool, StatsError> {
        let base = mad(&logarithms("base values", self.base, 1)?)?;
        let new = mad(&logarithms("new values", self.new, 1)?)?;
        Ok(self.pairing == Pairing::Separate && base.max(new) > 2.0 * base.min(new))
    }
}

impl Rule {
    /// The margin as limits of a log ratio.
    fn limits(&self) -> Result<(f64, f64), StatsError> {
        if (0.0..1.0).contains(&self.margin) {
            return Ok(((-self.margin).ln_1p(), self.margin.ln_1p()));
        }
        Err(StatsError::OutOfRange { what: "margin", value: self.margin, allowed: "0 to below 1" })
    }
}

impl Direction {
    fn verdict(self, change: f64) -> Verdict {
        if (change > 0.0) == (self == Self::HigherIsBetter) { Verdict::Better } else { Verdict::Worse }
    }
}

impl PercentRange {
    fn of_logarithms((low, high): (f64, f64)) -> Self {
        Self { low: percent(low), high: percent(high) }
    }
}

/// A log ratio as a percentage; held below the largest double, so that no input makes it infinite.
fn percent(log_ratio: f64) -> f64 {
    (log_ratio.exp_m1() * 100.0).min(f64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    const RULE: Rule = Rule { confidence: Confidence::P95, margin: 0.01 };
    const BASE: [f64; 8] = [100.0, 101.0, 99.5, 100.4, 99.1, 100.9, 100.2, 99.8];

    fn scaled(factors: [f64; 8]) -> Vec<f64> {
        BASE.iter().zip(factors).map(|(base, factor)| base * factor).collect()
    }

    fn one(direction: Direction, new: &[f64], pairing: Pairing) -> Compared {
        let table = [Comparison { direction, base: &BASE, new, pairing }];
        compare(&table, &RULE).unwrap().remove(0).unwrap()
    }

    #[test]
    fn direction_turns_the_verdict() {
        let more = scaled([1.03, 1.031, 1.029, 1.032, 1.03, 1.028, 1.03, 1.031]);
        let up = one(Direction::HigherIsBetter, &more, Pairing::ByBlock);
        let down = one(Direction::LowerIsBetter, &more, Pairing::ByBlock);
        assert_eq!((up.verdict, down.verdict), (Verdict::Better, Verdict::Worse));
        assert!((up.effect_percent - 3.0).abs() < 0.1 && up.surely_beyond_margin && !up.weaker);
        assert_eq!(up.more_repeats, None);
    }

    #[test]
    fn a_real_but_small_change_is_the_same_within_the_margin() {
        let slightly = scaled([1.004, 1.003, 1.005, 1.004, 1.004, 1.003, 1.005, 1.004]);
        let compared = one(Direction::HigherIsBetter, &slightly, Pairing::ByBlock);
        assert_eq!(compared.verdict, Verdict::Same);
        assert!(compared.p < 0.05 && !compared.surely_beyond_margin);
    }

    #[test]
    fn a_change_below_the_margin_is_not_called_worse() {
        let table = scaled([0.993, 0.986, 0.995, 0.985, 0.998, 0.999, 0.989, 0.994]);
        let compared = one(Direction::HigherIsBetter, &table, Pairing::ByBlock);
        assert!(compared.p < 0.05 && compared.effect_percent > -1.0);
        assert_eq!(compared.verdict, Verdict::Undecided);
        assert!(compared.more_repeats.is_some());
    }

    #[test]
    fn separate_runs_are_weaker() {
        let more = scaled([1.03; 8]);
        let compared = one(Direction::HigherIsBetter, &more, Pairing::Separate);
        assert_eq!((compared.verdict, compared.weaker), (Verdict::Better, true));
        let paired = one(Direction::HigherIsBetter, &more, Pairing::ByBlock).interval.unwrap();
        let separate = compared.interval.unwrap();
        assert!(separate.high - separate.low > paired.high - paired.low);
    }

    #[test]
    fn sliding_separate_runs_are_called_dependent() {
        let sliding: Vec<f64> = (0..20).map(|i| 50.0 + f64::from(i)).collect();
        let dependent = |pairing| {
            let (base, new) = (&sliding, &sliding);
            let table = [Comparison { direction: Direction::HigherIsBetter, base, new, pairing }];
            compare(&table, &RULE).unwrap().remove(0).unwrap().dependent
        };
        assert!(dependent(Pairing::Separate) && !dependent(Pairing::ByBlock));
    }

    #[test]
    fn separate_runs_of_unlike_noise_are_called_uneven() {
        let noisy: Vec<f64> = BASE.iter().map(|x| 100.0 + 5.0 * (x - 100.0)).collect();
        assert!(one(Direction::HigherIsBetter, &noisy, Pairing::Separate).uneven);
        assert!(!one(Direction::HigherIsBetter, &noisy, Pairing::ByBlock).uneven);
        assert!(!one(Direction::HigherIsBetter, &scaled([1.1; 8]), Pairing::Separate).uneven);
    }

    #[test]
    fn identical_values_are_the_same() {
        let compared = one(Direction::LowerIsBetter, &BASE, Pairing::ByBlock);
        assert_eq!((compared.verdict, compared.effect_percent), (Verdict::Same, 0.0));
    }

    #[test]
    fn the_table_corrects_each_row() {
        let noise = [0.97, 1.04, 0.99, 1.02, 1.05, 0.96, 1.03, 0.98];
        let (slower, noisy) = (scaled([0.93, 0.95, 0.96, 0.92, 0.94, 0.97, 0.95, 0.93]), scaled(noise));
        let row = |new| Comparison {
            direction: Direction::HigherIsBetter,
            base: &BASE,
            new,
            pairing: Pairing::ByBlock,
        };
        let alone = compare(&[row(&slower)], &RULE).unwrap().remove(0).unwrap();
        let mut rows = vec![row(&slower)];
        rows.extend(std::iter::repeat_n(row(&noisy), 9));
        let crowd = compare(&rows, &RULE).unwrap().remove(0).unwrap();
        assert_eq!((alone.verdict, crowd.verdict), (Verdict::Worse, Verdict::Undecided));
        assert_eq!((alone.interval, alone.p), (crowd.interval, crowd.p));
        assert!(crowd.corrected_interval.is_none(), "8 blocks cannot carry a table of 10");
        assert_eq!(crowd.more_repeats, Some(MoreRepeats::Likely(1)));
    }

    #[test]
    fn a_bad_row_leaves_the_others_alone() {
        let zero = [0.0; 8];
        let row = |new| Comparison {
            direction: Direction::LowerIsBetter,
            base: &BASE,
            new,
            pairing: Pairing::ByBlock,
        };
        let good = scaled([1.05; 8]);
        let rows = compare(&[row(&zero), row(&good), row(&good[..3])], &RULE).unwrap();
        assert!(matches!(rows[0], Err(StatsError::NotPositive { index: 0, .. })));
        assert_eq!(rows[1].as_ref().unwrap().verdict, Verdict::Worse);
        assert_eq!(rows[2], Err(StatsError::UnequalPairs { base: 8, new: 3 }));
    }

    #[test]
    fn one_block_is_undecided_with_no_interval() {
        let row = Comparison {
            direction: Direction::LowerIsBetter,
            base: &[1e-300],
            new: &[1e300],
            pairing: Pairing::ByBlock,
        };
        let compared = compare(&[row], &RULE).unwrap().remove(0).unwrap();
        assert_eq!((compared.verdict, compared.interval), (Verdict::Undecided, None));
        assert!(compared.effect_percent.is_finite());
        assert_eq!(compared.more_repeats, Some(MoreRepeats::Likely(5)));
    }

    #[test]
    fn refuses_a_senseless_margin_and_takes_an_empty_table() {
        for margin in [-0.1, 1.0, f64::NAN] {
            assert!(compare(&[], &Rule { margin, ..RULE }).is_err());
        }
        assert!(compare(&[], &RULE).unwrap().is_empty());
    }

    #[test]
    fn survives_json() {
        let compared = one(Direction::LowerIsBetter, &scaled([1.03; 8]), Pairing::ByBlock);
        let text = serde_json::to_string(&compared).unwrap();
        let read: Compared = serde_json::from_str(&text).unwrap();
        assert_eq!((read.verdict, read.more_repeats, read.weaker), (compared.verdict, None, false));
        assert!(text.contains(r#""verdict":"worse""#));
    }
}
