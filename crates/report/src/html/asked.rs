//! What was asked for.

use linerate_model::Record;
use linerate_model::factor;
use linerate_model::trial::Amount;
use linerate_model::units::ByteCount;

use super::Run;
use super::factors::{Sample, phrase, varied};
use crate::left_out_line;
use crate::numbers;

/// Lines about what a run was asked for: (what, its value).
pub(super) fn asked(run: &Run<'_>) -> Vec<(String, String)> {
    let samples: Vec<Sample<'_>> =
        run.records.iter().map(|record| Sample { run: 0, run_name: &run.name, record }).collect();
    let Some(first) = run.records.first() else { return Vec::new() };
    let mut lines = Vec::new();
    let mut add = |name: &str, value: String| lines.push((name.to_owned(), value));
    add("workload", distinct(run.records.iter().map(|r| r.trial.workload.kind().name())));
    add("between", between(run.records, first));
    let varied = varied(&samples);
    for factor in varied.iter().filter(|f| f.name != "workload") {
        let levels: Vec<&str> =
            factor.levels.iter().map(|l| l.text.as_str()).filter(|l| !l.is_empty()).collect();
        if levels.len() > 1 {
            add(&format!("varied: {}", factor.name), levels.join(", "));
        }
    }
    let fixed: Vec<String> = factor::levels(&first.trial)
        .into_iter()
        .filter(|l| l.factor != "workload" && !factor::is_plain(&l.factor, &l.value))
        .filter(|l| !varied.iter().any(|f| f.name == l.factor))
        .map(|l| phrase(&l.factor, &l.value))
        .collect();
    if !fixed.is_empty() {
        add("the same in all", fixed.join(", "));
    }
    for one in run.left_out {
        add("left out", left_out_line(one));
    }
    add("how often", how_often(run.records, first));
    add("when", when(run.records));
    if let Some(seed) = first.seed {
        add("seed of the order", seed.to_string());
    }
    lines
}

fn between(records: &[Record], first: &Record) -> String {
    let most = records.iter().max_by_key(|r| r.peers.len()).unwrap_or(first);
    match most.peers.as_slice() {
        [] => format!("{} (dut) and {} (peer)", first.dut.node, first.peer.node),
        peers => {
            let peers: Vec<String> = peers.iter().map(|p| p.node.to_string()).collect();
            format!("{} (dut) and {} (peers)", first.dut.node, peers.join(", "))
        }
    }
}

fn how_often(records: &[Record], first: &Record) -> String {
    let each = match first.trial.amount {
        Amount::DurationNs(ns) => {
            format!(
                "{} of measuring after {} of warm-up",
                numbers::time(ns),
                numbers::time(first.trial.warmup_ns)
            )
        }
        Amount::Bytes(bytes) => format!("{} bytes in each direction", ByteCount(bytes)),
        Amount::Transactions(count) => format!("{count} transactions"),
        Amount::Whole => "the whole profile".to_owned(),
    };
    let trials = records.len();
    let s = if trials == 1 { "" } else { "s" };
    let most = records.iter().map(|r| r.trial.repeat).max().unwrap_or(0) + 1;
    let times = if most == 1 {
        "each combination once".to_owned()
    } else {
        format!("each combination up to {most} times")
    };
    format!("{trials} trial{s}, {times}, {each}")
}

fn when(records: &[Record]) -> String {
    let short = |at: &str| at.split('.').next().unwrap_or_default().trim_end_matches('Z').replace('T', " ");
    let starts = || records.iter().map(|r| r.started_at.as_str());
    match (starts().min(), starts().max()) {
        (Some(first), Some(last)) if first == last => format!("{} UTC", short(first)),
        (Some(first), Some(last)) => format!("{} to {} UTC", short(first), short(last)),
        _ => String::new(),
    }
}

fn distinct<'a>(texts: impl Iterator<Item = &'a str>) -> String {
    let mut known: Vec<&str> = Vec::new();
    for text in texts {
        if !known.contains(&text) {
            known.push(text);
        }
    }
    known.join(", ")
}
