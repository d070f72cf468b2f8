//! Where the figures of a combination stand after some repeats.

use linerate_model::record::{Outcome, Record};

use crate::figures;
use crate::plan::Until;
use crate::stats::confidence::Confidence;
use crate::stats::error::StatsError;
use crate::stats::stop::{Progress, StopRule};

/// One figure of one combination.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Standing {
    /// The figure's word.
    pub metric: &'static str,
    /// Repeats so far.
    pub repeats: usize,
    /// Median, interval and state.
    pub progress: Progress,
}

/// The watched figures of a combination by the stop rule. A rule that makes no sense (it was checked when it was asked
/// for) and figures that are no numbers have no standing.
pub fn of(records: &[Record], combination: usize, until: &Until) -> Vec<Standing> {
    let Ok(rule) = rule(until) else { return Vec::new() };
    let mine = || {
        records
            .iter()
            .filter(move |r| r.combination == Some(combination as u32) && r.outcome == Outcome::Complete)
    };
    let Some(first) = mine().next() else { return Vec::new() };
    figures::watched(first)
        .into_iter()
        .enumerate()
        .filter_map(|(at, figure)| {
            let values: Vec<f64> =
                mine().filter_map(|r| figures::watched(r).get(at).map(|f| f.value)).collect();
            let progress = rule.progress(&values).ok()?;
            Some(Standing { metric: figure.name, repeats: values.len(), progress })
        })
        .collect()
}

/// The rule with checked values.
///
/// # Errors
/// For a confidence, a width or numbers of repeats that make no sense.
pub fn rule(until: &Until) -> Result<StopRule, StatsError> {
    let confidence = Confidence::from_percent(until.confidence_percent)?;
    StopRule::new(confidence, until.width, until.min, until.max)
}
