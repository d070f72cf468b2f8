//! The meter of a node and its samples.

use std::path::Path;
use std::sync::Arc;

use linerate_sys::clock::monotonic_ns;

use crate::cpu;
use crate::energy::{Energy, EnergySample};
use crate::error::Result;
use crate::file::KeptFile;
use crate::link::{LinkMeter, LinkSample};
use crate::source::CpuSource;

/// Reads what a node counts, from files and sockets that stay open.
///
/// It belongs to the network namespace in which the calling thread was when it opened the meter; CPU time and softirqs are
/// those of the whole machine.
///
/// Measured on a virtual machine with two CPUs (`cargo run --release -p linerate-meter --example cost LINK`): a sample with a
/// link takes 70 us, a busy sample 2.5 us, a difference 130 us. More CPUs, interrupts and links make longer texts.
#[derive(Debug)]
pub struct Meter {
    source: Arc<CpuSource>,
    stat: KeptFile,
    softirqs: Option<KeptFile>,
    softnet: Option<KeptFile>,
    protocol: [Option<KeptFile>; 3],
    link: Option<LinkMeter>,
    energy: Energy,
    unavailable: Vec<String>,
}

/// What a node had counted at one instant: texts as the kernel gave them, which [`difference`](crate::difference) reads.
#[derive(Debug, Clone)]
pub struct Sample {
    pub(crate) at_ns: u64,
    pub(crate) source: Arc<CpuSource>,
    pub(crate) stat: Vec<u8>,
    pub(crate) softirqs: Option<String>,
    pub(crate) softnet: Option<String>,
    /// In the order of [`PROTOCOL_FILES`].
    pub(crate) protocol: [Option<String>; 3],
    pub(crate) link: Option<LinkSample>,
    pub(crate) energy: Vec<EnergySample>,
    pub(crate) unavailable: Vec<String>,
}

/// Files of protocol counters.
pub(crate) const PROTOCOL_FILES: [&str; 3] =
    ["/proc/thread-self/net/snmp", "/proc/thread-self/net/netstat", "/proc/thread-self/net/snmp6"];

impl Meter {
    /// Opens everything that there is; `link` is the link under test, where one is known.
    ///
    /// # Errors
    /// `/proc/stat` can't be read, or there is no such link. Everything else that can't be had is told in
    /// `MeterReading::unavailable`.
    pub fn open(link: Option<&str>) -> Result<Self> {
        let mut unavailable = Vec::new();
        let mut stat = KeptFile::open("/proc/stat")?;
        cpu::Stat::parse(stat.read()?)?;
        let link = link.map(|name| LinkMeter::open(name, &mut unavailable)).transpose()?;
        let mut open = |path: &str| match KeptFile::open(path) {
            Ok(file) => Some(file),
            Err(error) => {
                unavailable.push(error.to_string());
                None
            }
        };
        Ok(Self {
            source: Arc::new(CpuSource::detect()?),
            stat,
            softirqs: open("/proc/softirqs"),
            softnet: open("/proc/thread-self/net/softnet_stat"),
            protocol: PROTOCOL_FILES.map(&mut open),
            link,
            energy: Energy::open(Path::new("/sys/class/powercap"), &mut unavailable),
            unavailable,
        })
    }

    /// Reads everything: CPU time first, so that its instant is sharp, the slow parts last.
    pub fn sample(&mut self) -> Sample {
        let mut unavailable = self.unavailable.clone();
        let (at_ns, stat) = read_stat(&mut self.stat);
        let stat = keep(stat.map(<[u8]>::to_vec), &mut unavailable).unwrap_or_default();
        let mut text = |file: &mut Option<KeptFile>| keep(file.as_mut()?.read_text(), &mut unavailable);
        let softirqs = text(&mut self.softirqs);
        let softnet = text(&mut self.softnet);
        let protocol = self.protocol.each_mut().map(text);
        let link = self.link.as_mut().map(|link| link.sample(&mut unavailable));
        let energy = self.energy.sample(&mut unavailable);
        Sample {
            at_ns,
            source: Arc::clone(&self.source),
            stat,
            softirqs,
            softnet,
            protocol,
            link,
            energy,
            unavailable,
        }
    }

    /// Reads the machine's idle time only. Allocates nothing.
    pub fn busy_sample(&mut self) -> BusySample {
        let (at_ns, stat) = read_stat(&mut self.stat);
        BusySample::of(at_ns, self.source.user_tick_ns, stat.unwrap_or_default())
    }
}

/// The text, and the instant in the middle of its reading.
fn read_stat(stat: &mut KeptFile) -> (u64, Result<&[u8]>) {
    let before_ns = monotonic_ns();
    let text = stat.read();
    (before_ns.midpoint(monotonic_ns()), text)
}

fn keep<T>(result: Result<T>, unavailable: &mut Vec<String>) -> Option<T> {
    result.map_err(|error| unavailable.push(error.to_string())).ok()
}

impl Sample {
    /// When `/proc/stat` was read, nanoseconds of `CLOCK_MONOTONIC`.
    pub fn at_ns(&self) -> u64 {
        self.at_ns
    }

    /// The part of it that a busy sample has, so that intervals can begin and end with the window.
    pub fn busy(&self) -> BusySample {
        BusySample::of(self.at_ns, self.source.user_tick_ns, &self.stat)
    }
}

/// How long the CPUs of a machine had not been busy at one instant.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BusySample {
    at_ns: u64,
    tick_ns: u64,
    /// Ticks not busy, and CPUs online; `None` where `/proc/stat` could not be read.
    machine: Option<(u64, u32)>,
}

impl BusySample {
    fn of(at_ns: u64, tick_ns: u64, stat: &[u8]) -> Self {
        let machine = cpu::totals(stat).ok().map(|(ticks, cpus)| (ticks.not_busy(), cpus));
        Self { at_ns, tick_ns, machine }
    }

    /// When it was taken, nanoseconds of `CLOCK_MONOTONIC`.
    pub fn at_ns(&self) -> u64 {
        self.at_ns
    }

    /// Busy time of all CPUs since an earlier sample, nanoseconds, by the rule of `CpuTime::busy_ns`; its resolution is one
    /// tick of `USER_HZ` for the whole machine. `None` where `/proc/stat` could not be read or the number of CPUs changed.
    pub fn busy_ns_since(&self, earlier: &Self) -> Option<u64> {
        let ((later_ticks, cpus), (earlier_ticks, earlier_cpus)) = (self.machine?, earlier.machine?);
        if cpus != earlier_cpus {
            return None;
        }
        let window_ns = self.at_ns.saturating_sub(earlier.at_ns).saturating_mul(cpus.into());
        let rest_ns = later_ticks.saturating_sub(earlier_ticks).saturating_mul(self.tick_ns);
        Some(window_ns.saturating_sub(rest_ns))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn busy_time_of_an_interval_is_what_idle_leaves() {
        let at = |ms: u64, idle: u64, cpus: u32| BusySample {
            at_ns: ms * 1_000_000,
            tick_ns: 10_000_000,
            machine: Some((idle, cpus)),
        };
        assert_eq!(at(1500, 150, 2).busy_ns_since(&at(1000, 90, 2)), Some(400_000_000));
        assert_eq!(at(1500, 500, 2).busy_ns_since(&at(1000, 90, 2)), Some(0));
        assert_eq!(at(1500, 80, 2).busy_ns_since(&at(1000, 90, 2)), Some(1_000_000_000));
        assert_eq!(at(1500, 150, 3).busy_ns_since(&at(1000, 90, 2)), None);
        assert_eq!(BusySample::of(1, 1, b"").busy_ns_since(&at(0, 0, 1)), None);
    }

    #[test]
    fn a_link_that_is_not_there_is_refused() {
        let error = Meter::open(Some("lr-none")).unwrap_err();
        assert!(error.to_string().starts_with("find link lr-none: "), "{error}");
    }
}
