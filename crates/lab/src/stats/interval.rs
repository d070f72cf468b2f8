//! Confidence intervals of a mean, a median and a ratio, for few values.

use serde::{Deserialize, Serialize};

use super::bootstrap::{Bootstrap, Estimate, bias_corrected, studentised};
use super::confidence::Confidence;
use super::describe::{mean, median, standard_deviation};
use super::distribution::t_quantile;
use super::error::{StatsError, check, logarithms};

/// Fewest values for a studentised bootstrap: below, resamples of equal values reach into the 95 % interval's tails.
pub const FEWEST_STUDENTISED: usize = 5;

/// How an interval was made.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Method {
    /// Student's t, for means.
    T,
    /// Studentised bootstrap.
    StudentisedBootstrap,
    /// Bias-corrected and accelerated bootstrap.
    BcaBootstrap,
    /// Order statistics, exact for any distribution.
    OrderStatistics,
}

/// An estimate with its interval, in the unit of the values.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Interval {
    /// The estimate.
    pub estimate: f64,
    /// Lower end.
    pub low: f64,
    /// Upper end.
    pub high: f64,
    /// How surely the true value lies between the ends.
    pub confidence: Confidence,
    /// How it was made.
    pub method: Method,
}

impl Interval {
    /// The longer side of the interval over the estimate's size: "± 2 %" is 0.02. Zero for an interval without width;
    /// `None` around zero or when it overflows.
    pub fn relative_half_width(&self) -> Option<f64> {
        let half = (self.high - self.estimate).max(self.estimate - self.low);
        if half == 0.0 {
            return Some(0.0);
        }
        Some(half / self.estimate.abs()).filter(|width| width.is_finite())
    }
}

/// Student's t interval of the mean: exact for normal values, close when their spread is small against their size.
///
/// # Errors
/// [`StatsError::TooFew`] below two values, [`StatsError::NotFinite`].
pub fn mean_t(values: &[f64], confidence: Confidence) -> Result<Interval, StatsError> {
    check("t interval of the mean", values, 2)?;
    let estimate = mean(values)?;
    let error = standard_deviation(values)? / (values.len() as f64).sqrt();
    let half = t_quantile(1.0 - confidence.alpha() / 2.0, values.len() - 1) * error;
    check("t interval of the mean", &[estimate - half, estimate + half], 0)?;
    Ok(Interval { estimate, low: estimate - half, high: estimate + half, confidence, method: Method::T })
}

/// Studentised bootstrap interval of the mean: for skewed values.
///
/// # Errors
/// [`StatsError::TooFew`] below [`FEWEST_STUDENTISED`], [`StatsError::Unbounded`], [`StatsError::NotFinite`].
pub fn mean_studentised(
    values: &[f64],
    confidence: Confidence,
    bootstrap: Bootstrap,
) -> Result<Interval, StatsError> {
    let what = "bootstrap interval of the mean";
    check(what, values, FEWEST_STUDENTISED)?;
    let estimate = mean(values)?;
    let (low, high) = studentised(what, [values], |[drawn]| mean_estimate(drawn), confidence, bootstrap)?;
    Ok(Interval { estimate, low, high, confidence, method: Method::StudentisedBootstrap })
}

/// `BCa` bootstrap interval of the mean: for twenty values and more.
///
/// # Errors
/// [`StatsError::TooFew`] below three values, [`StatsError::NotFinite`].
pub fn mean_bca(
    values: &[f64],
    confidence: Confidence,
    bootstrap: Bootstrap,
) -> Result<Interval, StatsError> {
    let what = "bootstrap interval of the mean";
    check(what, values, 3)?;
    let estimate = mean(values)?;
    let (low, high) =
        bias_corrected(what, values, |drawn| mean_estimate(drawn).value, confidence, bootstrap)?;
    Ok(Interval { estimate, low, high, confidence, method: Method::BcaBootstrap })
}

/// Interval of the median from order statistics (Conover, "Practical Nonparametric Statistics", 3rd ed., 3.2): holds
/// for any distribution, at least as wide as asked; 95 % takes six values.
///
/// # Errors
/// [`StatsError::TooFew`] when even the range of the values is not sure enough, [`StatsError::NotFinite`].
pub fn median_exact(values: &[f64], confidence: Confidence) -> Result<Interval, StatsError> {
    let what = "interval of the median";
    let tail = confidence.alpha() / 2.0;
    check(what, values, fewest_for_median(tail))?;
    let count = values.len();
    // How many values from each end can be left out: sums of binomial(n, 1/2) chances, as logarithms because a
    // thousand halvings leave the range of a double.
    let mut log_chance = -(count as f64) * std::f64::consts::LN_2;
    let (mut sum, mut depth) = (log_chance.exp(), 0);
    while depth + 1 < count.div_ceil(2) {
        log_chance += ((count - depth) as f64 / (depth + 1) as f64).ln();
        sum += log_chance.exp();
        if sum > tail {
            break;
        }
        depth += 1;
    }
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    Ok(Interval {
        estimate: median(values)?,
        low: sorted[depth],
        high: sorted[count - 1 - depth],
        confidence,
        method: Method::OrderStatistics,
    })
}

/// Studentised bootstrap interval of the ratio of two means, new over base, made on its logarithm.
///
/// # Errors
/// As [`mean_studentised`] for either sample, and [`StatsError::NotPositive`].
pub fn ratio_of_means(
    base: &[f64],
    new: &[f64],
    confidence: Confidence,
    bootstrap: Bootstrap,
) -> Result<Interval, StatsError> {
    let what = "interval of the ratio";
    logarithms(what, base, FEWEST_STUDENTISED)?;
    logarithms(what, new, FEWEST_STUDENTISED)?;
    let log_ratio = |[base, new]: [&[f64]; 2]| {
        let (base, new) = (mean_estimate(base), mean_estimate(new));
        // Delta method: the error of a logarithm is the relative error.
        let error = (base.error / base.value).hypot(new.error / new.value);
        Estimate { value: (new.value / base.value).ln(), error }
    };
    let (low, high) = studentised(what, [base, new], log_ratio, confidence, bootstrap)?;
    let estimate = log_ratio([base, new]).value.exp();
    let interval = Interval {
        estimate,
        low: low.exp(),
        high: high.exp(),
        confidence,
        method: Method::StudentisedBootstrap,
    };
    if interval.high.is_finite() { Ok(interval) } else { Err(StatsError::Unbounded { what }) }
}

/// Fewest values whose range leaves out the median with at most `tail` on either side.
pub(super) fn fewest_for_median(tail: f64) -> usize {
    (1..).find(|count| 0.5_f64.powi(*count) <= tail).unwrap_or(i32::MAX) as usize
}

fn mean_estimate(values: &[f64]) -> Estimate {
    let count = values.len() as f64;
    let value = values.iter().sum::<f64>() / count;
    let squares: f64 = values.iter().map(|x| (x - value).powi(2)).sum();
    Estimate { value, error: (squares / (count - 1.0) / count).sqrt() }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SEED: Bootstrap = Bootstrap { replicates: 1_999, seed: 1 };

    #[test]
    fn t_interval_agrees_with_a_worked_example() {
        // n = 5, mean 10, s = 1, t(0.975, 4) = 2.7764: half width 1.24165.
        let interval = mean_t(
            &[9.0, 9.5, 10.0, 10.5, 11.0].map(|x| 10.0 + (x - 10.0) / 0.625_f64.sqrt()),
            Confidence::P95,
        );
        let interval = interval.unwrap();
        assert!((interval.high - interval.estimate - 1.241_65).abs() < 1e-4, "{interval:?}");
        assert!((interval.relative_half_width().unwrap() - 0.124_165).abs() < 1e-5);
    }

    #[test]
    fn median_takes_six_values_for_95_percent_and_drops_one_at_nine() {
        assert!(matches!(median_exact(&[1.0; 5], Confidence::P95), Err(StatsError::TooFew { need: 6, .. })));
        let values: Vec<f64> = (1..=9).map(f64::from).collect();
        let ends = |n: usize| median_exact(&values[..n], Confidence::P95).map(|i| (i.low, i.high)).unwrap();
        assert_eq!((ends(6), ends(8), ends(9)), ((1.0, 6.0), (1.0, 8.0), (2.0, 8.0)));
    }

    #[test]
    fn median_interval_of_many_values_is_finite_and_inside() {
        let values: Vec<f64> = (0..2_000).map(f64::from).collect();
        let interval = median_exact(&values, Confidence::P95);
        // 1 000 less 1.96 times half the root of 2 000 is 956.
        assert!(interval.is_ok_and(|i| (954.0..=957.0).contains(&i.low) && i.low + i.high == 1_999.0));
    }

    #[test]
    fn bootstraps_refuse_too_few_and_keep_equal_values() {
        assert!(matches!(
            mean_studentised(&[1.0, 2.0, 3.0, 4.0], Confidence::P95, SEED),
            Err(StatsError::TooFew { need: 5, .. })
        ));
        assert_eq!(
            mean_studentised(&[1.0, 1.0, 1.0, 1.0, 2.0], Confidence::P95, SEED),
            Err(StatsError::Unbounded { what: "bootstrap interval of the mean" })
        );
        for interval in
            [mean_studentised(&[3.0; 6], Confidence::P95, SEED), mean_bca(&[3.0; 6], Confidence::P95, SEED)]
        {
            let interval = interval.unwrap();
            assert_eq!((interval.low, interval.high, interval.relative_half_width()), (3.0, 3.0, Some(0.0)));
        }
    }

    #[test]
    fn ratio_holds_the_ratio() {
        let base = [100.0, 101.0, 99.0, 100.5, 99.5, 100.2];
        let new = base.map(|x| x * 0.97 + 0.1);
        let interval = ratio_of_means(&base, &new, Confidence::P95, SEED).unwrap();
        assert!(interval.low < 0.971 && 0.971 < interval.high && interval.high < 1.0, "{interval:?}");
        assert!(matches!(
            ratio_of_means(&[0.0; 6], &new, Confidence::P95, SEED),
            Err(StatsError::NotPositive { .. })
        ));
    }

    #[test]
    fn width_around_zero_is_not_a_number() {
        let interval = mean_t(&[-1.0, 1.0], Confidence::P95).unwrap();
        assert_eq!(interval.relative_half_width(), None);
    }
}
