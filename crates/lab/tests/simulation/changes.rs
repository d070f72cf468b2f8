//! Change points in series with and without a step.

use linerate_lab::stats::{ChangeRule, change_points};

use super::Rate;
use super::process::{Noise, Process};

/// How often a level series gets a mark.
pub(crate) fn false_marks(noise: Noise, length: usize, runs: u32, seed: u64) -> Rate {
    Rate::measure(runs, |run| {
        let values = Process::new(noise, 0.01, seed, run).trials(1_000.0, length);
        !change_points(&values, &ChangeRule::seeded(run)).expect("a valid rule and finite values").is_empty()
    })
}

/// How often a step in the middle is marked exactly once: at most two places off, and at all.
pub(crate) fn step_found(noise: Noise, length: usize, ratio: f64, runs: u32, seed: u64) -> (Rate, Rate) {
    let (mut close, mut any) = (0, 0);
    for run in 0..u64::from(runs) {
        let mut process = Process::new(noise, 0.01, seed, run);
        let mut values = process.trials(1_000.0, length / 2);
        values.extend(process.trials(1_000.0 * ratio, length - length / 2));
        let found = change_points(&values, &ChangeRule::seeded(run)).expect("a valid rule and finite values");
        any += u32::from(!found.is_empty());
        close += u32::from(found.len() == 1 && found[0].index.abs_diff(length / 2) <= 2);
    }
    (Rate { hits: close, of: runs }, Rate { hits: any, of: runs })
}
