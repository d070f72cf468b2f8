//! The stop rule: repeat until the interval of the median is narrow enough, between a smallest and a largest number.
//!
//! Stopping when an interval happens to be narrow favours samples whose spread came out too small (Chow and Robbins,
//! "On the asymptotic theory of fixed-width sequential confidence intervals", Ann. Math. Stat. 36, 1965: right only in
//! the limit). The t interval of the mean suffers badly from it once values are skewed or odd trials occur; the
//! interval of the median from order statistics, which is exact for any distribution and needs six values for 95 %,
//! hardly does. So the rule watches the median, and there is no stop before the interval exists. `docs/statistics.md`
//! gives the coverage measured at the stop, for both.

use serde::{Deserialize, Serialize};

use super::confidence::Confidence;
use super::error::{StatsError, check};
use super::interval::{Interval, fewest_for_median, median_exact};

/// `--confidence 95 --width 2% --min-repeat 6 --max-repeat 30`.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct StopRule {
    confidence: Confidence,
    width: f64,
    min_repeats: u32,
    max_repeats: u32,
}

/// Where a metric, or a whole run, stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum StopState {
    /// Another repeat is needed.
    Continue,
    /// Narrow enough.
    Reached,
    /// The largest number of repeats is spent and the interval is still wider.
    GaveUp,
}

/// Where a metric stands, and its estimate so far.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Progress {
    /// Where it stands.
    pub state: StopState,
    /// The median with its interval at the rule's confidence; `None` while there are too few values for one.
    pub interval: Option<Interval>,
    /// The interval's longer side over the median; `None` without interval or around zero.
    pub relative_half_width: Option<f64>,
    /// While it continues: the number of repeats, in all, at which it is likely to stop.
    pub likely_repeats: Option<u32>,
}

impl StopRule {
    /// A rule; `width` is the half width over the median (0.02 for "± 2 %"). A `min_repeats` below what an interval
    /// takes (six for 95 %) is lifted to it, unless `max_repeats` is lower still: then all repeats run and none is
    /// reached.
    ///
    /// # Errors
    /// [`StatsError::OutOfRange`] for a width that is not above 0 and finite, for no repeats, or a largest number below
    /// the smallest.
    pub fn new(
        confidence: Confidence,
        width: f64,
        min_repeats: u32,
        max_repeats: u32,
    ) -> Result<Self, StatsError> {
        if !(width > 0.0 && width.is_finite()) {
            return Err(StatsError::OutOfRange { what: "width", value: width, allowed: "above 0" });
        }
        if max_repeats == 0 || max_repeats < min_repeats {
            let allowed = "at least 1 and not below the smallest number";
            return Err(StatsError::OutOfRange {
                what: "largest number of repeats",
                value: f64::from(max_repeats),
                allowed,
            });
        }
        let fewest = fewest_for_median(confidence.alpha() / 2.0) as u32;
        let min_repeats = min_repeats.max(fewest).min(max_repeats);
        Ok(Self { confidence, width, min_repeats, max_repeats })
    }

    /// Fewest repeats that run.
    pub fn min_repeats(&self) -> u32 {
        self.min_repeats
    }

    /// Most repeats that run.
    pub fn max_repeats(&self) -> u32 {
        self.max_repeats
    }

    /// Judges one metric by its values so far, one a repeat.
    ///
    /// # Errors
    /// [`StatsError::NotFinite`] for NaN or an infinity.
    pub fn progress(&self, values: &[f64]) -> Result<Progress, StatsError> {
        check("stop rule", values, 0)?;
        let repeats = u32::try_from(values.len()).unwrap_or(u32::MAX);
        let interval = match median_exact(values, self.confidence) {
            Ok(interval) => Some(interval),
            Err(StatsError::TooFew { .. }) => None,
            Err(error) => return Err(error),
        };
        let relative_half_width = interval.and_then(|interval| interval.relative_half_width());
        let state = self.state(repeats, relative_half_width);
        let continues = state == StopState::Continue;
        let likely_repeats = continues.then(|| self.likely(repeats, relative_half_width));
        Ok(Progress { state, interval, relative_half_width, likely_repeats })
    }

    fn state(&self, repeats: u32, relative_half_width: Option<f64>) -> StopState {
        let narrow = relative_half_width.is_some_and(|half| half <= self.width);
        match (repeats >= self.min_repeats, narrow) {
            (true, true) => StopState::Reached,
            _ if repeats >= self.max_repeats => StopState::GaveUp,
            _ => StopState::Continue,
        }
    }

    /// The interval shrinks with the square root of the number; without one, the fewest repeats are still to run.
    fn likely(&self, repeats: u32, relative_half_width: Option<f64>) -> u32 {
        let growth = relative_half_width.map_or(0.0, |half| (half / self.width).powi(2));
        let total = (f64::from(repeats) * growth).ceil() as u32;
        total.max(self.min_repeats).max(repeats.saturating_add(1)).min(self.max_repeats)
    }
}

/// The state of a run with several metrics: it continues while one of them does, and has given up if one has.
pub fn run_state(metrics: &[StopState]) -> StopState {
    let any = |state| metrics.contains(&state);
    if any(StopState::Continue) {
        return StopState::Continue;
    }
    if any(StopState::GaveUp) { StopState::GaveUp } else { StopState::Reached }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rule(min: u32, max: u32) -> StopRule {
        StopRule::new(Confidence::P95, 0.02, min, max).unwrap()
    }

    #[test]
    fn stops_when_narrow_but_not_before_the_fewest() {
        let values = [100.0, 100.1, 99.9, 100.0, 100.05, 99.95];
        let states: Vec<StopState> =
            (0..=6).map(|n| rule(2, 30).progress(&values[..n]).unwrap().state).collect();
        assert!(states[..6].iter().all(|state| *state == StopState::Continue), "{states:?}");
        assert_eq!(states[6], StopState::Reached);
        assert_eq!(rule(2, 30).progress(&values[..3]).unwrap().likely_repeats, Some(6));
    }

    #[test]
    fn gives_up_at_the_largest_number() {
        let noisy = [50.0, 150.0, 80.0, 120.0, 60.0, 140.0, 90.0];
        let progress = rule(3, 7).progress(&noisy[..6]).unwrap();
        assert_eq!((progress.state, progress.likely_repeats), (StopState::Continue, Some(7)));
        assert_eq!(rule(3, 7).progress(&noisy).unwrap().state, StopState::GaveUp);
    }

    #[test]
    fn a_single_repeat_asked_for_is_a_single_repeat() {
        let rule = rule(1, 1);
        assert_eq!(rule.progress(&[]).unwrap().state, StopState::Continue);
        let progress = rule.progress(&[1.0]).unwrap();
        assert_eq!((progress.state, progress.interval), (StopState::GaveUp, None));
    }

    #[test]
    fn zeros_are_narrow_and_a_median_of_zero_is_not() {
        assert_eq!(rule(6, 9).progress(&[0.0; 6]).unwrap().state, StopState::Reached);
        let progress = rule(2, 9).progress(&[1.0, -1.0, 1.0, -1.0, 1.0, -1.0]).unwrap();
        assert_eq!((progress.state, progress.relative_half_width), (StopState::Continue, None));
    }

    #[test]
    fn refuses_senseless_rules_and_values() {
        assert!(StopRule::new(Confidence::P95, 0.0, 1, 2).is_err());
        assert!(StopRule::new(Confidence::P95, f64::NAN, 1, 2).is_err());
        assert!(StopRule::new(Confidence::P95, 0.02, 5, 4).is_err());
        assert!(StopRule::new(Confidence::P95, 0.02, 0, 0).is_err());
        assert!(rule(5, 9).progress(&[f64::NAN]).is_err());
    }

    #[test]
    fn a_run_continues_with_its_slowest_metric() {
        use StopState::{Continue, GaveUp, Reached};
        assert_eq!(run_state(&[Reached, Continue, GaveUp]), Continue);
        assert_eq!(run_state(&[Reached, GaveUp]), GaveUp);
        assert_eq!(run_state(&[Reached, Reached]), Reached);
    }
}
