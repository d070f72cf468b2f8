//! The promises of `docs/statistics.md`, held against synthetic trials with known truth. Seeds are fixed, so a failure
//! is a change of behaviour and not bad luck. A debug build runs a tenth of the trials, with wider allowance.

#[expect(dead_code, reason = "shared with the example, which prints more than is tested")]
mod simulation;

use linerate_lab::stats::{Pairing, Verdict};
use simulation::changes::{false_marks, step_found};
use simulation::intervals::{self, Way};
use simulation::process::{NOISES, Noise};
use simulation::sequences::{ab, alarm_after_stop, stop};
use simulation::verdicts::{Setup, change_claimed, coverage, settled_as_told, table_alarm, verdict_rate};

const RUNS: u32 = if cfg!(debug_assertions) { 400 } else { 4_000 };
const SEED: u64 = 1;
const QUIET: Setup =
    Setup { noise: Noise::Normal, spread: 0.01, blocks: 10, ratio: 1.0, pairing: Pairing::ByBlock };

#[test]
fn false_alarms_stay_below_5_percent_in_blocks_whatever_the_noise() {
    for noise in NOISES {
        for blocks in [6, 10, 20] {
            let rate = change_claimed(Setup { noise, blocks, ..QUIET }, RUNS, SEED);
            assert!(rate.at_most(0.05), "{noise:?}, {blocks} blocks: {rate}");
        }
    }
}

#[test]
fn false_alarms_stay_below_5_percent_in_separate_runs_of_independent_noise() {
    for noise in [Noise::Normal, Noise::Skewed, Noise::Outliers, Noise::Coarse] {
        let setup = Setup { noise, pairing: Pairing::Separate, ..QUIET };
        let rate = change_claimed(setup, RUNS, SEED);
        assert!(rate.at_most(0.05), "{noise:?}: {rate}");
    }
}

#[test]
fn false_alarms_stay_below_5_percent_over_a_whole_table() {
    for (metrics, shared) in [(4, 0.0), (4, 0.8), (10, 0.0)] {
        for noise in [Noise::Normal, Noise::Skewed] {
            let setup = Setup { noise, blocks: 12, ..QUIET };
            let rate = table_alarm(setup, metrics, shared, RUNS / 2, SEED);
            assert!(rate.at_most(0.05), "{noise:?}, {metrics} metrics, {shared} shared: {rate}");
        }
    }
}

#[test]
fn same_is_rarely_said_of_a_change_as_large_as_the_margin() {
    for ratio in [1.01, 0.99] {
        for pairing in [Pairing::ByBlock, Pairing::Separate] {
            let setup = Setup { spread: 0.004, ratio, pairing, ..QUIET };
            let rate = verdict_rate(setup, Verdict::Same, RUNS, SEED);
            assert!(rate.at_most(0.025), "{ratio} {pairing:?}: {rate}");
        }
    }
}

#[test]
fn the_interval_of_the_effect_holds_the_truth() {
    for noise in NOISES {
        let rate = coverage(Setup { noise, ratio: 0.97, ..QUIET }, RUNS, SEED);
        assert!(rate.at_least(0.95), "{noise:?}: {rate}");
    }
}

#[test]
fn a_3_percent_slowdown_is_found_in_10_blocks_of_1_percent_noise() {
    let rate = verdict_rate(Setup { ratio: 0.97, ..QUIET }, Verdict::Worse, RUNS, SEED);
    assert!(rate.share() > 0.98, "{rate}");
}

#[test]
fn drift_fools_separate_runs_and_not_blocks() {
    // Truly 3 % faster while the machine slides by 10 % in 40 trials.
    let setup = Setup { noise: Noise::Drift, ratio: 1.03, ..QUIET };
    let blocks = verdict_rate(setup, Verdict::Better, RUNS / 4, SEED);
    let separate =
        verdict_rate(Setup { pairing: Pairing::Separate, ..setup }, Verdict::Better, RUNS / 4, SEED);
    assert!(blocks.share() > 0.95 && separate.share() < 0.2, "{blocks} {separate}");
}

#[test]
fn undecided_asks_for_enough_repeats() {
    let setup = Setup { spread: 0.02, ratio: 0.97, blocks: 8, ..QUIET };
    let (settled, _) = settled_as_told(setup, RUNS / 4, SEED);
    assert!(settled.of > 20 && settled.share() > 0.7, "{settled} of {}", settled.of);
}

#[test]
fn intervals_of_mean_and_median_hold_the_truth_where_they_promise_to() {
    for (way, noise, count) in [
        (Way::T, Noise::Normal, 3),
        (Way::T, Noise::Normal, 10),
        (Way::Studentised, Noise::Normal, 10),
        (Way::Median, Noise::Normal, 8),
        (Way::Median, Noise::Skewed, 8),
        (Way::Median, Noise::Outliers, 20),
    ] {
        let (rate, _) = intervals::coverage(way, noise, count, RUNS / 4, SEED).unwrap();
        // The bootstrap's promise is approximate: one percent off is allowed.
        assert!(rate.at_least(0.94), "{way:?} {noise:?} {count}: {rate}");
    }
}

#[test]
fn the_stop_rule_keeps_the_width_it_reports() {
    for noise in [Noise::Normal, Noise::Skewed, Noise::Outliers] {
        let stopped = stop(noise, 0.03, 6, RUNS / 2, SEED);
        assert!(stopped.within_width.at_least(0.95), "{noise:?}: {}", stopped.within_width);
        // Measured: 93 % and above; looking at each repeat costs the rest.
        assert!(stopped.covered.at_least(0.935), "{noise:?}: {}", stopped.covered);
    }
    let noisy = stop(Noise::Normal, 0.3, 6, RUNS / 40, SEED);
    assert!(noisy.gave_up.share() > 0.98, "{}", noisy.gave_up);
}

#[test]
fn looking_again_and_again_raises_no_alarms() {
    let ended = ab(Noise::Normal, 0.01, 1.0, 0.0, true, RUNS / 8, SEED);
    assert!(ended.changed.at_most(0.05), "{}", ended.changed);
    let after_stop = alarm_after_stop(Noise::Normal, 0.03, RUNS / 4, SEED);
    assert!(after_stop.at_most(0.05), "{after_stop}");
    let slower = ab(Noise::Normal, 0.01, 0.97, 0.01, true, RUNS / 8, SEED);
    assert!(slower.changed.share() > 0.95, "{}", slower.changed);
}

#[test]
fn change_points_are_found_and_not_made_up() {
    for noise in [Noise::Normal, Noise::Skewed] {
        let false_rate = false_marks(noise, 30, RUNS / 10, SEED);
        assert!(false_rate.at_most(0.01), "{noise:?}: {false_rate}");
        let (close, _) = step_found(noise, 30, 0.97, RUNS / 40, SEED);
        assert!(close.at_least(0.9), "{noise:?}: {close}");
    }
}
