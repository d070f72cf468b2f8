//! The figures of a record that experiments watch and compare.

use linerate_model::record::Record;
use linerate_model::summary::MachineCost;

use crate::stats::compare::Direction;

/// A figure by name, with the way it should go.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Figure {
    /// Its word: `goodput`, `cpu-dut` ...
    pub name: &'static str,
    /// Its unit: `bit/s`, `%` ...
    pub unit: &'static str,
    /// Which way is better.
    pub direction: Direction,
    /// The value.
    pub value: f64,
}

/// What the stop rule watches: goodput, or the transaction rate; and the CPU of each machine.
pub fn watched(record: &Record) -> Vec<Figure> {
    let mut figures = vec![work(record)];
    figures.extend(machines(record).map(|(names, cost)| lower(names.busy, "%", cost.busy_percent)));
    figures
}

/// What is compared by default: the work done, what a unit of it cost each machine, and the latency of most transactions.
pub fn compared(record: &Record) -> Vec<Figure> {
    let mut figures = vec![work(record)];
    for (names, cost) in machines(record) {
        let per_kib = cost.service_demand_us_per_kib.map(|v| lower(names.demand, "us/KiB", v));
        let per_transaction =
            cost.service_demand_us_per_transaction.map(|v| lower(names.demand, "us/transaction", v));
        figures.extend(per_kib.or(per_transaction));
    }
    if let Some(latency) = &record.summary.latency {
        figures.push(lower("p50", "ns", latency.p50_ns as f64));
        figures.push(lower("p99", "ns", latency.p99_ns as f64));
    }
    figures
}

/// Metrics that can be chosen: `cpu` and `cpu-demand` mean those of each machine.
pub const METRICS: [&str; 12] = [
    "goodput",
    "transactions",
    "packets",
    "cpu",
    "cpu-demand",
    "p50",
    "p90",
    "p99",
    "p99.9",
    "max",
    "lost",
    "retransmits",
];

/// The chosen figures of a record, as far as it has them; [`compared`] where none are chosen.
pub fn chosen(record: &Record, metrics: &[String]) -> Vec<Figure> {
    if metrics.is_empty() {
        return compared(record);
    }
    let of = |figure: &Figure, metric: &str| {
        let end = figure.name.strip_prefix(metric);
        end.is_some_and(|end| matches!(end, "" | "-dut" | "-peer"))
    };
    let all = all(record);
    metrics.iter().flat_map(|metric| all.iter().filter(|f| of(f, metric)).copied()).collect()
}

fn all(record: &Record) -> Vec<Figure> {
    let summary = &record.summary;
    let higher = |name, unit, value| Figure { name, unit, direction: Direction::HigherIsBetter, value };
    let mut figures = vec![higher("goodput", "bit/s", summary.goodput_bits_per_second)];
    figures.extend(summary.transactions_per_second.map(|v| higher("transactions", "transactions/s", v)));
    figures.extend(summary.packets_per_second.map(|v| higher("packets", "packets/s", v)));
    figures.extend(machines(record).map(|(names, cost)| lower(names.busy, "%", cost.busy_percent)));
    figures.extend(compared(record).into_iter().filter(|f| f.name.starts_with("cpu-demand")));
    if let Some(latency) = &summary.latency {
        let values = [
            ("p50", latency.p50_ns),
            ("p90", latency.p90_ns),
            ("p99", latency.p99_ns),
            ("p99.9", latency.p999_ns),
            ("max", latency.max_ns),
        ];
        figures.extend(values.map(|(name, ns)| lower(name, "ns", ns as f64)));
    }
    figures.extend(summary.loss.as_ref().map(|loss| lower("lost", "%", loss.lost_percent)));
    figures.extend(summary.retransmits.map(|count| lower("retransmits", "", count as f64)));
    figures
}

fn work(record: &Record) -> Figure {
    let direction = Direction::HigherIsBetter;
    match record.summary.transactions_per_second {
        Some(value) => Figure { name: "transactions", unit: "transactions/s", direction, value },
        None => {
            let value = record.summary.goodput_bits_per_second;
            Figure { name: "goodput", unit: "bit/s", direction, value }
        }
    }
}

fn lower(name: &'static str, unit: &'static str, value: f64) -> Figure {
    Figure { name, unit, direction: Direction::LowerIsBetter, value }
}

struct Names {
    busy: &'static str,
    demand: &'static str,
}

/// The machines with their names: one where both nodes share it.
fn machines(record: &Record) -> impl Iterator<Item = (Names, &MachineCost)> {
    let cpu = &record.summary.cpu;
    [
        (Names { busy: "cpu", demand: "cpu-demand" }, cpu.shared.as_ref()),
        (Names { busy: "cpu-dut", demand: "cpu-demand-dut" }, cpu.dut.as_ref()),
        (Names { busy: "cpu-peer", demand: "cpu-demand-peer" }, cpu.peer.as_ref()),
    ]
    .into_iter()
    .filter_map(|(names, cost)| Some((names, cost?)))
}
