//! From two samples to a reading: pure, whatever the kernel's texts hold.

use std::collections::BTreeMap;

use linerate_model::counters::{CpuReading, MachineCpu, MeterReading};

use crate::cpu::{self, Stat};
use crate::energy;
use crate::error::Result;
use crate::growth::{grown32, or_note};
use crate::interrupts;
use crate::link;
use crate::meter::{PROTOCOL_FILES, Sample};
use crate::protocol::{self, Counters};
use crate::table::{ByCpu, Softirqs, softnet};

/// What a node counted between two samples of one meter.
///
/// What either sample lacks is left out, or 0 where the type has no other way, and named with its reason in `unavailable`,
/// as are counters that stepped back and CPUs that came or went.
pub fn difference(earlier: &Sample, later: &Sample) -> MeterReading {
    let mut notes = Notes::of(earlier, later);
    let mut cpu = machine(earlier, later, &mut notes);
    let mut cpus: BTreeMap<u32, &mut CpuReading> = cpu.cpus.iter_mut().map(|cpu| (cpu.cpu, cpu)).collect();
    add_softirqs(&mut cpus, earlier, later, &mut notes);
    add_softnet(&mut cpus, earlier, later, &mut notes);
    add_interrupts(&mut cpus, earlier, later, &mut notes);
    let link = match (&earlier.link, &later.link) {
        (Some(earlier), Some(later)) => link::difference(earlier, later, &mut notes.list),
        _ => None,
    };
    let protocol = protocol_counters(earlier, later, &mut notes);
    let energy = energy::difference(&earlier.energy, &later.energy, &mut notes.list);
    MeterReading { cpu, link, protocol, energy, unavailable: notes.finish() }
}

struct Notes {
    list: Vec<String>,
}

impl Notes {
    fn of(earlier: &Sample, later: &Sample) -> Self {
        Self { list: earlier.unavailable.iter().chain(&later.unavailable).cloned().collect() }
    }

    /// Both values, or a note why one of them is none.
    fn both<T>(&mut self, earlier: Result<T>, later: Result<T>) -> Option<(T, T)> {
        match (earlier, later) {
            (Ok(earlier), Ok(later)) => Some((earlier, later)),
            (Err(error), _) | (_, Err(error)) => {
                self.list.push(error.to_string());
                None
            }
        }
    }

    /// Each note once, in order.
    fn finish(mut self) -> Vec<String> {
        let mut seen = std::collections::BTreeSet::new();
        self.list.retain(|note| seen.insert(note.clone()));
        self.list
    }
}

fn machine(earlier: &Sample, later: &Sample, notes: &mut Notes) -> MachineCpu {
    let source = &later.source;
    let window_ns = later.at_ns.saturating_sub(earlier.at_ns);
    let mut machine = MachineCpu {
        window_ns,
        busy_resolution_ns: source.user_tick_ns,
        kinds_resolution_ns: source.kinds_resolution_ns,
        source: source.words.clone(),
        ..MachineCpu::default()
    };
    let Some((before, after)) = notes.both(Stat::parse(&earlier.stat), Stat::parse(&later.stat)) else {
        return machine;
    };
    let times = cpu::difference(window_ns, source.user_tick_ns, &before, &after);
    for cpu in times.changed {
        notes.list.push(format!("CPU {cpu}: came online or went offline within the window"));
    }
    machine.total = times.total;
    machine.cpus =
        times.cpus.into_iter().map(|(cpu, time)| CpuReading { cpu, time, ..CpuReading::default() }).collect();
    machine
}

type Cpus<'a> = BTreeMap<u32, &'a mut CpuReading>;

fn add_softirqs(cpus: &mut Cpus<'_>, earlier: &Sample, later: &Sample, notes: &mut Notes) {
    let (Some(before), Some(after)) = (&earlier.softirqs, &later.softirqs) else { return };
    let Some((before, after)) = notes.both(Softirqs::parse(before), Softirqs::parse(after)) else { return };
    for (&number, cpu) in cpus {
        let mut grown = |name: &str, before: &ByCpu, after: &ByCpu| {
            let at = |counts: &ByCpu| counts.get(&number).copied().unwrap_or_default();
            or_note(
                grown32(at(before), at(after)),
                &format!("{name} softirqs of CPU {number}"),
                &mut notes.list,
            )
        };
        cpu.net_rx_softirqs = grown("NET_RX", &before.net_rx, &after.net_rx);
        cpu.net_tx_softirqs = grown("NET_TX", &before.net_tx, &after.net_tx);
    }
}

fn add_softnet(cpus: &mut Cpus<'_>, earlier: &Sample, later: &Sample, notes: &mut Notes) {
    let (Some(before), Some(after)) = (&earlier.softnet, &later.softnet) else { return };
    let Some((before, after)) = notes.both(softnet(before), softnet(after)) else { return };
    for (number, cpu) in cpus {
        let (Some(before), Some(after)) = (before.get(number), after.get(number)) else { continue };
        let mut grown = |name: &str, before, after| {
            or_note(grown32(before, after), &format!("{name} of CPU {number}"), &mut notes.list)
        };
        cpu.packets_processed = grown("packets processed", before.processed, after.processed);
        cpu.backlog_dropped = grown("backlog drops", before.dropped, after.dropped);
        cpu.time_squeezed = grown("time squeezed", before.squeezed, after.squeezed);
    }
}

fn add_interrupts(cpus: &mut Cpus<'_>, earlier: &Sample, later: &Sample, notes: &mut Notes) {
    let of = |sample: &Sample| sample.link.as_ref().and_then(|link| link.interrupts.clone());
    let (Some(before), Some(after)) = (of(earlier), of(later)) else { return };
    for (number, taken) in interrupts::difference(&before, &after, &mut notes.list) {
        if let Some(cpu) = cpus.get_mut(&number) {
            cpu.link_interrupts = taken;
        }
    }
}

fn protocol_counters(earlier: &Sample, later: &Sample, notes: &mut Notes) -> Counters {
    let mut grown = Counters::new();
    for ((path, before), after) in PROTOCOL_FILES.iter().zip(&earlier.protocol).zip(&later.protocol) {
        let (Some(before), Some(after)) = (before, after) else { continue };
        let parse = |text: &str| match path.ends_with("snmp6") {
            true => protocol::parse_snmp6(path, text),
            false => protocol::parse_pairs(path, text),
        };
        let Some((before, after)) = notes.both(parse(before), parse(after)) else { continue };
        grown.extend(protocol::difference(&before, &after, &mut notes.list));
    }
    grown
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::source::CpuSource;
    use std::sync::Arc;

    fn sample(at_ms: u64, idle: u64, receives: u64) -> Sample {
        let zeros = "0 ".repeat(9);
        let source = CpuSource {
            user_tick_ns: 10_000_000,
            kinds_resolution_ns: 10_000_000,
            words: "texts".to_owned(),
        };
        Sample {
            at_ns: at_ms * 1_000_000,
            source: Arc::new(source),
            stat: format!("cpu  9 0 0 {idle} 0 0 0 0 0 0\ncpu3 9 0 0 {idle} 0 0 0 0 0 0\n").into_bytes(),
            softirqs: Some(format!("CPU3\nNET_TX: 4294967290\nNET_RX: {idle}\n")),
            softnet: Some(format!("{idle:x} 1 2 {zeros}3\n")),
            protocol: [
                Some(format!("Ip: InReceives\nIp: {receives}\n")),
                None,
                Some(format!("Ip6InPkts {receives}\n")),
            ],
            link: None,
            energy: Vec::new(),
            unavailable: vec!["energy: none".to_owned()],
        }
    }

    #[test]
    fn a_reading_joins_all_texts() {
        let reading = difference(&sample(1000, 100, 7), &sample(2000, 160, 9));
        assert_eq!(reading.cpu.window_ns, 1_000_000_000);
        assert_eq!(reading.cpu.total.busy_ns, 400_000_000);
        let cpu = &reading.cpu.cpus[0];
        assert_eq!(
            (cpu.cpu, cpu.net_rx_softirqs, cpu.net_tx_softirqs, cpu.packets_processed),
            (3, 60, 0, 60)
        );
        let expected = [("Ip.InReceives".to_owned(), 2), ("Ip6.InPkts".to_owned(), 2)];
        assert_eq!(reading.protocol, Counters::from(expected));
        assert_eq!(reading.unavailable, ["energy: none"]);
    }

    #[test]
    fn what_is_damaged_is_named_and_the_rest_is_kept() {
        let mut later = sample(2000, 160, 9);
        later.stat = b"nothing".to_vec();
        later.softnet = Some("x".to_owned());
        later.protocol[0] = Some("Ip: InReceives\nIp: 1\n".to_owned());
        let reading = difference(&sample(1000, 100, 7), &later);
        assert!(reading.cpu.cpus.is_empty());
        assert_eq!(reading.protocol, Counters::from([("Ip6.InPkts".to_owned(), 2)]));
        let told = |what: &str| reading.unavailable.iter().any(|note| note.contains(what));
        assert!(
            told("/proc/stat") && told("softnet_stat") && told("Ip.InReceives: stepped back"),
            "{reading:?}"
        );
    }
}
