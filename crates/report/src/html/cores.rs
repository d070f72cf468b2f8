//! CPU of each core by kind: user, system, interrupts, softirqs, and what a hypervisor took.

use linerate_model::Record;
use linerate_model::counters::{CpuTime, MachineCpu};
use linerate_model::summary::percent;
use linerate_model::units::total;

use super::chart::{Axis, Chart, FigureTable, Form, Point, Series};
use super::factors::{Roles, Sample, Varied, panels};
use crate::numbers;

/// Most bars in one plot.
const MOST_BARS: usize = 40;
/// Most plots.
const MOST_PANELS: usize = 8;

/// The machine of one end.
type Machine = fn(&Record) -> &MachineCpu;

type Kind = (&'static str, usize, fn(&CpuTime) -> u64);

/// Name, colour and time of each kind, from the floor up.
const KINDS: [Kind; 5] = [
    ("user", 2, |t| t.user_ns.saturating_add(t.nice_ns)),
    ("system", 0, |t| t.system_ns),
    ("softirq", 1, |t| t.softirq_ns),
    ("irq", 3, |t| t.irq_ns),
    ("steal", 7, |t| t.steal_ns),
];

/// One core under one level of the axis.
struct Bar {
    x: f64,
    level: String,
    cpu: u32,
    shares: [f64; 5],
    busy: f64,
}

/// A plot for each machine and combination; and what has no room.
pub(super) fn charts(samples: &[Sample<'_>], roles: Option<&Roles>) -> (Vec<Chart>, Option<String>) {
    let rest: Vec<Varied> =
        roles.map(|r| r.series.iter().chain(&r.panels).cloned().collect()).unwrap_or_default();
    let all = panels(samples, &rest);
    let mut charts = Vec::new();
    for (name, group) in all.iter().take(MOST_PANELS) {
        let (shared, apart): (Vec<Sample<'_>>, Vec<Sample<'_>>) =
            group.iter().partition(|s| s.record.shared_kernel);
        let dut: Machine = |record| &record.dut.reading.meter.cpu;
        let peer: Machine = |record| &record.peer.reading.meter.cpu;
        charts.extend(chart("CPU by core, both nodes", name, &shared, roles, dut));
        charts.extend(chart("CPU by core, dut", name, &apart, roles, dut));
        charts.extend(chart("CPU by core, peer", name, &apart, roles, peer));
    }
    let note = (all.len() > MOST_PANELS)
        .then(|| format!("Plots are for the first {MOST_PANELS} of {} combinations.", all.len()));
    (charts, note)
}

fn chart(
    what: &str,
    panel: &str,
    samples: &[Sample<'_>],
    roles: Option<&Roles>,
    machine: Machine,
) -> Option<Chart> {
    let machines: Vec<(&Sample<'_>, &MachineCpu)> = samples.iter().map(|s| (s, machine(s.record))).collect();
    let levels: Vec<String> = roles.map_or_else(
        || vec![String::new()],
        |r| {
            let here = |l: &String| samples.iter().any(|s| r.axis.level(s) == *l);
            r.axis.levels.iter().map(|l| l.text.clone()).filter(here).collect()
        },
    );
    let (cpus, left_out) = busiest(&machines, (MOST_BARS / levels.len().max(1)).max(1));
    let bars = bars(&machines, &levels, roles, &cpus);
    if bars.is_empty() {
        return None;
    }
    let one = levels.len() == 1;
    let x = if one {
        Axis::names("CPU".to_owned(), cpus.iter().map(u32::to_string))
    } else {
        Axis::names(roles.map_or_else(String::new, |r| r.axis.name.clone()), levels)
    };
    let width = if one { 0.7 } else { 0.8 / cpus.len() as f64 * 0.88 };
    let top = bars.iter().map(|b| b.shares.iter().sum::<f64>()).fold(0.0, f64::max);
    let series = KINDS.iter().enumerate().map(|(kind, (name, style, _))| Series {
        name: (*name).to_owned(),
        style: *style,
        points: bars
            .iter()
            .map(|b| Point {
                x: b.x,
                y: b.shares[kind],
                spread: None,
                at: String::new(),
                text: String::new(),
            })
            .collect(),
    });
    let mut description = vec!["Share of each CPU's time by kind, from ticks.".to_owned()];
    if !one && cpus.len() > 1 {
        let order: Vec<String> = cpus.iter().map(u32::to_string).collect();
        description.push(format!("In each group, left to right: CPU {}.", order.join(", ")));
    }
    if left_out > 0 {
        description.push(format!("The {left_out} least busy CPUs are left out."));
    }
    Some(Chart {
        title: if panel.is_empty() { what.to_owned() } else { format!("{what}: {panel}") },
        description: description.join(" "),
        x,
        y: Axis::from_zero("% of the CPU's time".to_owned(), top),
        form: Form::Stacked { width },
        series: series.filter(|s| s.points.iter().any(|p| p.y > 0.0)).collect(),
        marks: Vec::new(),
        table: Some(table(&bars, roles)),
    })
}

/// The busiest CPUs in order of their numbers, and how many others there are.
fn busiest(machines: &[(&Sample<'_>, &MachineCpu)], most: usize) -> (Vec<u32>, usize) {
    let mut busy: Vec<(u32, u64)> = Vec::new();
    for reading in machines.iter().flat_map(|(_, m)| &m.cpus) {
        match busy.iter_mut().find(|(cpu, _)| *cpu == reading.cpu) {
            Some((_, ns)) => *ns = ns.saturating_add(reading.time.busy_ns),
            None => busy.push((reading.cpu, reading.time.busy_ns)),
        }
    }
    busy.sort_by_key(|&(cpu, ns)| (std::cmp::Reverse(ns), cpu));
    let left_out = busy.len().saturating_sub(most);
    let mut cpus: Vec<u32> = busy.into_iter().take(most).map(|(cpu, _)| cpu).collect();
    cpus.sort_unstable();
    (cpus, left_out)
}

fn bars(
    machines: &[(&Sample<'_>, &MachineCpu)],
    levels: &[String],
    roles: Option<&Roles>,
    cpus: &[u32],
) -> Vec<Bar> {
    let mut bars = Vec::new();
    for (group, level) in levels.iter().enumerate() {
        let here: Vec<&MachineCpu> = machines
            .iter()
            .filter(|(s, _)| roles.is_none_or(|r| r.axis.level(s) == *level))
            .map(|(_, m)| *m)
            .collect();
        let window_ns = total(here.iter().map(|m| m.window_ns));
        if window_ns == 0 {
            continue;
        }
        for (place, &cpu) in cpus.iter().enumerate() {
            let times: Vec<&CpuTime> =
                here.iter().flat_map(|m| &m.cpus).filter(|c| c.cpu == cpu).map(|c| &c.time).collect();
            let share = |of: fn(&CpuTime) -> u64| percent(total(times.iter().map(|t| of(t))), window_ns);
            let x = if levels.len() == 1 {
                place as f64
            } else {
                group as f64 + (place as f64 - (cpus.len() as f64 - 1.0) / 2.0) * 0.8 / cpus.len() as f64
            };
            let shares = KINDS.map(|(_, _, of)| share(of));
            bars.push(Bar { x, level: level.clone(), cpu, shares, busy: share(|t| t.busy_ns) });
        }
    }
    bars
}

fn table(bars: &[Bar], roles: Option<&Roles>) -> FigureTable {
    let by_level = roles.filter(|_| bars.iter().any(|b| b.level != bars[0].level));
    let mut head: Vec<String> = by_level.map(|r| r.axis.name.clone()).into_iter().collect();
    head.push("CPU".to_owned());
    head.extend(KINDS.iter().map(|(name, _, _)| format!("{name} %")));
    head.push("busy % (from idle time)".to_owned());
    let rows = bars.iter().map(|b| {
        let mut row: Vec<String> = by_level.map(|_| b.level.clone()).into_iter().collect();
        row.push(b.cpu.to_string());
        row.extend(b.shares.iter().map(|s| numbers::cpu_percent(*s)));
        row.push(numbers::cpu_percent(b.busy));
        row
    });
    FigureTable { head, rows: rows.collect() }
}
