//! The readings of several pairs as one: streams and threads of all, each machine's CPU and each link's counters once.

use std::collections::BTreeMap;

use linerate_model::NodeUrl;
use linerate_model::counters::{EnergyReading, LinkReading, MachineCpu, MeterReading, QdiscCounters};
use linerate_model::environment::Environment;
use linerate_model::reading::{IntervalReading, Knowledge, Reading};
use linerate_model::units::total;

/// Where a reading was taken: what is read at one place twice counts once.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Place {
    /// The kernel: CPU and energy are the machine's.
    pub(crate) machine: String,
    /// The namespace: links and protocol counters are its own.
    pub(crate) namespace: String,
}

impl Place {
    /// The place of a node.
    pub(crate) fn of(node: &NodeUrl, environment: &Environment) -> Self {
        let machine = match environment.boot_id.as_str() {
            "" => node.to_string(),
            boot_id => boot_id.to_owned(),
        };
        Self { machine, namespace: node.to_string() }
    }
}

/// Streams numbered on from those of the pairs before.
pub(crate) fn renumbered(mut reading: Reading, by: u32) -> Reading {
    reading.streams.iter_mut().for_each(|s| s.index += by);
    reading.threads.iter_mut().for_each(|t| t.stream += by);
    reading.intervals.iter_mut().flat_map(|i| &mut i.streams).for_each(|s| s.index += by);
    reading
}

/// One reading of several, whose streams are numbered on already. The window is the first one's.
pub(crate) fn reading(parts: &[(Place, &Reading)]) -> Reading {
    let all = || parts.iter().map(|(_, reading)| *reading);
    let mut window = all().next().map(|r| r.window).unwrap_or_default();
    window.start_late_ns = all().map(|r| r.window.start_late_ns).max().unwrap_or_default();
    window.end_late_ns = all().map(|r| r.window.end_late_ns).max().unwrap_or_default();
    let places: Vec<&Place> = parts.iter().map(|(place, _)| place).collect();
    // Readers of a run that was cut short may lack an interval.
    let shortest = all().map(|r| r.intervals.len()).min().unwrap_or_default();
    let interval = |at: usize| interval(&places, &all().map(|r| &r.intervals[at]).collect::<Vec<_>>());
    Reading {
        window,
        streams: all().flat_map(|r| r.streams.iter().cloned()).collect(),
        threads: all().flat_map(|r| r.threads.iter().cloned()).collect(),
        intervals: (0..shortest).map(interval).collect(),
        meter: meter(&places, &all().map(|r| &r.meter).collect::<Vec<_>>()),
        strays: total(all().map(|r| r.strays)),
        // Only what linerate measured at both ends has several pairs.
        knowledge: Knowledge::Measured,
    }
}

/// One interval of several at the same place in the row.
pub(crate) fn interval(places: &[&Place], parts: &[&IntervalReading]) -> IntervalReading {
    let (start_ns, duration_ns) = parts.first().map_or((0, 0), |i| (i.start_ns, i.duration_ns));
    IntervalReading {
        start_ns,
        duration_ns,
        busy_ns: total(once(places, parts, |p| &p.machine).map(|i| i.busy_ns)),
        streams: parts.iter().flat_map(|i| i.streams.iter().copied()).collect(),
    }
}

/// Those parts that are the first of their place.
fn once<'a, T>(
    places: &'a [&Place],
    parts: &'a [&'a T],
    of: impl Fn(&Place) -> &String + 'a,
) -> impl Iterator<Item = &'a T> {
    let is_first = move |at: usize| places[..at].iter().all(|before| of(before) != of(places[at]));
    (0..parts.len().min(places.len())).filter(move |at| is_first(*at)).map(|at| parts[at])
}

fn meter(places: &[&Place], parts: &[&MeterReading]) -> MeterReading {
    let mut protocol: BTreeMap<String, u64> = BTreeMap::new();
    for (name, count) in once(places, parts, |p| &p.namespace).flat_map(|m| &m.protocol) {
        let sum = protocol.entry(name.clone()).or_default();
        *sum = sum.saturating_add(*count);
    }
    let mut energy: Vec<EnergyReading> = Vec::new();
    for one in once(places, parts, |p| &p.machine).flat_map(|m| &m.energy) {
        match energy.iter_mut().find(|known| known.domain == one.domain) {
            Some(known) => known.microjoules = known.microjoules.saturating_add(one.microjoules),
            None => energy.push(one.clone()),
        }
    }
    let mut unavailable: Vec<String> = Vec::new();
    for reason in parts.iter().flat_map(|m| &m.unavailable) {
        if !unavailable.contains(reason) {
            unavailable.push(reason.clone());
        }
    }
    MeterReading {
        cpu: cpu(once(places, parts, |p| &p.machine).map(|m| &m.cpu)),
        link: link(once(places, parts, |p| &p.namespace).filter_map(|m| m.link.as_ref())),
        protocol,
        energy,
        unavailable,
    }
}

fn cpu<'a>(mut machines: impl Iterator<Item = &'a MachineCpu>) -> MachineCpu {
    let mut sum = machines.next().cloned().unwrap_or_default();
    for machine in machines {
        sum.total = sum.total.plus(machine.total);
        sum.cpus.extend(machine.cpus.iter().cloned());
        sum.busy_resolution_ns = sum.busy_resolution_ns.max(machine.busy_resolution_ns);
        sum.kinds_resolution_ns = sum.kinds_resolution_ns.max(machine.kinds_resolution_ns);
    }
    sum
}

fn link<'a>(mut links: impl Iterator<Item = &'a LinkReading>) -> Option<LinkReading> {
    let mut sum = links.next()?.clone();
    for link in links {
        sum.counters = sum.counters.plus(link.counters);
        sum.qdisc = match (sum.qdisc, link.qdisc) {
            (Some(a), Some(b)) => Some(QdiscCounters::plus(a, b)),
            (one, other) => one.or(other),
        };
        for (name, count) in &link.driver {
            let known = sum.driver.entry(name.clone()).or_default();
            *known = known.saturating_add(*count);
        }
    }
    Some(sum)
}

#[cfg(test)]
mod tests {
    use linerate_model::counters::{CpuTime, LinkCounters};
    use linerate_model::reading::StreamReading;

    use super::*;

    fn part(busy_ns: u64, rx_packets: u64) -> Reading {
        let counters = LinkCounters { rx_packets, ..LinkCounters::default() };
        let link = Some(LinkReading { name: "eth0".to_owned(), counters, ..LinkReading::default() });
        let total = CpuTime { busy_ns, ..CpuTime::default() };
        let cpu = MachineCpu { window_ns: 100, total, ..MachineCpu::default() };
        Reading {
            window: linerate_model::reading::Window { duration_ns: 100, ..Default::default() },
            streams: vec![StreamReading::default()],
            threads: Vec::new(),
            intervals: vec![IntervalReading { start_ns: 0, duration_ns: 50, busy_ns, streams: Vec::new() }],
            meter: MeterReading { cpu, link, ..MeterReading::default() },
            strays: 1,
            knowledge: Knowledge::Measured,
        }
    }

    fn at(machine: &str, namespace: &str) -> Place {
        Place { machine: machine.to_owned(), namespace: namespace.to_owned() }
    }

    #[test]
    fn a_machine_counts_once_and_its_namespaces_each() {
        let (a, b, c) = (part(10, 1), renumbered(part(11, 2), 1), renumbered(part(40, 4), 2));
        let parts = [(at("m", "red"), &a), (at("m", "blue"), &b), (at("n", "red of n"), &c)];
        let all = reading(&parts);
        assert_eq!(all.meter.cpu.total.busy_ns, 10 + 40);
        assert_eq!(all.meter.link.unwrap().counters.rx_packets, 1 + 2 + 4);
        assert_eq!(all.intervals[0].busy_ns, 10 + 40);
        assert_eq!(all.streams.iter().map(|s| s.index).collect::<Vec<_>>(), [0, 1, 2]);
        assert_eq!((all.strays, all.window.duration_ns), (3, 100));
    }

    #[test]
    fn a_place_read_twice_counts_once() {
        let (a, b) = (part(10, 3), part(11, 3));
        let all = reading(&[(at("m", "red"), &a), (at("m", "red"), &b)]);
        assert_eq!((all.meter.cpu.total.busy_ns, all.meter.link.unwrap().counters.rx_packets), (10, 3));
    }
}
