//! The figures of a cell: medians over the repeats of one combination.

use linerate_model::Record;
use linerate_model::summary::MachineCost;
use linerate_model::trial::Side;

use crate::numbers::{self, BIT_RATES, TIMES, Unit, column_unit};
use crate::table::copied_percent;

/// Goodput from which that of request/response says something.
const BULK_BITS_PER_SECOND: f64 = 1e8;

type OfRecord = Box<dyn Fn(&Record) -> Option<f64>>;
type Shown = Box<dyn Fn(f64) -> String>;

/// A figure with its head and how it is shown.
pub(super) struct Figure {
    /// Upper and lower line of its head.
    pub(super) head: [String; 2],
    of: OfRecord,
    show: Shown,
}

impl Figure {
    fn new(
        head: [&str; 2],
        of: impl Fn(&Record) -> Option<f64> + 'static,
        show: impl Fn(f64) -> String + 'static,
    ) -> Self {
        Self { head: head.map(str::to_owned), of: Box::new(of), show: Box::new(show) }
    }

    fn in_unit(head: &str, unit: Unit, of: impl Fn(&Record) -> Option<f64> + 'static) -> Self {
        Self::new([head, unit.name], of, move |value| unit.show(value))
    }

    /// The median over repeats, as text; empty where none has the figure.
    pub(super) fn cell(&self, repeats: &[&Record]) -> String {
        median(repeats.iter().filter_map(|r| (self.of)(r)).collect()).map(&self.show).unwrap_or_default()
    }

    /// Its name on one line.
    pub(super) fn name(&self) -> String {
        // A word that is broken over both lines.
        match self.head[0].strip_suffix('-') {
            Some(begin) => format!("{begin}{}", self.head[1]),
            None => self.head.join(" ").trim().to_owned(),
        }
    }
}

fn median(mut values: Vec<f64>) -> Option<f64> {
    values.sort_by(f64::total_cmp);
    let middle = values.len() / 2;
    let upper = *values.get(middle)?;
    Some(if values.len().is_multiple_of(2) { f64::midpoint(values[middle - 1], upper) } else { upper })
}

/// Half of the way from the least to the most, percent of the median; `None` below two repeats.
pub(super) fn spread_percent(repeats: &[&Record]) -> Option<f64> {
    let main = |r: &&Record| r.summary.transactions_per_second.unwrap_or(r.summary.goodput_bits_per_second);
    let values: Vec<f64> = repeats.iter().map(main).collect();
    let least = values.iter().copied().fold(f64::INFINITY, f64::min);
    let most = values.iter().copied().fold(0.0, f64::max);
    let median = median(values).filter(|m| *m > 0.0 && repeats.len() > 1)?;
    Some((most - least) / 2.0 * 100.0 / median)
}

/// The figures of records of one kind, the main ones first: work, then CPU, then the rest.
pub(super) fn figures(records: &[&Record]) -> Vec<Figure> {
    let transactional = records[0].trial.workload.kind().is_transactional();
    let mut figures = Vec::new();
    let goodput = column_unit(&BIT_RATES, records.iter().map(|r| r.summary.goodput_bits_per_second));
    if transactional {
        figures.push(Figure::new(
            ["trans-", "act./s"],
            |r| r.summary.transactions_per_second,
            numbers::count,
        ));
    } else {
        figures.push(Figure::in_unit("goodput", goodput, |r| Some(r.summary.goodput_bits_per_second)));
    }
    cpu(&mut figures, records, transactional);
    if transactional {
        latency(&mut figures, records);
    }
    let bulk = records.iter().any(|r| r.summary.goodput_bits_per_second >= BULK_BITS_PER_SECOND);
    if transactional && bulk {
        for (name, from) in [("dut->", Side::Dut), ("peer->", Side::Peer)] {
            figures.push(Figure::in_unit(name, goodput, move |r| sent_by(r, from)));
        }
    } else if !transactional && records.iter().any(|r| r.summary.directions.len() > 1) {
        for (name, from) in [("dut->", Side::Dut), ("peer->", Side::Peer)] {
            figures.push(Figure::in_unit(name, goodput, move |r| sent_by(r, from)));
        }
    }
    if records[0].trial.workload.kind().is_udp() && !transactional {
        figures.push(Figure::new(["packets", "/s"], |r| r.summary.packets_per_second, numbers::count));
    }
    if !transactional {
        figures.push(Figure::new(
            ["system", "s dut"],
            |r| Some(r.dut.reading.meter.cpu.total.system_ns as f64 / 1e9),
            |seconds| numbers::significant(seconds, 3),
        ));
    }
    figures.push(Figure::new(
        ["lost", "%"],
        |r| r.summary.loss.as_ref().map(|l| l.lost_percent),
        numbers::part_percent,
    ));
    figures.push(Figure::new(["copied", "%"], copied_percent, numbers::part_percent));
    figures
}

fn sent_by(record: &Record, from: Side) -> Option<f64> {
    record.summary.directions.iter().find(|d| d.from == from).map(|d| d.goodput_bits_per_second)
}

fn latency(figures: &mut Vec<Figure>, records: &[&Record]) {
    let medians = records.iter().filter_map(|r| r.summary.latency.as_ref()).map(|l| l.p50_ns as f64);
    let unit = column_unit(&TIMES, medians);
    figures.push(Figure::in_unit("p50", unit, |r| Some(r.summary.latency.as_ref()?.p50_ns as f64)));
    figures.push(Figure::in_unit("p99", unit, |r| Some(r.summary.latency.as_ref()?.p99_ns as f64)));
}

type Machine = fn(&Record) -> Option<&MachineCost>;

fn cpu(figures: &mut Vec<Figure>, records: &[&Record], transactional: bool) {
    let machines: &[(&str, Machine)] = if records[0].summary.cpu.shared.is_some() {
        &[("both", |r| r.summary.cpu.shared.as_ref())]
    } else {
        &[("dut", |r| r.summary.cpu.dut.as_ref()), ("peer", |r| r.summary.cpu.peer.as_ref())]
    };
    for (name, machine) in machines.iter().copied() {
        figures.push(Figure::new(
            ["CPU%", name],
            move |r| machine(r).map(|c| c.busy_percent),
            numbers::cpu_percent,
        ));
    }
    let unit = if transactional { "us/tr" } else { "us/KB" };
    for (name, machine) in machines.iter().copied() {
        let demand = move |r: &Record| {
            let cost = machine(r)?;
            cost.service_demand_us_per_kib.or(cost.service_demand_us_per_transaction)
        };
        figures.push(Figure::new([unit, name], demand, numbers::demand));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn medians() {
        assert_eq!(median(Vec::new()), None);
        assert_eq!(median(vec![3.0, 1.0, 2.0]), Some(2.0));
        assert_eq!(median(vec![4.0, 1.0, 2.0, 3.0]), Some(2.5));
    }
}
