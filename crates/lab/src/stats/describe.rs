//! Plain descriptions of a series of values.

use serde::{Deserialize, Serialize};

use super::error::{StatsError, check};

/// What a series looks like, in the unit of its values.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Description {
    /// Number of values.
    pub count: usize,
    /// Arithmetic mean.
    pub mean: f64,
    /// Median.
    pub median: f64,
    /// Smallest value.
    pub min: f64,
    /// Largest value.
    pub max: f64,
    /// Standard deviation with n - 1; `None` for a single value.
    pub standard_deviation: Option<f64>,
    /// Median absolute deviation from the median, unscaled.
    pub mad: f64,
    /// Standard deviation over the mean's size; `None` for a single value or a mean of zero.
    pub relative_spread: Option<f64>,
    /// Autocorrelation at lag 1; `None` below three values or when all are equal.
    pub autocorrelation: Option<f64>,
}

/// Describes a series.
///
/// # Errors
/// [`StatsError::TooFew`] for an empty series, [`StatsError::NotFinite`] for NaN or an infinity.
pub fn describe(values: &[f64]) -> Result<Description, StatsError> {
    check("description", values, 1)?;
    let mean = mean(values)?;
    let standard_deviation = standard_deviation(values).ok();
    let relative_spread = standard_deviation.filter(|_| mean != 0.0).map(|deviation| deviation / mean.abs());
    Ok(Description {
        count: values.len(),
        mean,
        median: median(values)?,
        min: values.iter().copied().fold(f64::INFINITY, f64::min),
        max: values.iter().copied().fold(f64::NEG_INFINITY, f64::max),
        standard_deviation,
        mad: mad(values)?,
        relative_spread: relative_spread.filter(|spread| spread.is_finite()),
        autocorrelation: autocorrelation(values).ok(),
    })
}

/// Arithmetic mean.
///
/// # Errors
/// [`StatsError::TooFew`] for an empty series, [`StatsError::NotFinite`] for NaN or an infinity.
pub fn mean(values: &[f64]) -> Result<f64, StatsError> {
    check("mean", values, 1)?;
    // Dividing first keeps a sum of huge values finite; the second pass takes back the rounding.
    let count = values.len() as f64;
    let rough: f64 = values.iter().map(|value| value / count).sum();
    Ok(rough + values.iter().map(|value| value / count - rough / count).sum::<f64>())
}

/// Standard deviation with n - 1.
///
/// # Errors
/// [`StatsError::TooFew`] below two values, [`StatsError::NotFinite`] for NaN, an infinity or an overflow.
pub fn standard_deviation(values: &[f64]) -> Result<f64, StatsError> {
    check("standard deviation", values, 2)?;
    let mean = mean(values)?;
    let squares: f64 = values.iter().map(|value| (value - mean).powi(2)).sum();
    finite("standard deviation", (squares / (values.len() - 1) as f64).sqrt())
}

/// Median.
///
/// # Errors
/// [`StatsError::TooFew`] for an empty series, [`StatsError::NotFinite`] for NaN or an infinity.
pub fn median(values: &[f64]) -> Result<f64, StatsError> {
    quantile(values, 0.5)
}

/// Quantile by linear interpolation (type 7 of Hyndman and Fan, "Sample quantiles in statistical packages", The
/// American Statistician 50(4), 1996); `share` from 0 to 1.
///
/// # Errors
/// [`StatsError::TooFew`], [`StatsError::NotFinite`], and [`StatsError::OutOfRange`] for a share outside 0 to 1.
pub fn quantile(values: &[f64], share: f64) -> Result<f64, StatsError> {
    check("quantile", values, 1)?;
    if !(0.0..=1.0).contains(&share) {
        return Err(StatsError::OutOfRange { what: "quantile", value: share, allowed: "0 to 1" });
    }
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    Ok(sorted_quantile(&sorted, share))
}

/// Median absolute deviation from the median, unscaled (times 1.4826 it estimates a normal standard deviation).
///
/// # Errors
/// [`StatsError::TooFew`] for an empty series, [`StatsError::NotFinite`] for NaN, an infinity or an overflow.
pub fn mad(values: &[f64]) -> Result<f64, StatsError> {
    let centre = median(values)?;
    let deviations: Vec<f64> = values.iter().map(|value| (value - centre).abs()).collect();
    median(&deviations)
}

/// Autocorrelation at lag 1, from -1 to 1 (Box, Jenkins, Reinsel and Ljung, "Time Series Analysis", 5th ed., 2.1.5).
///
/// # Errors
/// [`StatsError::TooFew`] below three values, [`StatsError::Constant`] when all are equal, [`StatsError::NotFinite`].
pub fn autocorrelation(values: &[f64]) -> Result<f64, StatsError> {
    check("autocorrelation", values, 3)?;
    let mean = mean(values)?;
    let total: f64 = values.iter().map(|value| (value - mean).powi(2)).sum();
    if total == 0.0 {
        return Err(StatsError::Constant { what: "autocorrelation" });
    }
    let lagged: f64 = values.windows(2).map(|pair| (pair[0] - mean) * (pair[1] - mean)).sum();
    finite("autocorrelation", lagged / total)
}

/// Type 7 quantile of sorted, finite, non-empty values.
pub(super) fn sorted_quantile(sorted: &[f64], share: f64) -> f64 {
    let place = share * (sorted.len() - 1) as f64;
    let below = place.floor() as usize;
    let above = (below + 1).min(sorted.len() - 1);
    let part = place - below as f64;
    sorted[below] * (1.0 - part) + sorted[above] * part
}

fn finite(what: &'static str, value: f64) -> Result<f64, StatsError> {
    if value.is_finite() { Ok(value) } else { Err(StatsError::NotFinite { what, index: 0, value }) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn describes_a_small_series() {
        let d = describe(&[2.0, 4.0, 4.0, 4.0, 5.0, 5.0, 7.0, 9.0]).unwrap();
        assert_eq!((d.count, d.mean, d.median, d.min, d.max), (8, 5.0, 4.5, 2.0, 9.0));
        assert!((d.standard_deviation.unwrap() - (32.0_f64 / 7.0).sqrt()).abs() < 1e-12);
        assert_eq!(d.mad, 0.5);
    }

    #[test]
    fn a_single_value_has_no_spread() {
        let d = describe(&[3.0]).unwrap();
        assert_eq!(
            (d.median, d.standard_deviation, d.relative_spread, d.autocorrelation),
            (3.0, None, None, None)
        );
    }

    #[test]
    fn refuses_what_has_no_answer() {
        assert!(matches!(describe(&[]), Err(StatsError::TooFew { .. })));
        assert!(matches!(mean(&[1.0, f64::NAN]), Err(StatsError::NotFinite { index: 1, .. })));
        assert!(matches!(quantile(&[1.0], 1.5), Err(StatsError::OutOfRange { .. })));
        assert!(matches!(autocorrelation(&[1.0; 9]), Err(StatsError::Constant { .. })));
        assert!(matches!(standard_deviation(&[1.0]), Err(StatsError::TooFew { need: 2, .. })));
    }

    #[test]
    fn huge_values_are_an_error_and_not_an_infinity() {
        assert_eq!(mean(&[f64::MAX, f64::MAX]).unwrap(), f64::MAX);
        assert!(mean(&[f64::MAX, f64::MAX, -f64::MAX]).unwrap().is_finite());
        assert!(standard_deviation(&[f64::MAX, -f64::MAX]).is_err());
        let d = describe(&[f64::MAX, f64::MAX, 0.0]).unwrap();
        assert!(d.mean.is_finite() && d.standard_deviation.is_none());
    }

    #[test]
    fn quantiles_interpolate() {
        let values = [4.0, 1.0, 3.0, 2.0];
        assert_eq!(quantile(&values, 0.0).unwrap(), 1.0);
        assert_eq!(quantile(&values, 0.25).unwrap(), 1.75);
        assert_eq!(quantile(&values, 1.0).unwrap(), 4.0);
    }

    #[test]
    fn autocorrelation_tells_a_trend_from_an_alternation() {
        let trend: Vec<f64> = (0..50).map(f64::from).collect();
        let alternation: Vec<f64> = (0..50).map(|i| f64::from(i % 2)).collect();
        assert!(autocorrelation(&trend).unwrap() > 0.9);
        assert!(autocorrelation(&alternation).unwrap() < -0.9);
    }
}
