//! Looking while measuring: the stop rule and `ab`.

use linerate_lab::stats::interval::mean_t;
use linerate_lab::stats::{Confidence, LookPlan, Pairing, Progress, Rule, StopRule, StopState, Verdict};

use super::Rate;
use super::intervals::{Way, centre};
use super::process::{Noise, Process, measure};
use super::verdicts::{ANY_CHANGE, changed, one};

/// What the stop rule did.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Stopped {
    /// Runs whose reported interval holds the true median.
    pub(crate) covered: Rate,
    /// Runs, of those that reached the width, whose median is within the width of the true one.
    pub(crate) within_width: Rate,
    pub(crate) gave_up: Rate,
    pub(crate) mean_repeats: f64,
}

/// The same rule on the t interval of the mean, for contrast: coverage at the stop, and mean within the width.
pub(crate) fn stop_on_mean(noise: Noise, spread: f64, runs: u32, seed: u64) -> (Rate, Rate) {
    let truth = 1_000.0 * (1.0 + spread * centre(Way::T, noise));
    let (mut covered, mut within, mut reached) = (0, 0, 0);
    for run in 0..u64::from(runs) {
        let mut process = Process::new(noise, spread, seed, run);
        let mut values = process.trials(1_000.0, 5);
        let (interval, narrow) = loop {
            values.push(process.trial(1_000.0));
            let interval = mean_t(&values, Confidence::P95).expect("finite values");
            let narrow = interval.relative_half_width().is_some_and(|half| half <= 0.02);
            if narrow || values.len() == 60 {
                break (interval, narrow);
            }
        };
        reached += u32::from(narrow);
        covered += u32::from(interval.low <= truth && truth <= interval.high);
        within += u32::from(narrow && (interval.estimate / truth - 1.0).abs() <= 0.02);
    }
    (Rate { hits: covered, of: runs }, Rate { hits: within, of: reached })
}

/// Runs the rule `--confidence 95 --width 2% --min-repeat min --max-repeat 60`.
pub(crate) fn stop(noise: Noise, spread: f64, min: u32, runs: u32, seed: u64) -> Stopped {
    let rule = StopRule::new(Confidence::P95, 0.02, min, 60).expect("a valid rule");
    let truth = 1_000.0 * (1.0 + spread * centre(Way::Median, noise));
    let (mut covered, mut within, mut gave_up, mut repeats) = (0, 0, 0, 0);
    for run in 0..runs {
        let (values, progress) =
            run_until_stop(&rule, &mut Process::new(noise, spread, seed, u64::from(run)));
        let interval = progress.interval.expect("six values or more");
        repeats += values.len();
        covered += u32::from(interval.low <= truth && truth <= interval.high);
        gave_up += u32::from(progress.state == StopState::GaveUp);
        let close = (interval.estimate / truth - 1.0).abs() <= 0.02;
        within += u32::from(progress.state == StopState::Reached && close);
    }
    Stopped {
        covered: Rate { hits: covered, of: runs },
        within_width: Rate { hits: within, of: runs - gave_up },
        gave_up: Rate { hits: gave_up, of: runs },
        mean_repeats: repeats as f64 / f64::from(runs),
    }
}

/// How often an A/A run that the stop rule ended (on both levels' widths) is then called a change.
pub(crate) fn alarm_after_stop(noise: Noise, spread: f64, runs: u32, seed: u64) -> Rate {
    let rule = StopRule::new(Confidence::P95, 0.02, 6, 40).expect("a valid rule");
    Rate::measure(runs, |run| {
        let mut process = Process::new(noise, spread, seed, run);
        let [base, new] = measure(&mut process, 40, 1.0, Pairing::ByBlock, run);
        let stop = (1..=40).find(|n| {
            [&base, &new]
                .iter()
                .all(|v| rule.progress(&v[..*n]).expect("finite values").state != StopState::Continue)
        });
        let n = stop.unwrap_or(40);
        changed(one(&base[..n], &new[..n], Pairing::ByBlock, &ANY_CHANGE).verdict)
    })
}

/// How `ab` ends within 60 blocks: the share of runs with this outcome, and the mean number of blocks.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Ended {
    pub(crate) changed: Rate,
    pub(crate) same: Rate,
    pub(crate) mean_blocks: f64,
}

const BUDGET: u32 = 60;

/// With the plan of looks, or naively after every block from the sixth on at the full 95 %.
pub(crate) fn ab(
    noise: Noise,
    spread: f64,
    ratio: f64,
    margin: f64,
    planned: bool,
    runs: u32,
    seed: u64,
) -> Ended {
    let plan = LookPlan::new(Confidence::P95, 1).expect("a table of one");
    let (mut changes, mut same, mut blocks) = (0, 0, 0);
    for run in 0..u64::from(runs) {
        let mut process = Process::new(noise, spread, seed, run);
        let values = measure(&mut process, BUDGET as usize, ratio, Pairing::ByBlock, run);
        let (verdict, used) = (6..=BUDGET)
            .filter_map(|n| {
                let last = (n == BUDGET).then(|| plan.last(n));
                let look = if planned { plan.due(n).or(last)?.confidence } else { Confidence::P95 };
                Some((judge(&values, n, Rule { confidence: look, margin }), n))
            })
            .find(|(verdict, _)| *verdict != Verdict::Undecided)
            .unwrap_or((Verdict::Undecided, BUDGET));
        changes += u32::from(changed(verdict));
        same += u32::from(verdict == Verdict::Same);
        blocks += used;
    }
    Ended {
        changed: Rate { hits: changes, of: runs },
        same: Rate { hits: same, of: runs },
        mean_blocks: f64::from(blocks) / f64::from(runs),
    }
}

fn judge(values: &[Vec<f64>; 2], blocks: u32, rule: Rule) -> Verdict {
    let n = blocks as usize;
    one(&values[0][..n], &values[1][..n], Pairing::ByBlock, &rule).verdict
}

fn run_until_stop(rule: &StopRule, process: &mut Process) -> (Vec<f64>, Progress) {
    let mut values = Vec::new();
    loop {
        values.push(process.trial(1_000.0));
        let progress = rule.progress(&values).expect("finite values");
        if progress.state != StopState::Continue {
            return (values, progress);
        }
    }
}
