//! Plots over the intervals of trials: rate and CPU.

use linerate_model::reading::{IntervalReading, IntervalStream};
use linerate_model::summary::percent;
use linerate_model::units::{bits_per_second, per_second, total};
use linerate_model::workload::WorkloadKind;

use super::by_factor::Quantity;
use super::chart::{Axis, Chart, FigureTable, Form, Point, Series};
use super::factors::{Roles, Sample};
use super::lines::{Group, groups};
use crate::table::rows::spread;

/// Rate and CPU over time, for trials that have intervals; and what has no room.
pub(super) fn charts(samples: &[Sample<'_>], roles: Option<&Roles>) -> (Vec<Chart>, Option<String>) {
    let timed: Vec<Sample<'_>> =
        samples.iter().filter(|s| s.record.dut.reading.intervals.len() > 1).copied().collect();
    if timed.is_empty() {
        return (Vec::new(), None);
    }
    let (groups, note) = groups(&timed, roles);
    let mut charts = Vec::new();
    for group in &groups {
        let transactional = group.lines[0].1[0].record.trial.workload.kind().is_transactional();
        if transactional {
            let quantity = Quantity::PerSecond("transactions/s");
            charts.extend(chart("Transactions over time", quantity, group, transactions));
        } else {
            charts.extend(chart("Goodput over time", Quantity::BitRate, group, goodput));
        }
        if timed.iter().all(|s| s.record.shared_kernel) {
            charts.extend(chart("CPU of both nodes over time", Quantity::Cpu, group, |s| {
                busy(&s.record.dut.reading.intervals)
            }));
        } else {
            charts.extend(chart("CPU of the dut over time", Quantity::Cpu, group, |s| {
                busy(&s.record.dut.reading.intervals)
            }));
            charts.extend(chart("CPU of the peer over time", Quantity::Cpu, group, |s| {
                busy(&s.record.peer.reading.intervals)
            }));
        }
    }
    (charts, note)
}

/// (middle of the interval in seconds, figure) of a trial.
type Values = Vec<(f64, f64)>;

fn chart(
    what: &str,
    quantity: Quantity,
    group: &Group<'_>,
    values: fn(&Sample<'_>) -> Values,
) -> Option<Chart> {
    let mut raw: Vec<(String, usize, Values)> = Vec::new();
    for (style, (name, samples)) in group.lines.iter().enumerate() {
        raw.extend(samples.iter().map(|s| (name.clone(), style, values(s))));
    }
    let all = || raw.iter().flat_map(|(_, _, values)| values);
    let unit = quantity.unit(all().map(|v| v.1).fold(0.0, f64::max));
    let (end, top) =
        all().fold((0.0_f64, 0.0_f64), |(end, top), v| (end.max(v.0), top.max(v.1 / unit.scale)));
    if end == 0.0 {
        return None;
    }
    let table = table(&raw, quantity);
    let series = raw.into_iter().map(|(name, style, values)| Series {
        name,
        style,
        points: values
            .into_iter()
            .map(|(at, value)| Point {
                x: at,
                y: value / unit.scale,
                spread: None,
                at: String::new(),
                text: String::new(),
            })
            .collect(),
    });
    Some(Chart {
        title: group.title(what),
        description: "Each point is an interval, drawn at its middle; repeats are lines of one colour."
            .to_owned(),
        x: Axis { from: 0.0, ..Axis::from_zero("seconds since the window opened".to_owned(), end) },
        y: Axis::from_zero(unit.name.to_owned(), top),
        form: Form::Lines,
        series: series.collect(),
        marks: Vec::new(),
        table: Some(table),
    })
}

/// A row for each line: its least, median and greatest interval.
fn table(raw: &[(String, usize, Values)], quantity: Quantity) -> FigureTable {
    let head = ["trial", "intervals", "least", "median", "most"].map(str::to_owned).to_vec();
    let rows = raw.iter().filter_map(|(name, _, values)| {
        let s = spread(values.iter().map(|v| v.1))?;
        let name = if name.is_empty() { "the trial" } else { name };
        Some(vec![
            name.to_owned(),
            values.len().to_string(),
            quantity.text(s.least),
            quantity.text(s.median),
            quantity.text(s.most),
        ])
    });
    FigureTable { head, rows: rows.collect() }
}

/// Its middle, seconds after the window's start.
fn seconds(interval: &IntervalReading) -> f64 {
    (interval.start_ns as f64 + interval.duration_ns as f64 / 2.0) / 1e9
}

fn sum(interval: &IntervalReading, figure: impl Fn(&IntervalStream) -> u64) -> u64 {
    total(interval.streams.iter().map(figure))
}

/// What the receivers got, all directions together.
fn goodput(sample: &Sample<'_>) -> Values {
    let (dut, peer) = (&sample.record.dut.reading.intervals, &sample.record.peer.reading.intervals);
    let got = |i: &IntervalReading| bits_per_second(sum(i, |s| s.received.bytes), i.duration_ns);
    match sample.record.trial.workload.kind() {
        WorkloadKind::TcpReverse => dut.iter().map(|i| (seconds(i), got(i))).collect(),
        WorkloadKind::TcpBidir => dut.iter().zip(peer).map(|(d, p)| (seconds(p), got(d) + got(p))).collect(),
        _ => peer.iter().map(|i| (seconds(i), got(i))).collect(),
    }
}

fn transactions(sample: &Sample<'_>) -> Values {
    let rate = |i: &IntervalReading| per_second(sum(i, |s| s.transactions), i.duration_ns);
    sample.record.dut.reading.intervals.iter().map(|i| (seconds(i), rate(i))).collect()
}

fn busy(intervals: &[IntervalReading]) -> Values {
    intervals.iter().map(|i| (seconds(i), percent(i.busy_ns, i.duration_ns))).collect()
}
