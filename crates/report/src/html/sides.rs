//! Several runs side by side: the medians of what they have in common, and the difference from the first.

use linerate_model::Record;
use linerate_model::Trial;
use linerate_model::record::Outcome;

use super::Run;
use super::by_factor::Quantity;
use super::chart::FigureTable;
use crate::metric::effect;
use crate::table::rows::spread;
use crate::trial_text::trial_text;

/// For each trial that at least two runs have, a row for each figure; a column for each run.
pub(super) fn table(runs: &[Run<'_>]) -> FigureTable {
    let mut trials: Vec<Trial> = Vec::new();
    for record in runs.iter().flat_map(|r| r.records) {
        let plain = plain(&record.trial);
        if !trials.contains(&plain) {
            trials.push(plain);
        }
    }
    let mut head = vec!["figure".to_owned()];
    for (place, run) in runs.iter().enumerate() {
        head.push(run.name.clone());
        if place > 0 {
            head.push("difference".to_owned());
        }
    }
    let mut rows = Vec::new();
    for trial in &trials {
        let in_runs = runs.iter().filter(|r| r.records.iter().any(|x| plain(&x.trial) == *trial)).count();
        if in_runs < 2 {
            continue;
        }
        // A row of one cell is the head of those below it.
        rows.push(vec![trial_text(trial)]);
        for (figure, quantity, of) in FIGURES {
            let medians: Vec<Option<f64>> = runs.iter().map(|run| median(run, trial, of)).collect();
            if medians.iter().all(|m| m.is_none_or(|v| v == 0.0)) {
                continue;
            }
            let mut row = vec![figure.to_owned()];
            for (place, value) in medians.iter().enumerate() {
                row.push(value.map(|v| quantity.text(v)).unwrap_or_default());
                if place > 0 {
                    row.push(difference(medians[0], *value));
                }
            }
            rows.push(row);
        }
    }
    FigureTable { head, rows }
}

type Of = fn(&Record) -> Option<f64>;

const FIGURES: [(&str, Quantity, Of); 8] = [
    ("goodput", Quantity::BitRate, |r| {
        (!r.trial.workload.kind().is_transactional()).then_some(r.summary.goodput_bits_per_second)
    }),
    ("transactions/s", Quantity::PerSecond("transactions/s"), |r| r.summary.transactions_per_second),
    ("p50", Quantity::Nanoseconds, |r| r.summary.latency.as_ref().map(|l| l.p50_ns as f64)),
    ("p99", Quantity::Nanoseconds, |r| r.summary.latency.as_ref().map(|l| l.p99_ns as f64)),
    ("lost", Quantity::Percent, |r| r.summary.loss.as_ref().map(|l| l.lost_percent)),
    ("CPU, shared machine", Quantity::Cpu, |r| r.summary.cpu.shared.as_ref().map(|c| c.busy_percent)),
    ("CPU, dut", Quantity::Cpu, |r| r.summary.cpu.dut.as_ref().map(|c| c.busy_percent)),
    ("CPU, peer", Quantity::Cpu, |r| r.summary.cpu.peer.as_ref().map(|c| c.busy_percent)),
];

fn plain(trial: &Trial) -> Trial {
    Trial { repeat: 0, ..trial.clone() }
}

fn median(run: &Run<'_>, trial: &Trial, of: Of) -> Option<f64> {
    let here = run.records.iter().filter(|r| r.outcome == Outcome::Complete && plain(&r.trial) == *trial);
    spread(here.filter_map(of)).map(|s| s.median)
}

fn difference(first: Option<f64>, value: Option<f64>) -> String {
    match (first, value) {
        (Some(first), Some(value)) if first != 0.0 => effect((value / first - 1.0) * 100.0),
        _ => String::new(),
    }
}
