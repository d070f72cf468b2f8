//! Latency: the distribution of each trial's transactions, and its percentiles.

use linerate_model::latency::LatencyHistogram;

use super::chart::{Axis, Chart, FigureTable, Form, Point, Series};
use super::factors::{Roles, Sample};
use super::lines::{Group, groups};
use crate::numbers;

/// The distribution, and the tail on an axis that stretches it; and what has no room.
pub(super) fn charts(samples: &[Sample<'_>], roles: Option<&Roles>) -> (Vec<Chart>, Option<String>) {
    let with: Vec<Sample<'_>> =
        samples.iter().filter(|s| s.record.summary.latency.is_some()).copied().collect();
    if with.is_empty() {
        return (Vec::new(), None);
    }
    let (groups, note) = groups(&with, roles);
    let mut charts = Vec::new();
    for group in &groups {
        let lines: Vec<(String, LatencyHistogram)> =
            group.lines.iter().map(|(name, samples)| (name.clone(), merged(samples))).collect();
        let table = table(&lines);
        charts.push(distribution(group, &lines, table.clone()));
        charts.push(tail(group, &lines, table));
    }
    (charts, note)
}

/// Repeats together: histograms are merged, percentiles never averaged.
fn merged(samples: &[Sample<'_>]) -> LatencyHistogram {
    let mut all = LatencyHistogram::default();
    for latency in
        samples.iter().flat_map(|s| &s.record.dut.reading.streams).filter_map(|s| s.latency.as_ref())
    {
        all.merge(latency);
    }
    all
}

fn distribution(group: &Group<'_>, lines: &[(String, LatencyHistogram)], table: FigureTable) -> Chart {
    let series = lines.iter().enumerate().map(|(style, (name, h))| {
        let total = h.total() as f64;
        let mut seen = 0_u64;
        let mut points = vec![point(position(h.min_ns), 0.0)];
        for &(ns, count) in &h.counts {
            seen = seen.saturating_add(count);
            points.push(point(position(ns.min(h.max_ns)), seen as f64 / total * 100.0));
        }
        Series { name: name.clone(), style, points: thinned(points) }
    });
    Chart {
        title: group.title("Latency distribution"),
        description: "The share of transactions that took at most so long. Repeats are counted together."
            .to_owned(),
        x: time_axis(lines),
        y: Axis { to: 101.0, ..Axis::from_zero("% of transactions".to_owned(), 100.0) },
        form: Form::Steps,
        series: series.collect(),
        marks: Vec::new(),
        table: Some(table),
    }
}

/// Percentiles of the second plot: each step a tenth of the rest.
const PERCENTILES: [(f64, &str); 10] = [
    (0.0, "0"),
    (50.0, "50"),
    (75.0, ""),
    (90.0, "90"),
    (95.0, ""),
    (99.0, "99"),
    (99.5, ""),
    (99.9, "99.9"),
    (99.99, "99.99"),
    (99.999, "99.999"),
];

fn tail(group: &Group<'_>, lines: &[(String, LatencyHistogram)], table: FigureTable) -> Chart {
    let at = |percent: f64| -(1.0 - percent / 100.0).log10();
    let most = lines.iter().map(|(_, h)| h.total()).max().unwrap_or(1) as f64;
    // Beyond one in so many there is no value to tell.
    let shown = |percent: f64| percent == 0.0 || (1.0 - percent / 100.0) * most >= 0.999;
    let series = lines.iter().enumerate().map(|(style, (name, h))| {
        let enough = |p: &f64| (1.0 - p / 100.0) * h.total() as f64 >= 0.999;
        let points = PERCENTILES.iter().map(|(p, _)| *p).filter(enough).filter_map(|p| {
            let ns = if p == 0.0 { h.min_ns } else { h.percentile_ns(p)? };
            Some(point(at(p), position(ns)))
        });
        Series { name: name.clone(), style, points: points.collect() }
    });
    let ticks: Vec<(f64, String)> = PERCENTILES
        .iter()
        .filter(|(p, text)| !text.is_empty() && shown(*p))
        .map(|(p, text)| (at(*p), (*text).to_owned()))
        .collect();
    let last = ticks.last().map_or(1.0, |t| t.0);
    Chart {
        title: group.title("Latency percentiles"),
        description:
            "The latency that so many percent of transactions do not exceed; the axis stretches the tail."
                .to_owned(),
        x: Axis { label: "percentile".to_owned(), from: -0.05 * last, to: last * 1.06, ticks, breaks: false },
        y: Axis { label: "latency".to_owned(), ..time_axis(lines) },
        form: Form::Lines,
        series: series.collect(),
        marks: Vec::new(),
        table: Some(table),
    }
}

fn time_axis(lines: &[(String, LatencyHistogram)]) -> Axis {
    let least = lines.iter().map(|(_, h)| h.min_ns.max(1)).min().unwrap_or(1);
    let most = lines.iter().map(|(_, h)| h.max_ns.max(1)).max().unwrap_or(1).max(least + 1);
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a tick between two u64")]
    let text = |ns: f64| numbers::time(ns.round() as u64);
    Axis::decades("latency".to_owned(), least as f64, most as f64, text)
}

fn position(ns: u64) -> f64 {
    (ns.max(1) as f64).log10()
}

fn point(x: f64, y: f64) -> Point {
    Point { x, y, spread: None, at: String::new(), text: String::new() }
}

/// Points closer together than the eye can tell are left out; each step keeps its last.
fn thinned(points: Vec<Point>) -> Vec<Point> {
    let mut kept: Vec<Point> = Vec::new();
    let last = points.len().saturating_sub(1);
    for (place, point) in points.into_iter().enumerate() {
        let is_new =
            kept.last().is_none_or(|k| (point.x - k.x).abs() >= 0.004 || (point.y - k.y).abs() >= 0.4);
        if is_new || place == last {
            kept.push(point);
        }
    }
    kept
}

fn table(lines: &[(String, LatencyHistogram)]) -> FigureTable {
    let head =
        ["trial", "transactions", "least", "p50", "p90", "p99", "p99.9", "most"].map(str::to_owned).to_vec();
    let rows = lines.iter().map(|(name, h)| {
        let at = |p: f64| h.percentile_ns(p).map(numbers::time).unwrap_or_default();
        vec![
            if name.is_empty() { "the trial".to_owned() } else { name.clone() },
            h.total().to_string(),
            numbers::time(h.min_ns),
            at(50.0),
            at(90.0),
            at(99.0),
            at(99.9),
            numbers::time(h.max_ns),
        ]
    });
    FigureTable { head, rows: rows.collect() }
}
