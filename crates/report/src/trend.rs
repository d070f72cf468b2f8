//! A metric over the history: as a plot and as a table, with the places where it changed.

use linerate_model::trend::{Trend, TrendChange};
use linerate_model::verdict::Better;

use crate::html::chart::{Axis, Chart, FigureTable, Form, Point, Series};
use crate::html::{paint, theme};
use crate::metric::{effect, figure};
use crate::text::{printable, wrap};

/// The trend as an SVG drawing of its own, for light and dark: values in the order measured, a line at the median of
/// each stretch between changes, and an upright line at each change.
pub fn trend_svg(trend: &Trend) -> String {
    let svg = paint::svg(&chart(trend), "trend");
    let style = format!(
        "<style>{} svg {{ background: Canvas; font-family: sans-serif; }}</style>",
        theme::variables()
    );
    match svg.split_once("</desc>\n") {
        Some((head, body)) => format!("{head}</desc>\n{style}\n{body}"),
        None => svg,
    }
}

/// The trend as text for a terminal: what it is, a row for each change, and the present level. Ends with a newline.
pub fn trend_table(trend: &Trend, width: usize) -> String {
    let mut lines = wrap("", 2, &printable(&title(trend)), width);
    let table = changes(trend);
    if table.rows.is_empty() {
        lines.extend(wrap("", 2, &format!("No change in {} values.", trend.points.len()), width));
    } else {
        let columns = table.head.len();
        let widths: Vec<usize> = (0..columns)
            .map(|at| {
                std::iter::once(&table.head)
                    .chain(&table.rows)
                    .map(|r| r[at].chars().count())
                    .max()
                    .unwrap_or(0)
            })
            .collect();
        for row in std::iter::once(&table.head).chain(&table.rows) {
            let cells: Vec<String> =
                row.iter().zip(&widths).map(|(cell, width)| format!("{:<width$}", printable(cell))).collect();
            lines.push(format!("  {}", cells.join("  ")).trim_end().to_owned());
        }
    }
    if let Some(last) = trend.points.last() {
        let text =
            format!("Last: {} at {} (run {}).", figure(last.value, &trend.unit), short(&last.at), last.run);
        lines.extend(wrap("", 2, &printable(&text), width));
    }
    let mut text = lines.join("\n");
    text.push('\n');
    text
}

fn title(trend: &Trend) -> String {
    let better = match trend.better {
        Some(Better::Higher) => ", higher is better",
        Some(Better::Lower) => ", lower is better",
        None => "",
    };
    format!("{} of {}: {} values{better}", trend.metric, trend.trial, trend.points.len())
}

/// A row for each change.
pub(crate) fn changes(trend: &Trend) -> FigureTable {
    let head = ["changed at", "run", "before", "after", "change", "verdict"].map(str::to_owned).to_vec();
    let rows = trend.changes.iter().filter_map(|change| {
        let first = trend.points.get(change.index)?;
        Some(vec![
            short(&first.at),
            first.run.chars().take(12).collect(),
            figure(change.before, &trend.unit),
            figure(change.after, &trend.unit),
            change.effect_percent.map(effect).unwrap_or_default(),
            verdict(trend, change).to_owned(),
        ])
    });
    FigureTable { head, rows: rows.collect() }
}

fn verdict(trend: &Trend, change: &TrendChange) -> &'static str {
    let Some(better) = trend.better else { return "changed" };
    let rose = change.after > change.before;
    if rose == (better == Better::Higher) { "better" } else { "worse" }
}

/// Date and time to the minute.
fn short(at: &str) -> String {
    at.get(..16).unwrap_or(at).replace('T', " ")
}

/// The plot.
pub(crate) fn chart(trend: &Trend) -> Chart {
    let values = || trend.points.iter().map(|p| p.value);
    let (least, most) = (values().fold(f64::INFINITY, f64::min), values().fold(f64::NEG_INFINITY, f64::max));
    let (scale, unit) = scale(&trend.unit, most);
    let points = trend.points.iter().enumerate().map(|(place, p)| Point {
        x: place as f64,
        y: p.value / scale,
        spread: None,
        at: short(&p.at),
        text: figure(p.value, &trend.unit),
    });
    let mut series = vec![Series { name: String::new(), style: 0, points: points.collect() }];
    series.extend(levels(trend).into_iter().map(|(from, to, level)| {
        Series {
            name: String::new(),
            style: 1,
            points: [from, to]
                .map(|place| Point {
                    x: place,
                    y: level / scale,
                    spread: None,
                    at: String::new(),
                    text: String::new(),
                })
                .to_vec(),
        }
    }));
    let marks = trend.changes.iter().map(|change| {
        (change.index as f64 - 0.5, change.effect_percent.map_or_else(|| "change".to_owned(), effect))
    });
    let mut y = if trend.points.is_empty() {
        Axis::from_zero(unit, 1.0)
    } else {
        Axis::around(unit, least / scale, most / scale)
    };
    if !trend.changes.is_empty() {
        // Room for the words at the marks.
        y.to += (y.to - y.from) * 0.22;
    }
    let last = trend.points.len().saturating_sub(1) as f64;
    let ticks = trend
        .points
        .iter()
        .enumerate()
        .map(|(place, p)| (place as f64, p.at.get(5..10).unwrap_or("").to_owned()));
    Chart {
        title: title(trend),
        description: format!(
            "{} changes are marked. The upright axis does not start at zero.",
            trend.changes.len()
        ),
        x: Axis {
            label: "trials by time".to_owned(),
            from: -0.5 - last * 0.02,
            to: last * 1.02 + 0.5,
            ticks: ticks.collect(),
            breaks: false,
        },
        y,
        form: Form::Trend,
        series,
        marks: marks.collect(),
        table: None,
    }
}

/// The median of each stretch between changes: (first place, last place, median).
fn levels(trend: &Trend) -> Vec<(f64, f64, f64)> {
    let last = trend.points.len().saturating_sub(1) as f64;
    let mut levels = Vec::new();
    let mut from = 0.0;
    for change in &trend.changes {
        let to = change.index as f64 - 0.5;
        levels.push((from, to, change.before));
        from = to;
    }
    levels.extend(trend.changes.last().map(|change| (from, last, change.after)));
    levels
}

fn scale(unit: &str, most: f64) -> (f64, String) {
    let pick = |units: &[(f64, &str)]| {
        let (scale, name) = units.iter().rev().find(|(scale, _)| most >= *scale).unwrap_or(&units[0]);
        (*scale, (*name).to_owned())
    };
    match unit {
        "bit/s" => pick(&[(1.0, "bit/s"), (1e3, "kbit/s"), (1e6, "Mbit/s"), (1e9, "Gbit/s")]),
        "ns" => pick(&[(1.0, "ns"), (1e3, "us"), (1e6, "ms"), (1e9, "s")]),
        other => (1.0, other.to_owned()),
    }
}
