//! Coverage of the intervals of a mean and a median.

use linerate_lab::stats::bootstrap::Bootstrap;
use linerate_lab::stats::interval::{mean_bca, mean_studentised, mean_t, median_exact};
use linerate_lab::stats::{Confidence, Interval, StatsError};

use super::Rate;
use super::process::{Noise, Process};

/// The ways to make an interval.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Way {
    T,
    Studentised,
    Bca,
    Median,
}

pub(crate) const WAYS: [Way; 4] = [Way::T, Way::Studentised, Way::Bca, Way::Median];

/// How often the 95 % interval holds the truth, and its median width in percent of the level; `None` when there are too few values.
pub(crate) fn coverage(way: Way, noise: Noise, count: usize, runs: u32, seed: u64) -> Option<(Rate, f64)> {
    const LEVEL: f64 = 1_000.0;
    const SPREAD: f64 = 0.05;
    let truth = LEVEL * (1.0 + SPREAD * centre(way, noise));
    let mut widths = Vec::new();
    let mut failed = false;
    let rate = Rate::measure(runs, |run| {
        let values = Process::new(noise, SPREAD, seed, run).trials(LEVEL, count);
        match interval(way, &values, run) {
            Ok(interval) => {
                widths.push((interval.high - interval.low) / LEVEL);
                interval.low <= truth && truth <= interval.high
            }
            Err(StatsError::Unbounded { .. }) => true,
            Err(_) => {
                failed = true;
                false
            }
        }
    });
    widths.sort_by(f64::total_cmp);
    (!failed).then(|| (rate, widths[widths.len() / 2] * 100.0))
}

fn interval(way: Way, values: &[f64], run: u64) -> Result<Interval, StatsError> {
    let bootstrap = Bootstrap { replicates: 999, seed: run };
    match way {
        Way::T => mean_t(values, Confidence::P95),
        Way::Studentised => mean_studentised(values, Confidence::P95, bootstrap),
        Way::Bca => mean_bca(values, Confidence::P95, bootstrap),
        Way::Median => median_exact(values, Confidence::P95),
    }
}

/// True mean or median of the noise, in its standard deviations.
pub(crate) fn centre(way: Way, noise: Noise) -> f64 {
    let mean_square = (0.405_f64.exp(), 0.81_f64.exp());
    match (noise, way) {
        (Noise::Skewed, Way::Median) => {
            (1.0 - mean_square.0) / (mean_square.0 * (mean_square.1 - 1.0).sqrt())
        }
        (Noise::Outliers, Way::Median) => -0.0660,
        (Noise::Outliers, _) => -0.5,
        _ => 0.0,
    }
}
