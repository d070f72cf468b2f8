//! Prints the measured error rates, coverage and power that `docs/statistics.md` shows.
//!
//! `cargo run --release -p linerate-lab --example statistics [RUNS]`; 10 000 runs a figure unless told.

#[path = "../tests/simulation/mod.rs"]
#[expect(dead_code, reason = "shared with the test")]
mod simulation;

use linerate_lab::stats::{Pairing, Verdict};
use simulation::changes::{false_marks, step_found};
use simulation::intervals::{self, WAYS};
use simulation::process::{NOISES, Noise};
use simulation::sequences::{ab, alarm_after_stop, stop, stop_on_mean};
use simulation::verdicts::{
    Setup, change_claimed, coverage, settled_as_told, table_alarm, uneven_alarm, verdict_rate,
};

const SEED: u64 = 20_260_801;
const QUIET: Setup =
    Setup { noise: Noise::Normal, spread: 0.01, blocks: 10, ratio: 1.0, pairing: Pairing::ByBlock };

fn main() {
    let runs = std::env::args().nth(1).and_then(|runs| runs.parse().ok()).unwrap_or(10_000);
    println!("{runs} runs a figure, seed {SEED}\n");
    alarms(runs);
    uneven(runs);
    tables(runs);
    sameness(runs);
    effect_coverage(runs);
    power(runs);
    drift(runs);
    advice(runs / 5);
    mean_intervals(runs / 5);
    stopping(runs);
    looking(runs / 2);
    changes(runs / 10);
}

fn alarms(runs: u32) {
    println!("### A/A: a change is claimed\n");
    println!(
        "| noise | 6 blocks | 10 blocks | 20 blocks | 10 + 10 separate | 20 + 20 separate |\n|---|---|---|---|---|---|"
    );
    for noise in NOISES {
        let rate = |blocks, pairing| change_claimed(Setup { noise, blocks, pairing, ..QUIET }, runs, SEED);
        let paired = [6, 10, 20].map(|blocks| rate(blocks, Pairing::ByBlock));
        let separate = [10, 20].map(|blocks| rate(blocks, Pairing::Separate));
        row(&format!("{noise:?}"), paired.iter().chain(&separate));
    }
    println!();
}

fn uneven(runs: u32) {
    println!("### A/A, separate runs, the new one three times as noisy: a change is claimed\n");
    println!("| 10 + 10 | 20 + 20 | 30 + 10 | 10 + 30 |\n|---|---|---|---|");
    let rates =
        [(10, 10), (20, 20), (30, 10), (10, 30)].map(|(base, new)| uneven_alarm(base, new, runs, SEED));
    println!("| {} |\n", rates.map(|rate| rate.to_string()).join(" | "));
}

fn tables(runs: u32) {
    println!("### A/A over a table: any change is claimed (Holm)\n");
    println!(
        "| metrics, noise in common | Normal, 12 blocks | Skewed, 12 blocks | Outliers, 12 blocks | Normal, 10 + 10 separate |\n|---|---|---|---|---|"
    );
    for (metrics, shared) in [(4, 0.0), (4, 0.8), (10, 0.0), (10, 0.8)] {
        let rate = |noise, blocks, pairing| {
            table_alarm(Setup { noise, blocks, pairing, ..QUIET }, metrics, shared, runs / 2, SEED)
        };
        let paired = [Noise::Normal, Noise::Skewed, Noise::Outliers].map(|n| rate(n, 12, Pairing::ByBlock));
        let separate = rate(Noise::Normal, 10, Pairing::Separate);
        row(&format!("{metrics}, {shared:.0$}", 1), paired.iter().chain([&separate]));
    }
    println!();
}

fn sameness(runs: u32) {
    println!("### `same` is claimed, margin 1 %, noise 0.4 %\n");
    println!(
        "| true difference | 6 blocks | 10 blocks | 20 blocks | 10 + 10 separate |\n|---|---|---|---|---|"
    );
    for (name, ratio) in [("0", 1.0), ("0.5 %", 1.005), ("1 % (false)", 1.01), ("-1 % (false)", 0.99)] {
        let rate = |blocks, pairing| {
            let setup = Setup { spread: 0.004, ratio, blocks, pairing, ..QUIET };
            verdict_rate(setup, Verdict::Same, runs, SEED)
        };
        let paired = [6, 10, 20].map(|blocks| rate(blocks, Pairing::ByBlock));
        row(name, paired.iter().chain([&rate(10, Pairing::Separate)]));
    }
    println!();
}

fn effect_coverage(runs: u32) {
    println!("### The effect's 95 % interval holds the truth (3 % slower)\n");
    println!(
        "| noise | 6 blocks | 10 blocks | 20 blocks | 10 + 10 separate | 20 + 20 separate |\n|---|---|---|---|---|---|"
    );
    for noise in NOISES {
        let rate =
            |blocks, pairing| coverage(Setup { noise, blocks, pairing, ratio: 0.97, ..QUIET }, runs, SEED);
        let paired = [6, 10, 20].map(|blocks| rate(blocks, Pairing::ByBlock));
        let separate = [10, 20].map(|blocks| rate(blocks, Pairing::Separate));
        row(&format!("{noise:?}"), paired.iter().chain(&separate));
    }
    println!();
}

fn power(runs: u32) {
    println!("### Power: `worse` with margin 1 %, paired, one metric\n");
    println!(
        "| noise, slower by | 6 blocks | 8 | 10 | 15 | 20 | 30 | 10 + 10 separate |\n|---|---|---|---|---|---|---|---|"
    );
    for (noise, spread) in [
        (Noise::Normal, 0.01),
        (Noise::Normal, 0.02),
        (Noise::Normal, 0.03),
        (Noise::Skewed, 0.01),
        (Noise::Outliers, 0.01),
    ] {
        for slower in [0.02, 0.03, 0.05] {
            let rate = |blocks, pairing| {
                let setup = Setup { noise, spread, ratio: 1.0 - slower, blocks, pairing };
                verdict_rate(setup, Verdict::Worse, runs / 5, SEED)
            };
            let paired = [6, 8, 10, 15, 20, 30].map(|blocks| rate(blocks, Pairing::ByBlock));
            let separate = rate(10, Pairing::Separate);
            let name = format!("{noise:?} {:.0} %, {:.0} %", spread * 100.0, slower * 100.0);
            row(&name, paired.iter().chain([&separate]));
        }
    }
    println!();
}

fn drift(runs: u32) {
    println!("### Drift: 10 blocks, noise 1 %, sliding 0.25 % a trial, new truly 3 % faster\n");
    println!("| | better | worse |\n|---|---|---|");
    for (name, pairing) in
        [("paired by block", Pairing::ByBlock), ("base first, then new", Pairing::Separate)]
    {
        let setup = Setup { noise: Noise::Drift, ratio: 1.03, pairing, ..QUIET };
        let rates = [Verdict::Better, Verdict::Worse].map(|v| verdict_rate(setup, v, runs / 5, SEED));
        row(name, rates.iter());
    }
    println!();
}

fn advice(runs: u32) {
    println!("### Undecided: settled after the repeats it asked for (margin 1 %)\n");
    println!("| setup | settled | repeats asked for, mean |\n|---|---|---|");
    for (noise, spread, ratio, blocks) in [
        (Noise::Normal, 0.01, 0.97, 5),
        (Noise::Normal, 0.02, 0.97, 8),
        (Noise::Normal, 0.01, 1.0, 10),
        (Noise::Normal, 0.02, 1.0, 15),
        (Noise::Outliers, 0.01, 0.98, 8),
        (Noise::Skewed, 0.02, 0.98, 8),
    ] {
        let (rate, mean) =
            settled_as_told(Setup { noise, spread, ratio, blocks, ..QUIET }, runs.min(2_000), SEED);
        println!(
            "| {noise:?} {spread}, ratio {ratio}, {blocks} blocks | {rate} of {} | {mean:.1} |",
            rate.of
        );
    }
    println!();
}

fn mean_intervals(runs: u32) {
    println!("### Coverage of 95 % intervals of mean and median (median full width, % of the level)\n");
    println!("| noise 5 %, method | n = 3 | 5 | 10 | 20 | 30 |\n|---|---|---|---|---|---|");
    for noise in [Noise::Normal, Noise::Skewed, Noise::Outliers, Noise::Autocorrelated] {
        for way in WAYS {
            let cells = [3, 5, 10, 20, 30].map(|count| {
                intervals::coverage(way, noise, count, runs, SEED)
                    .map_or_else(|| "too few".to_owned(), |(rate, width)| format!("{rate} ({width:.1})"))
            });
            row(&format!("{noise:?}, {way:?}"), cells.iter());
        }
    }
    println!();
}

fn stopping(runs: u32) {
    println!("### The stop rule: 95 %, width 2 %, 6 to 60 repeats\n");
    println!(
        "| noise | interval holds the median | median within 2 % when reached | gave up | repeats | the same on the mean: interval holds it | mean within 2 % when reached |\n|---|---|---|---|---|---|---|"
    );
    for noise in [Noise::Normal, Noise::Skewed, Noise::Outliers, Noise::Autocorrelated] {
        for spread in [0.01, 0.03, 0.05, 0.1] {
            let s = stop(noise, spread, 6, runs / 2, SEED);
            let (held, within) = stop_on_mean(noise, spread, runs / 2, SEED);
            println!(
                "| {noise:?} {:.0} % | {} | {} | {} | {:.1} | {held} | {within} |",
                spread * 100.0,
                s.covered,
                s.within_width,
                s.gave_up,
                s.mean_repeats
            );
        }
    }
    println!(
        "\nA/A after a run that the stop rule ended, a change is claimed:\n\n| noise | 1 % | 3 % | 5 % |\n|---|---|---|---|"
    );
    for noise in [Noise::Normal, Noise::Skewed, Noise::Outliers] {
        let rates = [0.01, 0.03, 0.05].map(|spread| alarm_after_stop(noise, spread, runs / 5, SEED));
        row(&format!("{noise:?}"), rates.iter());
    }
    println!();
}

fn looking(runs: u32) {
    println!("### `ab`: budget of 60 blocks\n");
    println!("| run | change claimed | same claimed | blocks |\n|---|---|---|---|");
    for (name, noise, spread, ratio, margin, planned) in [
        ("A/A, any change, planned looks", Noise::Normal, 0.01, 1.0, 0.0, true),
        ("A/A, any change, a look after every block at 95 %", Noise::Normal, 0.01, 1.0, 0.0, false),
        ("A/A skewed, planned looks", Noise::Skewed, 0.01, 1.0, 0.0, true),
        ("A/A, margin 1 %", Noise::Normal, 0.01, 1.0, 0.01, true),
        ("A/A, margin 1 %, noise 2 %", Noise::Normal, 0.02, 1.0, 0.01, true),
        ("3 % slower, margin 1 %", Noise::Normal, 0.01, 0.97, 0.01, true),
        ("3 % slower, margin 1 %, noise 3 %", Noise::Normal, 0.03, 0.97, 0.01, true),
        ("3 % slower, margin 1 %, outliers", Noise::Outliers, 0.01, 0.97, 0.01, true),
    ] {
        let ended = ab(noise, spread, ratio, margin, planned, runs / 5, SEED);
        println!("| {name} | {} | {} | {:.1} |", ended.changed, ended.same, ended.mean_blocks);
    }
    println!();
}

fn changes(runs: u32) {
    println!("### Change points, 1 % significance\n");
    println!(
        "| noise 1 % | none, 30 values: marked | none, 60 | none, 120 | 3 % step in 30: one mark within 2 | in 60 | 1.5 % step in 60 | any mark |\n|---|---|---|---|---|---|---|---|"
    );
    for noise in [Noise::Normal, Noise::Skewed, Noise::Outliers, Noise::Autocorrelated] {
        let none = [30, 60, 120].map(|length| false_marks(noise, length, runs, SEED));
        let steps = [(30, 0.97), (60, 0.97), (60, 0.985)]
            .map(|(length, ratio)| step_found(noise, length, ratio, runs / 2, SEED));
        let close = steps.map(|(close, _)| close);
        row(&format!("{noise:?}"), none.iter().chain(&close).chain([&steps[2].1]));
    }
}

fn row<'a, T: std::fmt::Display + 'a>(name: &str, cells: impl Iterator<Item = &'a T>) {
    let cells: Vec<String> = cells.map(ToString::to_string).collect();
    println!("| {name} | {} |", cells.join(" | "));
}
