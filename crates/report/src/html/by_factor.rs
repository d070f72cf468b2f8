//! Plots of a figure by what varies: a line over a scale, bars over names, colours for a second factor, a plot each for
//! the levels of further ones.

use linerate_model::Record;
use linerate_model::record::Outcome;
use linerate_model::summary::MachineCost;
use linerate_model::workload::WorkloadKind;

use super::chart::{Axis, Chart, Form, Point, Series};
use super::factors::{Level, Roles, Sample, Varied, panels, phrase};
use super::{Interval, Kind};
use crate::numbers;
use crate::table::rows::spread;

/// What can be plotted of a trial.
struct Metric {
    title: &'static str,
    quantity: Quantity,
    figures: Vec<Figure>,
}

struct Figure {
    name: &'static str,
    of: fn(&Record) -> Option<f64>,
}

/// How values are scaled and told.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Quantity {
    BitRate,
    PerSecond(&'static str),
    Cpu,
    PerKib,
    PerTransaction,
    Nanoseconds,
    Percent,
}

/// A unit for a whole axis.
#[derive(Clone, Copy)]
pub(super) struct AxisUnit {
    pub(super) scale: f64,
    pub(super) name: &'static str,
}

impl Quantity {
    /// The unit in which the greatest value has one to three digits before its point.
    pub(super) fn unit(self, greatest: f64) -> AxisUnit {
        let pick = |units: &[(f64, &'static str)]| {
            let (scale, name) = units.iter().rev().find(|(scale, _)| greatest >= *scale).unwrap_or(&units[0]);
            AxisUnit { scale: *scale, name }
        };
        match self {
            Self::BitRate => pick(&[(1.0, "bit/s"), (1e3, "kbit/s"), (1e6, "Mbit/s"), (1e9, "Gbit/s")]),
            Self::PerSecond("packets/s") => {
                pick(&[(1.0, "packets/s"), (1e3, "thousand packets/s"), (1e6, "million packets/s")])
            }
            Self::PerSecond(_) => pick(&[
                (1.0, "transactions/s"),
                (1e3, "thousand transactions/s"),
                (1e6, "million transactions/s"),
            ]),
            Self::Cpu => AxisUnit { scale: 1.0, name: "% of one CPU" },
            Self::PerKib => AxisUnit { scale: 1.0, name: "CPU us per KB" },
            Self::PerTransaction => AxisUnit { scale: 1.0, name: "CPU us per transaction" },
            Self::Nanoseconds => pick(&[(1.0, "ns"), (1e3, "us"), (1e6, "ms"), (1e9, "s")]),
            Self::Percent => AxisUnit { scale: 1.0, name: "%" },
        }
    }

    /// A value in words.
    pub(super) fn text(self, value: f64) -> String {
        match self {
            Self::BitRate => numbers::bit_rate(value),
            Self::PerSecond(_) => numbers::count(value),
            Self::Cpu => format!("{} %", numbers::cpu_percent(value)),
            Self::PerKib => format!("{} us/KB", numbers::demand(value)),
            Self::PerTransaction => format!("{} us/tr", numbers::demand(value)),
            #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "`as` saturates")]
            Self::Nanoseconds => numbers::time(value as u64),
            Self::Percent => format!("{} %", numbers::part_percent(value)),
        }
    }
}

type EndCost = fn(&MachineCost) -> Option<f64>;

fn cpu(record: &Record, pick: fn(&Record) -> Option<&MachineCost>, figure: EndCost) -> Option<f64> {
    pick(record).and_then(figure)
}

const BOTH: &str = "both nodes (one machine)";

/// CPU, or service demand, of the machines there are.
macro_rules! ends {
    ($figure:expr) => {
        vec![
            Figure { name: BOTH, of: |r| cpu(r, |r| r.summary.cpu.shared.as_ref(), $figure) },
            Figure { name: "dut", of: |r| cpu(r, |r| r.summary.cpu.dut.as_ref(), $figure) },
            Figure { name: "peer", of: |r| cpu(r, |r| r.summary.cpu.peer.as_ref(), $figure) },
        ]
    };
}

/// The figures worth a plot, for a kind of workload.
fn metrics(kind: Kind, by_size: bool) -> Vec<Metric> {
    let one = |title, quantity, name, of| Metric { title, quantity, figures: vec![Figure { name, of }] };
    let goodput =
        one("Goodput", Quantity::BitRate, "goodput", |r: &Record| Some(r.summary.goodput_bits_per_second));
    let cpu = Metric { title: "CPU", quantity: Quantity::Cpu, figures: ends!(|c| Some(c.busy_percent)) };
    let per_kib = Metric {
        title: "Service demand",
        quantity: Quantity::PerKib,
        figures: ends!(|c| c.service_demand_us_per_kib),
    };
    let packets = Metric {
        title: if by_size { "Packets by size" } else { "Packets" },
        quantity: Quantity::PerSecond("packets/s"),
        figures: vec![
            Figure { name: "payload packets received", of: |r| r.summary.packets_per_second },
            Figure { name: "packets of the receiver's link", of: received_by_link },
        ],
    };
    match kind {
        Kind::TcpStreams => vec![goodput, cpu, per_kib, packets],
        Kind::UdpStreams => {
            let lost = one("Lost", Quantity::Percent, "lost", |r: &Record| {
                r.summary.loss.as_ref().map(|l| l.lost_percent)
            });
            vec![goodput, packets, lost, cpu, per_kib]
        }
        Kind::Transactions => {
            let rate =
                one("Transactions", Quantity::PerSecond("transactions/s"), "transactions", |r: &Record| {
                    r.summary.transactions_per_second
                });
            let latency = Metric {
                title: "Latency",
                quantity: Quantity::Nanoseconds,
                figures: vec![
                    Figure { name: "p50", of: |r| r.summary.latency.as_ref().map(|l| l.p50_ns as f64) },
                    Figure { name: "p99", of: |r| r.summary.latency.as_ref().map(|l| l.p99_ns as f64) },
                    Figure { name: "p99.9", of: |r| r.summary.latency.as_ref().map(|l| l.p999_ns as f64) },
                ],
            };
            let directions = Metric {
                title: "Goodput by direction",
                quantity: Quantity::BitRate,
                figures: vec![
                    Figure { name: "dut sends", of: |r| direction(r, 0) },
                    Figure { name: "peer sends", of: |r| direction(r, 1) },
                ],
            };
            let demand = Metric {
                title: "Service demand",
                quantity: Quantity::PerTransaction,
                figures: ends!(|c| c.service_demand_us_per_transaction),
            };
            vec![rate, latency, directions, cpu, demand]
        }
    }
}

/// One way of request/response, where messages are so large that their goodput says something.
fn direction(record: &Record, place: usize) -> Option<f64> {
    let bulk = crate::table::columns::moves_bulk(&record.trial.workload);
    record.summary.directions.get(place).filter(|_| bulk).map(|d| d.goodput_bits_per_second)
}

/// Packets that the receiving link counted, a second; none for traffic that goes both ways.
fn received_by_link(record: &Record) -> Option<f64> {
    let receiver = match record.trial.workload.kind() {
        WorkloadKind::TcpStream | WorkloadKind::UdpStream => &record.peer,
        WorkloadKind::TcpReverse => &record.dut,
        _ => return None,
    };
    let link = receiver.reading.meter.link.as_ref()?;
    Some(linerate_model::units::per_second(link.counters.rx_packets, receiver.reading.meter.cpu.window_ns))
}

/// Times that differ by this factor share no linear axis.
const FAR_APART: f64 = 30.0;

/// Most plots of one figure.
const MOST_PANELS: usize = 6;

/// The plots, figure by figure; and what has no room.
pub(super) fn charts(
    kind: Kind,
    samples: &[Sample<'_>],
    roles: &Roles,
    interval: Option<&Interval<'_>>,
) -> (Vec<Chart>, Option<String>) {
    let by_size = roles.axis.name == "size";
    let all = panels(samples, &roles.panels);
    let mut charts = Vec::new();
    for metric in metrics(kind, by_size) {
        if metric.title == "Packets" && kind == Kind::TcpStreams {
            continue;
        }
        for (panel, group) in all.iter().take(MOST_PANELS) {
            let figures: Vec<&Figure> = metric.figures.iter().filter(|f| has(f, group)).collect();
            let plot = Plot { metric: &metric, panel, roles, interval };
            if roles.series.is_some() {
                charts
                    .extend(figures.iter().map(|figure| plot.of(group, &[figure], metric.figures.len() > 1)));
            } else if !figures.is_empty() {
                charts.push(plot.of(group, &figures, false));
            }
        }
    }
    let left_out = all.len().saturating_sub(MOST_PANELS);
    let note = (left_out > 0).then(|| {
        format!("Plots are for the first {MOST_PANELS} of {} combinations; the tables hold all.", all.len())
    });
    (charts, note)
}

fn has(figure: &Figure, samples: &[Sample<'_>]) -> bool {
    samples.iter().any(|s| (figure.of)(s.record).is_some_and(|v| v > 0.0))
}

struct Plot<'a> {
    metric: &'a Metric,
    panel: &'a str,
    roles: &'a Roles,
    interval: Option<&'a Interval<'a>>,
}

impl Plot<'_> {
    fn of(&self, samples: &[Sample<'_>], figures: &[&Figure], names_figure: bool) -> Chart {
        let quantity = self.metric.quantity;
        let values = samples.iter().flat_map(|s| figures.iter().filter_map(|f| (f.of)(s.record)));
        let greatest = values.fold(0.0, f64::max);
        let unit = quantity.unit(greatest);
        let mut series = Vec::new();
        match &self.roles.series {
            Some(factor) => {
                for (style, level) in factor.levels.iter().enumerate() {
                    let here: Vec<Sample<'_>> =
                        samples.iter().filter(|s| factor.level(s) == level.text).copied().collect();
                    let name = phrase(&factor.name, &level.text);
                    series.push(self.series(name, style, &here, figures[0], unit));
                }
            }
            None => {
                for (style, figure) in figures.iter().enumerate() {
                    let alone = figures.len() == 1 && figure.name != BOTH;
                    let name = if alone { String::new() } else { figure.name.to_owned() };
                    series.push(self.series(name, style, samples, figure, unit));
                }
            }
        }
        series.retain(|s| !s.points.is_empty());
        let y = self.upright(&mut series, unit);
        let mut title = self.metric.title.to_owned();
        if names_figure {
            title = format!("{title}, {}", figures[0].name);
        }
        title = format!("{title} by {}", self.roles.axis.name);
        if self.metric.title == "Packets by size" {
            title = if names_figure {
                format!("Packets by size, {}", figures[0].name)
            } else {
                "Packets by size".to_owned()
            };
        }
        if !self.panel.is_empty() {
            title = format!("{title}: {}", self.panel);
        }
        Chart {
            title,
            description: self.description(samples),
            x: axis(&self.roles.axis),
            y,
            form: if self.roles.axis.is_scale() { Form::Lines } else { Form::Bars },
            series,
            marks: Vec::new(),
            table: None,
        }
    }

    /// The axis upwards: from zero, but logarithmic for times that lie far apart; then the points move to it.
    fn upright(&self, series: &mut [Series], unit: AxisUnit) -> Axis {
        let ends = |p: &Point| p.spread.map_or([p.y, p.y], |(low, high)| [low.min(p.y), high.max(p.y)]);
        let all = series.iter().flat_map(|s| &s.points).flat_map(ends);
        let (least, most) = all.fold((f64::INFINITY, 0.0_f64), |(l, m), v| (l.min(v), m.max(v)));
        let is_time = self.metric.quantity == Quantity::Nanoseconds && self.roles.axis.is_scale();
        if !is_time || least <= 0.0 || most / least < FAR_APART {
            return Axis::from_zero(unit.name.to_owned(), most);
        }
        for point in series.iter_mut().flat_map(|s| &mut s.points) {
            point.y = point.y.log10();
            point.spread = point.spread.map(|(low, high)| (low.log10(), high.log10()));
        }
        let text = |value: f64| Quantity::Nanoseconds.text((value * unit.scale).round());
        Axis::decades("latency (logarithmic)".to_owned(), least, most, text)
    }

    fn description(&self, samples: &[Sample<'_>]) -> String {
        let repeats = samples.iter().map(|s| s.record.trial.repeat).max().unwrap_or(0) + 1;
        if repeats < 2 {
            return "One trial each: no spread is known.".to_owned();
        }
        let what = self.interval.map_or("least to most of the repeats", |i| i.name);
        format!("Medians of {repeats} repeats; whiskers: {what}.")
    }

    fn series(
        &self,
        name: String,
        style: usize,
        samples: &[Sample<'_>],
        figure: &Figure,
        unit: AxisUnit,
    ) -> Series {
        let mut points = Vec::new();
        for (place, level) in self.roles.axis.levels.iter().enumerate() {
            let here = samples.iter().filter(|s| self.roles.axis.level(s) == level.text);
            let complete = here.filter(|s| s.record.outcome == Outcome::Complete);
            let values: Vec<f64> = complete.filter_map(|s| (figure.of)(s.record)).collect();
            let Some(middle) = spread(values.iter().copied()) else { continue };
            let ends = if values.len() < 2 {
                None
            } else {
                match self.interval {
                    Some(interval) => (interval.of)(&values),
                    None => Some((middle.least, middle.most)),
                }
            };
            let quantity = self.metric.quantity;
            let mut text = quantity.text(middle.median);
            if let Some((low, high)) = ends {
                text = format!("{text} ({}..{})", quantity.text(low), quantity.text(high));
            }
            points.push(Point {
                x: position(&self.roles.axis, place, level),
                y: middle.median / unit.scale,
                spread: ends.map(|(low, high)| (low / unit.scale, high / unit.scale)),
                at: level.text.clone(),
                text,
            });
        }
        Series { name, style, points }
    }
}

/// Where a level stands on the axis.
pub(super) fn position(factor: &Varied, place: usize, level: &Level) -> f64 {
    match level.number {
        Some(number) if factor.is_scale() && factor.is_logarithmic() => number.log2(),
        Some(number) if factor.is_scale() => number,
        _ => place as f64,
    }
}

/// The factor as an axis.
pub(super) fn axis(factor: &Varied) -> Axis {
    let label = match factor.name.as_str() {
        "size" | "request" | "response" => format!("{} (bytes a call)", factor.name),
        "family" => "IP version".to_owned(),
        name => name.to_owned(),
    };
    if !factor.is_scale() {
        return Axis::names(label, factor.levels.iter().map(|l| tick(factor, l)));
    }
    let ticks: Vec<(f64, String)> = factor
        .levels
        .iter()
        .enumerate()
        .map(|(place, level)| (position(factor, place, level), tick(factor, level)))
        .collect();
    let (first, last) = (ticks.first().map_or(0.0, |t| t.0), ticks.last().map_or(1.0, |t| t.0));
    let room = (last - first) * 0.04;
    Axis { label, from: first - room, to: last + room, ticks, breaks: false }
}

/// A level below the axis, which has the factor's name already.
fn tick(factor: &Varied, level: &Level) -> String {
    match factor.name.as_str() {
        "family" => phrase("family", &level.text),
        _ => level.text.clone(),
    }
}
