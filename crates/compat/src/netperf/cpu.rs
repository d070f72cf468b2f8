//! What the machine's CPUs did while a test ran.

use linerate_meter::{Meter, MeterError, Sample, difference};

use super::reply::CpuShares;

/// Samples of CPU time: one at the begin, one at the end, each taken once.
#[derive(Debug)]
pub(crate) struct CpuWatch {
    meter: Meter,
    begun: Option<Sample>,
    ended: Option<Sample>,
}

impl CpuWatch {
    pub(crate) fn open() -> Result<Self, MeterError> {
        Ok(Self { meter: Meter::open(None)?, begun: None, ended: None })
    }

    pub(crate) fn begin(&mut self) {
        let sample = self.meter.sample();
        self.begun.get_or_insert(sample);
    }

    pub(crate) fn end(&mut self) {
        if self.begun.is_some() && self.ended.is_none() {
            self.ended = Some(self.meter.sample());
        }
    }

    /// Shares between begin and end, and the number of CPUs.
    pub(crate) fn shares(&self) -> Option<(CpuShares, i32)> {
        let machine = difference(self.begun.as_ref()?, self.ended.as_ref()?).cpu;
        let cpus = machine.cpus.len();
        let one_ns = machine.window_ns as f64;
        let percent =
            |ns: u64, cpus: usize| (100.0 * ns as f64 / (one_ns * cpus.max(1) as f64).max(1.0)) as f32;
        let peak = machine.cpus.iter().max_by_key(|cpu| cpu.time.busy_ns);
        let total = &machine.total;
        let shares = CpuShares {
            util: percent(total.busy_ns, cpus).min(100.0),
            user: percent(total.user_ns + total.nice_ns, cpus),
            system: percent(total.system_ns, cpus),
            // Waiting for a disk is idle time here.
            iowait: 0.0,
            irq: percent(total.irq_ns, cpus),
            softirq: percent(total.softirq_ns, cpus),
            peak_id: peak.map_or(-1, |cpu| i32::try_from(cpu.cpu).unwrap_or(-1)),
            peak: peak.map_or(0.0, |cpu| percent(cpu.time.busy_ns, 1)).min(100.0),
        };
        Some((shares, i32::try_from(cpus).unwrap_or(i32::MAX)))
    }
}
