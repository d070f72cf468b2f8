//! Verdicts on trials whose true difference is known.

use linerate_lab::stats::{
    Compared, Comparison, Confidence, Direction, MoreRepeats, Pairing, Rule, Verdict, compare,
};

use super::Rate;
use super::process::{Noise, Process, measure};

pub(crate) const ANY_CHANGE: Rule = Rule { confidence: Confidence::P95, margin: 0.0 };
pub(crate) const ONE_PERCENT: Rule = Rule { confidence: Confidence::P95, margin: 0.01 };

/// What is measured, and how.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Setup {
    pub(crate) noise: Noise,
    pub(crate) spread: f64,
    pub(crate) blocks: usize,
    pub(crate) ratio: f64,
    pub(crate) pairing: Pairing,
}

impl Setup {
    pub(crate) fn values(&self, seed: u64, run: u64) -> [Vec<f64>; 2] {
        let mut process = Process::new(self.noise, self.spread, seed, run);
        measure(&mut process, self.blocks, self.ratio, self.pairing, run)
    }

    fn compared(&self, rule: &Rule, seed: u64, run: u64) -> Compared {
        let [base, new] = self.values(seed, run);
        one(&base, &new, self.pairing, rule)
    }
}

pub(crate) fn one(base: &[f64], new: &[f64], pairing: Pairing, rule: &Rule) -> Compared {
    let table = [Comparison { direction: Direction::HigherIsBetter, base, new, pairing }];
    compare(&table, rule).expect("a valid rule").remove(0).expect("values above zero")
}

pub(crate) fn changed(verdict: Verdict) -> bool {
    matches!(verdict, Verdict::Better | Verdict::Worse)
}

/// How often a change is claimed, of whatever size.
pub(crate) fn change_claimed(setup: Setup, runs: u32, seed: u64) -> Rate {
    Rate::measure(runs, |run| changed(setup.compared(&ANY_CHANGE, seed, run).verdict))
}

/// How often this verdict is given with a margin of 1 %.
pub(crate) fn verdict_rate(setup: Setup, verdict: Verdict, runs: u32, seed: u64) -> Rate {
    Rate::measure(runs, |run| setup.compared(&ONE_PERCENT, seed, run).verdict == verdict)
}

/// How often the interval holds the true ratio.
pub(crate) fn coverage(setup: Setup, runs: u32, seed: u64) -> Rate {
    let truth = (setup.ratio - 1.0) * 100.0;
    Rate::measure(runs, |run| {
        setup
            .compared(&ONE_PERCENT, seed, run)
            .interval
            .is_some_and(|range| range.low <= truth + 1e-9 && truth <= range.high + 1e-9)
    })
}

/// How often a table of metrics claims any change when there is none. `shared` of each metric's noise (a share of its
/// variance) is common to all of them, as goodput and CPU share a disturbance.
pub(crate) fn table_alarm(setup: Setup, metrics: usize, shared: f64, runs: u32, seed: u64) -> Rate {
    Rate::measure(runs, |run| {
        let common = setup.values(seed, run);
        let own: Vec<[Vec<f64>; 2]> =
            (1..=metrics as u64).map(|metric| setup.values(seed + metric, run)).collect();
        let mixed: Vec<[Vec<f64>; 2]> = own
            .iter()
            .map(|own| [mix(&common[0], &own[0], shared), mix(&common[1], &own[1], shared)])
            .collect();
        any_change(&mixed, setup.pairing)
    })
}

/// How often a change is claimed after waiting for the number of blocks that an undecided verdict asked for, and how
/// often it was asked for at all.
pub(crate) fn settled_as_told(setup: Setup, runs: u32, seed: u64) -> (Rate, f64) {
    let (mut asked, mut settled, mut total) = (0, 0, 0);
    for run in 0..u64::from(runs) {
        let compared = setup.compared(&ONE_PERCENT, seed, run);
        let Some(MoreRepeats::Likely(more)) = compared.more_repeats else { continue };
        asked += 1;
        total += more;
        let longer = Setup { blocks: setup.blocks + more, ..setup };
        // The same run goes on: its first blocks are those already seen.
        if longer.compared(&ONE_PERCENT, seed, run).verdict != Verdict::Undecided {
            settled += 1;
        }
    }
    (Rate { hits: settled, of: asked }, total as f64 / f64::from(asked.max(1)))
}

/// How often separate runs of equal level are called changed when the new one is three times as noisy.
pub(crate) fn uneven_alarm(base: usize, new: usize, runs: u32, seed: u64) -> Rate {
    Rate::measure(runs, |run| {
        let base = Process::new(Noise::Normal, 0.01, seed, run).trials(1_000.0, base);
        let new = Process::new(Noise::Normal, 0.03, seed + 1, run).trials(1_000.0, new);
        changed(one(&base, &new, Pairing::Separate, &ANY_CHANGE).verdict)
    })
}

fn mix(common: &[f64], own: &[f64], shared: f64) -> Vec<f64> {
    common
        .iter()
        .zip(own)
        .map(|(c, o)| 1_000.0 + (c - 1_000.0) * shared.sqrt() + (o - 1_000.0) * (1.0 - shared).sqrt())
        .collect()
}

fn any_change(metrics: &[[Vec<f64>; 2]], pairing: Pairing) -> bool {
    let table: Vec<Comparison<'_>> = metrics
        .iter()
        .map(|[base, new]| Comparison { direction: Direction::LowerIsBetter, base, new, pairing })
        .collect();
    let judged = compare(&table, &ANY_CHANGE).expect("a valid rule");
    judged.into_iter().any(|row| changed(row.expect("values above zero").verdict))
}
