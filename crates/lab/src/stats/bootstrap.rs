//! The bootstrap (Efron and Tibshirani, "An Introduction to the Bootstrap", 1993; Davison and Hinkley, "Bootstrap
//! Methods and their Application", 1997), seeded.
//!
//! Two kinds, because they fail differently: the studentised one keeps its promise for skewed values from five on, at
//! the price of wide intervals; the bias-corrected and accelerated one (`BCa`) serves any statistic but is too narrow
//! below some twenty values (measured in `docs/statistics.md`).

use serde::{Deserialize, Serialize};

use super::confidence::Confidence;
use super::describe::sorted_quantile;
use super::distribution::{normal_cdf, normal_quantile};
use super::error::StatsError;
use super::random::Generator;

/// How often to resample, and with which seed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Bootstrap {
    /// Number of resamples; 1 999 keeps the ends' own noise below a tenth of the interval's width.
    pub replicates: usize,
    /// Recorded with the result.
    pub seed: u64,
}

impl Bootstrap {
    /// 1 999 resamples with this seed.
    pub fn seeded(seed: u64) -> Self {
        Self { replicates: 1_999, seed }
    }
}

/// An estimate with its standard error.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Estimate {
    pub(super) value: f64,
    pub(super) error: f64,
}

/// Studentised interval of what `estimate` computes from the samples, which are resampled each on its own.
pub(super) fn studentised<const N: usize>(
    what: &'static str,
    samples: [&[f64]; N],
    estimate: impl Fn([&[f64]; N]) -> Estimate,
    confidence: Confidence,
    bootstrap: Bootstrap,
) -> Result<(f64, f64), StatsError> {
    let seen = estimate(samples);
    if seen.error == 0.0 {
        return Ok((seen.value, seen.value));
    }
    let mut generator = Generator::new(bootstrap.seed);
    let mut drawn: [Vec<f64>; N] = samples.map(<[f64]>::to_vec);
    let mut scores: Vec<f64> = (0..bootstrap.replicates)
        .map(|_| {
            for (into, from) in drawn.iter_mut().zip(samples) {
                resample(&mut generator, from, into);
            }
            score(estimate(std::array::from_fn(|i| drawn[i].as_slice())), seen.value)
        })
        .collect();
    scores.sort_by(f64::total_cmp);
    let tail = confidence.alpha() / 2.0;
    let (below, above) = (nearest(&scores, tail), nearest(&scores, 1.0 - tail));
    let ends = (seen.value - above * seen.error, seen.value - below * seen.error);
    if ends.0.is_finite() && ends.1.is_finite() { Ok(ends) } else { Err(StatsError::Unbounded { what }) }
}

/// `BCa` interval of any statistic of one sample (Efron, "Better bootstrap confidence intervals", JASA 82, 1987).
pub(super) fn bias_corrected(
    what: &'static str,
    values: &[f64],
    statistic: impl Fn(&[f64]) -> f64,
    confidence: Confidence,
    bootstrap: Bootstrap,
) -> Result<(f64, f64), StatsError> {
    let seen = statistic(values);
    let mut generator = Generator::new(bootstrap.seed);
    let mut drawn = values.to_vec();
    let mut estimates: Vec<f64> = (0..bootstrap.replicates)
        .map(|_| {
            resample(&mut generator, values, &mut drawn);
            statistic(&drawn)
        })
        .collect();
    estimates.sort_by(f64::total_cmp);
    let below = estimates.partition_point(|estimate| *estimate < seen);
    let equal = estimates.partition_point(|estimate| *estimate <= seen) - below;
    // Half a count at least on either side keeps the bias finite.
    let count = estimates.len() as f64;
    let share = ((below as f64 + equal as f64 / 2.0) / count).clamp(0.5 / count, 1.0 - 0.5 / count);
    let bias = normal_quantile(share);
    let acceleration = acceleration(values, &statistic);
    let tail = confidence.alpha() / 2.0;
    let end = |probability: f64| {
        let z = bias + normal_quantile(probability);
        nearest(&estimates, normal_cdf(bias + z / (1.0 - acceleration * z)))
    };
    let ends = (end(tail), end(1.0 - tail));
    if ends.0.is_finite() && ends.1.is_finite() { Ok(ends) } else { Err(StatsError::Unbounded { what }) }
}

/// Skewness of the statistic's leave-one-out values; zero when they do not differ.
fn acceleration(values: &[f64], statistic: impl Fn(&[f64]) -> f64) -> f64 {
    let left_out: Vec<f64> = (0..values.len())
        .map(|out| {
            let rest: Vec<f64> =
                values.iter().enumerate().filter(|(i, _)| *i != out).map(|(_, value)| *value).collect();
            statistic(&rest)
        })
        .collect();
    let mean = left_out.iter().sum::<f64>() / left_out.len() as f64;
    let power = |exponent: i32| left_out.iter().map(|value| (mean - value).powi(exponent)).sum::<f64>();
    let acceleration = power(3) / (6.0 * power(2).powf(1.5));
    if acceleration.is_finite() { acceleration } else { 0.0 }
}

fn resample(generator: &mut Generator, from: &[f64], into: &mut [f64]) {
    for value in into {
        *value = from[generator.below(from.len())];
    }
}

fn score(drawn: Estimate, seen: f64) -> f64 {
    let distance = drawn.value - seen;
    // A resample of equal values: infinitely far, on its side.
    if distance == 0.0 { 0.0 } else { distance / drawn.error }
}

/// Quantile of sorted values that may be infinite at the ends: interpolation would turn those into NaN.
fn nearest(sorted: &[f64], share: f64) -> f64 {
    let interpolated = sorted_quantile(sorted, share);
    if interpolated.is_finite() {
        return interpolated;
    }
    sorted[(share * (sorted.len() - 1) as f64).round() as usize]
}

#[cfg(test)]
mod tests {
    use super::*;

    fn mean(values: &[f64]) -> f64 {
        values.iter().sum::<f64>() / values.len() as f64
    }

    #[test]
    fn a_seed_gives_the_same_interval() {
        let values = [1.0, 3.0, 2.0, 8.0, 4.0, 5.0];
        let run =
            |seed| bias_corrected("mean", &values, mean, Confidence::P95, Bootstrap::seeded(seed)).unwrap();
        assert_eq!(run(1), run(1));
        assert_ne!(run(1), run(2));
    }

    #[test]
    fn bias_corrected_leans_towards_the_long_tail() {
        let values = [1.0, 1.1, 1.2, 1.3, 1.5, 1.6, 1.8, 2.0, 3.0, 9.0];
        let (low, high) =
            bias_corrected("mean", &values, mean, Confidence::P95, Bootstrap::seeded(1)).unwrap();
        let centre = mean(&values);
        assert!(high - centre > 1.3 * (centre - low), "{low} {centre} {high}");
    }

    #[test]
    fn equal_values_have_no_acceleration() {
        assert_eq!(acceleration(&[2.0; 4], mean), 0.0);
    }
}
