//! What the kernel counted, read from outside the tools and the same way for each.

use std::{
    collections::BTreeMap,
    fs,
    time::{Duration, Instant},
};

use anyhow::{Context as _, Result};

use super::{place::Place, work::Unit};

/// All counters at one instant.
pub(crate) struct Snapshot {
    at: Instant,
    idle_seconds: f64,
    /// CPU time of the tools' processes.
    process_seconds: f64,
    link_received_bytes: u64,
    link_received_packets: u64,
    datagrams_received: u64,
}

/// What happened between two snapshots.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Counted {
    /// Time between the snapshots.
    pub(crate) window: Duration,
    /// Units of the work that arrived, a second.
    pub(crate) units_per_second: f64,
    /// Seconds that all CPUs were busy, by their idle time, for each unit.
    pub(crate) busy_seconds_per_unit: f64,
    /// CPU seconds that the kernel put down to the tool's processes, for each unit.
    pub(crate) process_seconds_per_unit: f64,
    /// How busy the machine was, in CPUs.
    pub(crate) busy_cpus: f64,
}

impl Snapshot {
    /// Reads everything; `roots` are the tool's first processes.
    pub(crate) fn take(place: &Place, roots: &[u32]) -> Result<Self> {
        let process_seconds = tree_seconds(roots)?;
        let link = place.server_net("dev");
        let (link_received_bytes, link_received_packets) =
            link_received(&link, place.server_link()).context("the server's link has no counters")?;
        let datagrams_received =
            udp_received(&place.server_net("snmp")).context("the server's namespace has no UDP counters")?;
        // Time and idle time last and together: the CPU's share is their difference.
        let stat = fs::read_to_string("/proc/stat").context("read /proc/stat")?;
        let at = Instant::now();
        let idle_seconds = idle_seconds(&stat).context("/proc/stat has no line for all CPUs")?;
        Ok(Self {
            at,
            idle_seconds,
            process_seconds,
            link_received_bytes,
            link_received_packets,
            datagrams_received,
        })
    }

    /// Packets that the server's link received so far.
    pub(crate) fn packets_so_far(place: &Place) -> u64 {
        link_received(&place.server_net("dev"), place.server_link()).map_or(0, |(_, packets)| packets)
    }

    /// What happened up to `end`.
    pub(crate) fn until(&self, end: &Self, unit: Unit, place: &Place) -> Counted {
        let window = end.at - self.at;
        let since = |one: u64, other: u64| other.saturating_sub(one) as f64;
        let units = match unit {
            Unit::Byte => since(self.link_received_bytes, end.link_received_bytes),
            Unit::Transaction => {
                since(self.link_received_packets, end.link_received_packets) / place.packets_per_transaction()
            }
            Unit::Datagram => since(self.datagrams_received, end.datagrams_received),
        };
        let busy_seconds = window.as_secs_f64() * cpu_count() - (end.idle_seconds - self.idle_seconds);
        Counted {
            window,
            units_per_second: units / window.as_secs_f64(),
            busy_seconds_per_unit: busy_seconds / units,
            process_seconds_per_unit: (end.process_seconds - self.process_seconds) / units,
            busy_cpus: busy_seconds / window.as_secs_f64(),
        }
    }
}

/// How busy the machine is when nothing is measured, in CPUs.
pub(crate) fn background_busy_cpus(window: Duration) -> Result<f64> {
    let idle = || -> Result<f64> {
        let stat = fs::read_to_string("/proc/stat").context("read /proc/stat")?;
        idle_seconds(&stat).context("/proc/stat has no line for all CPUs")
    };
    let (started, before) = (Instant::now(), idle()?);
    std::thread::sleep(window);
    let (elapsed, after) = (started.elapsed().as_secs_f64(), idle()?);
    Ok(cpu_count() - (after - before) / elapsed)
}

/// CPUs that are online.
pub(crate) fn cpu_count() -> f64 {
    let online = nix::unistd::sysconf(nix::unistd::SysconfVar::_NPROCESSORS_ONLN);
    online.ok().flatten().unwrap_or(1) as f64
}

fn ticks_per_second() -> f64 {
    nix::unistd::sysconf(nix::unistd::SysconfVar::CLK_TCK).ok().flatten().unwrap_or(100) as f64
}

/// Idle time of all CPUs, with waits for disks: fields 4 and 5 of the line `cpu` (proc_stat(5)).
fn idle_seconds(stat: &str) -> Option<f64> {
    let mut fields = stat.lines().next()?.strip_prefix("cpu ")?.split_whitespace().map(str::parse::<f64>);
    let idle = fields.nth(3)?.ok()?;
    let waiting = fields.next()?.ok()?;
    Some((idle + waiting) / ticks_per_second())
}

/// Bytes and packets that a link received, from `/proc/net/dev` (proc_pid_net(5)).
fn link_received(dev: &str, link: &str) -> Option<(u64, u64)> {
    let counters = dev.lines().find_map(|line| line.trim_start().strip_prefix(link)?.strip_prefix(':'))?;
    let mut fields = counters.split_whitespace().map(str::parse);
    Some((fields.next()?.ok()?, fields.next()?.ok()?))
}

/// Datagrams that programs have received: `InDatagrams` of `/proc/net/snmp` (RFC 4113, udpInDatagrams).
fn udp_received(snmp: &str) -> Option<u64> {
    let mut lines = snmp.lines().filter_map(|line| line.strip_prefix("Udp: "));
    let (names, values) = (lines.next()?, lines.next()?);
    let mut columns = names.split(' ').zip(values.split(' '));
    columns.find(|(name, _)| *name == "InDatagrams")?.1.parse().ok()
}

/// CPU time of processes, their descendants, and their children that ended.
fn tree_seconds(roots: &[u32]) -> Result<f64> {
    let processes: BTreeMap<u32, Process> = fs::read_dir("/proc")
        .context("list /proc")?
        .filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok())
        .filter_map(|pid| {
            Some((pid, Process::parse(&fs::read_to_string(format!("/proc/{pid}/stat")).ok()?)?))
        })
        .collect();
    let is_in_tree = |pid: u32| {
        let line = std::iter::successors(Some(pid), |one| processes.get(one).map(|process| process.parent));
        line.take(64).any(|ancestor| roots.contains(&ancestor))
    };
    let ticks: f64 =
        processes.iter().filter(|(pid, _)| is_in_tree(**pid)).map(|(_, process)| process.ticks).sum();
    Ok(ticks / ticks_per_second())
}

struct Process {
    parent: u32,
    ticks: f64,
}

impl Process {
    /// Fields 4 (parent) and 14 to 17 (user and system time, and those of ended children) of proc_pid_stat(5).
    fn parse(stat: &str) -> Option<Self> {
        let (_, tail) = stat.rsplit_once(") ")?;
        let fields: Vec<_> = tail.split(' ').collect();
        let parent = fields.get(1)?.parse().ok()?;
        let times: Option<Vec<f64>> = fields.get(11..15)?.iter().map(|field| field.parse().ok()).collect();
        Some(Self { parent, ticks: times?.iter().sum() })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kernel_texts_are_read() {
        assert_eq!(
            idle_seconds("cpu  10 0 20 300 100 0 0 0 0 0\ncpu0 1 2\n").map(|s| s * ticks_per_second()),
            Some(400.0)
        );
        let dev = "head\n    lo: 100 2 0 0 0 0 0 0 100 2 0\n lr-right: 77 8 0\n";
        assert_eq!(link_received(dev, "lo"), Some((100, 2)));
        assert_eq!(link_received(dev, "lr-right"), Some((77, 8)));
        assert_eq!(link_received(dev, "lr"), None);
        let snmp = "Tcp: a b\nTcp: 1 2\nUdp: NoPorts InDatagrams\nUdp: 3 4\n";
        assert_eq!(udp_received(snmp), Some(4));
        let stat = "7 (a ) b) S 5 7 7 0 -1 0 0 0 0 0 10 20 3 4 20 0";
        let process = Process::parse(stat).unwrap();
        assert_eq!((process.parent, process.ticks), (5, 37.0));
    }

    #[test]
    fn this_process_uses_cpu() {
        let before = tree_seconds(&[std::process::id()]).unwrap();
        let started = Instant::now();
        while started.elapsed() < Duration::from_millis(200) {
            std::hint::black_box(0);
        }
        assert!(tree_seconds(&[std::process::id()]).unwrap() > before);
    }
}
