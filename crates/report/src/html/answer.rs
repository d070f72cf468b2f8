//! The answer in a sentence for each workload, with the numbers.

use linerate_model::Record;
use linerate_model::record::Outcome;
use linerate_model::summary::MachineCost;
use linerate_model::workload::WorkloadKind;

use super::by_factor::Quantity;
use super::factors::{RUN, Sample, Varied, independent, level, panels, phrase, varied};
use crate::table::rows::spread;

/// A sentence or two for each workload of each run.
pub(super) fn answers(samples: &[Sample<'_>]) -> Vec<String> {
    let mut answers = Vec::new();
    let runs = samples.iter().map(|s| s.run).max().map_or(0, |last| last + 1);
    for kind in WorkloadKind::ALL {
        for run in 0..runs {
            let of_kind: Vec<Sample<'_>> = samples
                .iter()
                .filter(|s| s.run == run && s.record.trial.workload.kind() == kind)
                .filter(|s| s.record.outcome == Outcome::Complete)
                .copied()
                .collect();
            let Some(first) = of_kind.first() else { continue };
            let prefix = if runs > 1 { format!("{}: ", first.run_name) } else { String::new() };
            answers.push(format!("{prefix}{}", answer(kind, &of_kind)));
        }
    }
    answers
}

/// A combination of levels, with the medians of its repeats.
struct Combination<'a> {
    name: String,
    records: Vec<&'a Record>,
}

fn answer(kind: WorkloadKind, samples: &[Sample<'_>]) -> String {
    let factors: Vec<Varied> =
        independent(varied(samples), samples).into_iter().filter(|f| f.name != RUN).collect();
    let combinations: Vec<Combination<'_>> = panels(samples, &factors)
        .into_iter()
        .map(|(name, group)| Combination { name, records: group.iter().map(|s| s.record).collect() })
        .collect();
    let what = match combinations.len() {
        1 => subject(kind, &samples[0]),
        _ => kind.name().to_owned(),
    };
    let mut sentences = if kind.is_transactional() {
        transactions(&what, &combinations)
    } else {
        stream(&what, &combinations)
    };
    if let [only] = combinations.as_slice() {
        let limiter = only.records[0].limit.limiter;
        if only.records.iter().all(|r| r.limit.limiter == limiter) {
            sentences.push(format!("Limited by: {}.", limiter.name()));
        }
    }
    sentences.join(" ")
}

/// `tcp-stream (size 128K, streams 1, IPv4)`.
fn subject(kind: WorkloadKind, sample: &Sample<'_>) -> String {
    let parts: Vec<String> = ["size", "request", "response", "streams", "family"]
        .into_iter()
        .map(|name| (name, level(name, sample)))
        .filter(|(_, level)| !level.is_empty())
        .map(|(name, level)| phrase(name, &level))
        .collect();
    format!("{} ({})", kind.name(), parts.join(", "))
}

fn stream(what: &str, combinations: &[Combination<'_>]) -> Vec<String> {
    let goodput = range(combinations, Quantity::BitRate, |r| Some(r.summary.goodput_bits_per_second));
    let mut text = format!("{what} carried {}", goodput.unwrap_or_else(|| "nothing".to_owned()));
    if let Some(cost) = cost(combinations, Quantity::PerKib, |c| c.service_demand_us_per_kib) {
        text += &cost;
    }
    text.push('.');
    let mut sentences = vec![text];
    let loss = range(combinations, Quantity::Percent, |r| r.summary.loss.as_ref().map(|l| l.lost_percent));
    if let Some(loss) = loss {
        sentences.push(format!("Of the datagrams, {loss} were lost."));
    }
    sentences
}

fn transactions(what: &str, combinations: &[Combination<'_>]) -> Vec<String> {
    let rate =
        range(combinations, Quantity::PerSecond("transactions/s"), |r| r.summary.transactions_per_second);
    let mut text = format!("{what} made {} transactions a second", rate.unwrap_or_else(|| "no".to_owned()));
    let cost = cost(combinations, Quantity::PerTransaction, |c| c.service_demand_us_per_transaction);
    text += &cost.unwrap_or_default();
    text.push('.');
    let mut sentences = vec![text];
    let p50 =
        range(combinations, Quantity::Nanoseconds, |r| r.summary.latency.as_ref().map(|l| l.p50_ns as f64));
    let p99 =
        range(combinations, Quantity::Nanoseconds, |r| r.summary.latency.as_ref().map(|l| l.p99_ns as f64));
    if let (Some(p50), Some(p99)) = (p50, p99) {
        sentences.push(format!("Half of them took at most {p50}; 99\u{a0}% took at most {p99}."));
    }
    sentences
}

/// `, for 0.512 us/KB of CPU time, both nodes together`.
fn cost(
    combinations: &[Combination<'_>],
    quantity: Quantity,
    demand: fn(&MachineCost) -> Option<f64>,
) -> Option<String> {
    let shared = combinations.iter().flat_map(|c| &c.records).all(|r| r.summary.cpu.shared.is_some());
    if shared {
        let per = range(combinations, quantity, |r| r.summary.cpu.shared.as_ref().and_then(demand))?;
        let busy = busy(combinations, |r| r.summary.cpu.shared.as_ref());
        return Some(format!(", for {per} of CPU time, both nodes together{busy}"));
    }
    let dut = range(combinations, quantity, |r| r.summary.cpu.dut.as_ref().and_then(demand))?;
    let peer = range(combinations, quantity, |r| r.summary.cpu.peer.as_ref().and_then(demand))?;
    let dut_busy = busy(combinations, |r| r.summary.cpu.dut.as_ref());
    let peer_busy = busy(combinations, |r| r.summary.cpu.peer.as_ref());
    Some(format!(", for {dut} of CPU time on the dut{dut_busy} and {peer} on the peer{peer_busy}"))
}

/// ` (98 % of one CPU)`; empty for several combinations, of which the tables and plots tell.
fn busy(combinations: &[Combination<'_>], machine: fn(&Record) -> Option<&MachineCost>) -> String {
    let [_] = combinations else { return String::new() };
    let percent = range(combinations, Quantity::Cpu, |r| machine(r).map(|c| c.busy_percent));
    percent.map(|p| format!(" ({p} of one CPU)")).unwrap_or_default()
}

/// The median of the only combination, or `least (where) to most (where)` over all; `None` where none has the figure.
fn range(
    combinations: &[Combination<'_>],
    quantity: Quantity,
    of: impl Fn(&Record) -> Option<f64>,
) -> Option<String> {
    let median = |c: &Combination<'_>| spread(c.records.iter().filter_map(|r| of(r))).map(|s| s.median);
    let mut all: Vec<(f64, &str)> =
        combinations.iter().filter_map(|c| Some((median(c)?, c.name.as_str()))).collect();
    all.sort_by(|a, b| a.0.total_cmp(&b.0));
    let (least, most) = (all.first()?, all.last()?);
    if quantity.text(least.0) == quantity.text(most.0) {
        return Some(quantity.text(least.0));
    }
    Some(format!("{} ({}) to {} ({})", quantity.text(least.0), least.1, quantity.text(most.0), most.1))
}
