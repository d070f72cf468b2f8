//! CPU time from `/proc/stat` (proc_stat(5), the kernel's fs/proc/stat.c and kernel/sched/cputime.c).
//!
//! Busy time is what idle time leaves of the window, since with `NO_HZ` the kernel times idleness, while it samples what a
//! busy CPU did at each tick. Steal time is taken off too: another guest's work is not ours.

use linerate_model::counters::CpuTime;

use crate::error::{MeterError, Result};

/// One line of `/proc/stat`, in ticks of `USER_HZ`. `user` includes guests, as the kernel counts them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Ticks {
    pub(crate) user: u64,
    pub(crate) nice: u64,
    pub(crate) system: u64,
    pub(crate) idle: u64,
    pub(crate) iowait: u64,
    pub(crate) irq: u64,
    pub(crate) softirq: u64,
    pub(crate) steal: u64,
}

impl Ticks {
    /// Parses the numbers that follow the line's label.
    fn parse(numbers: &str) -> Option<Self> {
        let mut fields = numbers.split_ascii_whitespace().map(str::parse);
        let mut next = || fields.next()?.ok();
        Some(Self {
            user: next()?,
            nice: next()?,
            system: next()?,
            idle: next()?,
            iowait: next()?,
            irq: next()?,
            softirq: next()?,
            steal: next()?,
        })
    }

    fn plus(self, other: &Self) -> Self {
        Self {
            user: self.user.wrapping_add(other.user),
            nice: self.nice.wrapping_add(other.nice),
            system: self.system.wrapping_add(other.system),
            idle: self.idle.wrapping_add(other.idle),
            iowait: self.iowait.wrapping_add(other.iowait),
            irq: self.irq.wrapping_add(other.irq),
            softirq: self.softirq.wrapping_add(other.softirq),
            steal: self.steal.wrapping_add(other.steal),
        }
    }

    /// Ticks in which the CPU did nothing for this machine.
    pub(crate) fn not_busy(&self) -> u64 {
        self.idle.wrapping_add(self.iowait).wrapping_add(self.steal)
    }
}

/// The CPU lines of `/proc/stat`: the sum line, which covers all CPUs that may ever be, and each CPU that is online.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct Stat {
    pub(crate) total: Ticks,
    pub(crate) cpus: Vec<(u32, Ticks)>,
}

impl Stat {
    pub(crate) fn parse(text: &[u8]) -> Result<Self> {
        let mut lines = cpu_lines(text)?;
        let (None, total) = lines.next().ok_or_else(no_cpu_line)?? else { return Err(no_cpu_line()) };
        let mut cpus = Vec::new();
        for line in lines {
            let (Some(cpu), ticks) = line? else { return Err(malformed("two sum lines")) };
            cpus.push((cpu, ticks));
        }
        Ok(Self { total, cpus })
    }
}

/// What `/proc/stat` says of the whole machine: the sum line, and how many CPUs are online. Allocates nothing.
pub(crate) fn totals(text: &[u8]) -> Result<(Ticks, u32)> {
    let mut lines = cpu_lines(text)?;
    let (_, total) = lines.next().ok_or_else(no_cpu_line)??;
    Ok((total, u32::try_from(lines.count()).unwrap_or(u32::MAX)))
}

/// The leading lines whose label is `cpu` (`None`) or `cpuN`.
fn cpu_lines(text: &[u8]) -> Result<impl Iterator<Item = Result<(Option<u32>, Ticks)>> + '_> {
    let text = std::str::from_utf8(text).map_err(|_| malformed("not UTF-8"))?;
    Ok(text.lines().map_while(|line| line.strip_prefix("cpu")).map(cpu_line))
}

fn cpu_line(rest: &str) -> Result<(Option<u32>, Ticks)> {
    let (number, ticks) = rest.split_once(' ').ok_or_else(|| malformed("a CPU line without numbers"))?;
    let cpu = match number {
        "" => None,
        number => Some(number.parse().map_err(|_| malformed("a CPU without a number"))?),
    };
    let ticks = Ticks::parse(ticks).ok_or_else(|| malformed("a CPU line of fewer than 8 numbers"))?;
    Ok((cpu, ticks))
}

/// CPU times of a window.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct CpuTimes {
    pub(crate) total: CpuTime,
    /// CPUs that were online at both samples, ascending.
    pub(crate) cpus: Vec<(u32, CpuTime)>,
    /// CPUs that were online at one of the samples only.
    pub(crate) changed: Vec<u32>,
}

/// What happened between two samples that are `window_ns` apart.
///
/// The total comes from the sum line, which the kernel rounds once instead of once a CPU, so it may differ from the sum
/// over `cpus` by a tick for each of them. Where CPUs came or went, it is that of the CPUs that stayed.
pub(crate) fn difference(window_ns: u64, tick_ns: u64, earlier: &Stat, later: &Stat) -> CpuTimes {
    let mut cpus = Vec::new();
    let mut stayed = (Ticks::default(), Ticks::default());
    for &(cpu, ticks) in &later.cpus {
        let Some((_, before)) = earlier.cpus.iter().find(|(number, _)| *number == cpu) else { continue };
        stayed = (stayed.0.plus(before), stayed.1.plus(&ticks));
        cpus.push((cpu, time(window_ns, tick_ns, before, &ticks)));
    }
    cpus.sort_by_key(|(cpu, _)| *cpu);
    let changed = changed(earlier, later);
    let (before, after) = if changed.is_empty() { (earlier.total, later.total) } else { stayed };
    let all_ns = window_ns.saturating_mul(cpus.len() as u64);
    CpuTimes { total: time(all_ns, tick_ns, &before, &after), cpus, changed }
}

fn changed(earlier: &Stat, later: &Stat) -> Vec<u32> {
    let missing = |here: &Stat, cpu: u32| !here.cpus.iter().any(|(number, _)| *number == cpu);
    let gone = earlier.cpus.iter().map(|(cpu, _)| *cpu).filter(|&cpu| missing(later, cpu));
    let come = later.cpus.iter().map(|(cpu, _)| *cpu).filter(|&cpu| missing(earlier, cpu));
    gone.chain(come).collect()
}

/// Idle and steal are kept within the window; busy is the rest, so the three add up to it.
fn time(window_ns: u64, tick_ns: u64, earlier: &Ticks, later: &Ticks) -> CpuTime {
    let grown = |earlier: u64, later: u64| later.saturating_sub(earlier).saturating_mul(tick_ns);
    // Idle and I/O wait may step back (proc_stat(5)): only their sum is judged.
    let waiting = |ticks: &Ticks| ticks.idle.wrapping_add(ticks.iowait);
    let idle_ns = grown(waiting(earlier), waiting(later)).min(window_ns);
    let steal_ns = grown(earlier.steal, later.steal).min(window_ns - idle_ns);
    CpuTime {
        busy_ns: window_ns - idle_ns - steal_ns,
        idle_ns,
        user_ns: grown(earlier.user, later.user),
        nice_ns: grown(earlier.nice, later.nice),
        system_ns: grown(earlier.system, later.system),
        irq_ns: grown(earlier.irq, later.irq),
        softirq_ns: grown(earlier.softirq, later.softirq),
        steal_ns,
    }
}

fn no_cpu_line() -> MeterError {
    malformed("no CPU line")
}

fn malformed(detail: &str) -> MeterError {
    MeterError::malformed("/proc/stat", detail)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const TICK_NS: u64 = 10_000_000;
    const SECOND: u64 = 1_000_000_000;

    const BEFORE: &str = "\
cpu  100 0 50 1000 10 1 2 3 0 0
cpu0 60 0 20 500 5 1 1 1 0 0
cpu1 40 0 30 500 5 0 1 2 0 0
intr 1 2 3
";
    const AFTER: &str = "\
cpu  170 0 90 1079 10 1 5 13 0 0
cpu0 130 0 20 520 5 1 2 10 0 0
cpu1 40 0 70 559 5 0 3 3 0 0
intr 4 5 6
";

    fn stat(text: &str) -> Stat {
        Stat::parse(text.as_bytes()).unwrap()
    }

    #[test]
    fn busy_is_what_idle_and_steal_leave_of_the_window() {
        let times = difference(SECOND, TICK_NS, &stat(BEFORE), &stat(AFTER));
        assert_eq!(times.cpus.len(), 2);
        let (cpu, first) = times.cpus[0];
        assert_eq!((cpu, first.idle_ns, first.steal_ns), (0, 200_000_000, 90_000_000));
        assert_eq!(first.busy_ns, 710_000_000);
        assert_eq!(first.user_ns, 700_000_000);
        assert_eq!(times.cpus[1].1.system_ns, 400_000_000);
        assert_eq!(times.cpus[1].1.softirq_ns, 20_000_000);
        assert_eq!(times.total.busy_ns, 2 * SECOND - 790_000_000 - 100_000_000);
        assert!(times.changed.is_empty());
    }

    #[test]
    fn idle_that_steps_back_or_runs_ahead_stays_within_the_window() {
        let (before, after) = (stat(BEFORE), stat(AFTER));
        let back = difference(SECOND, TICK_NS, &after, &before);
        assert_eq!((back.total.busy_ns, back.total.idle_ns), (2 * SECOND, 0));
        let short = difference(100_000_000, TICK_NS, &before, &after);
        assert_eq!((short.cpus[1].1.busy_ns, short.cpus[1].1.idle_ns), (0, 100_000_000));
    }

    #[test]
    fn a_cpu_that_comes_or_goes_is_left_out_and_named() {
        let (before, after) = (stat(BEFORE), stat(AFTER));
        let only_first = Stat { total: after.total, cpus: vec![after.cpus[0]] };
        for (earlier, later) in [(&before, &only_first), (&only_first, &after)] {
            let times = difference(SECOND, TICK_NS, earlier, later);
            assert_eq!(times.changed, [1]);
            assert_eq!(times.cpus.len(), 1);
            assert_eq!(times.total, times.cpus[0].1);
        }
    }

    #[test]
    fn the_cheap_reading_agrees_with_the_whole() {
        assert_eq!(totals(BEFORE.as_bytes()).unwrap(), (stat(BEFORE).total, 2));
    }

    #[test]
    fn damage_is_refused() {
        for text in
            ["", "intr 1\n", "cpu 1 2 3\n", "cpu0 1 2 3 4 5 6 7 8\n", "cpu  1 2 3 4 5 6 7 8\ncpux 1\n"]
        {
            assert!(Stat::parse(text.as_bytes()).is_err(), "{text:?}");
        }
        assert!(Stat::parse(&[0xff]).is_err());
    }

    proptest! {
        #[test]
        fn hostile_bytes_never_panic(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
            let _ = Stat::parse(&bytes);
            let _ = totals(&bytes);
        }

        #[test]
        fn hostile_text_never_panics(text in "(cpu[0-9]{0,11} ?([0-9-]{0,21} ?){0,10}\n){0,5}") {
            let _ = totals(text.as_bytes());
            if let Ok(stat) = Stat::parse(text.as_bytes()) {
                let _ = difference(u64::MAX, u64::MAX, &stat, &Stat::default());
                let _ = difference(1, u64::MAX, &Stat::default(), &stat);
                let _ = difference(u64::MAX, u64::MAX, &stat, &stat);
            }
        }

        #[test]
        fn busy_idle_and_steal_add_up(numbers in any::<[u64; 16]>(), window in any::<u64>()) {
            let n = numbers.map(|x| x >> 30);
            let ticks = |n: &[u64]| Ticks {
                user: n[0], nice: n[1], system: n[2], idle: n[3], iowait: n[4], irq: n[5], softirq: n[6], steal: n[7],
            };
            let time = time(window, TICK_NS, &ticks(&n[..8]), &ticks(&n[8..]));
            prop_assert_eq!(time.busy_ns + time.idle_ns + time.steal_ns, window);
        }
    }
}
