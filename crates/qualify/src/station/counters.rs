//! Counters and the kernel's log of one end.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use linerate_model::bench::{BenchReply, BenchRequest, LogLine, Snapshot};

use super::{Station, unexpected};
use crate::trouble::Trouble;

/// A little more than the kernel's default for drivers that refresh their counters by themselves (25 ms).
const SETTLE: Duration = Duration::from_millis(32);
/// Drivers that read their counters from a watchdog every two seconds.
const SLOW: [&str; 8] = ["e1000", "e1000e", "e100", "igb", "igbvf", "igc", "8139cp", "tg3"];
const SLOW_SETTLE: Duration = Duration::from_millis(2500);
/// Counters that never stand still are taken as they are after this.
const SETTLE_LIMIT: Duration = Duration::from_secs(6);

impl Station {
    /// Every counter now.
    ///
    /// # Errors
    /// As [`Station::ask`].
    pub fn snapshot(&mut self) -> Result<Snapshot, Trouble> {
        self.watch.check()?;
        self.snapshot_anyway()
    }

    pub(crate) fn snapshot_anyway(&mut self) -> Result<Snapshot, Trouble> {
        let link = self.facts.name.clone();
        match self.ask_anyway(&BenchRequest::Snapshot { link })? {
            BenchReply::Snapshot(snapshot) => Ok(*snapshot),
            other => Err(unexpected("read counters", &other)),
        }
    }

    /// Every counter, once those of the link stand still: equal twice, and not before the driver has had time to refresh
    /// them (ground rule G1).
    ///
    /// # Errors
    /// As [`Station::ask`].
    pub fn settled_snapshot(&mut self) -> Result<Snapshot, Trouble> {
        let pause = if SLOW.contains(&self.driver()) { SLOW_SETTLE } else { SETTLE };
        let give_up = Instant::now() + SETTLE_LIMIT.max(3 * pause);
        self.watch.sleep(pause)?;
        let mut last = self.snapshot()?;
        loop {
            self.watch.sleep(pause.min(SETTLE))?;
            let next = self.snapshot()?;
            if (next.link == last.link && next.driver == last.driver) || Instant::now() >= give_up {
                return Ok(next);
            }
            last = next;
        }
    }

    /// Where the kernel's log stands.
    pub(crate) fn log_position(&mut self) -> Result<u64, Trouble> {
        match self.ask_anyway(&BenchRequest::Log { from: u64::MAX })? {
            BenchReply::Log { next, .. } => Ok(next),
            other => Err(unexpected("read the kernel's log", &other)),
        }
    }

    /// The kernel's log from a position on, and how many lines are lost.
    pub(crate) fn log_since(&mut self, from: u64) -> Result<(Vec<LogLine>, u64), Trouble> {
        match self.ask_anyway(&BenchRequest::Log { from })? {
            BenchReply::Log { lines, lost, .. } => Ok((lines, lost)),
            other => Err(unexpected("read the kernel's log", &other)),
        }
    }
}

/// Counters that changed, with their group: `link.rx_packets`. Of driver and queue counters only those that were there
/// before.
pub fn changes(before: &Snapshot, after: &Snapshot) -> BTreeMap<String, i64> {
    fn groups(s: &Snapshot) -> [(&'static str, &BTreeMap<String, u64>); 7] {
        [
            ("link", &s.link),
            ("driver", &s.driver),
            ("standard", &s.standard),
            ("queues", &s.queues),
            ("protocols", &s.protocols),
            ("softnet", &s.softnet),
            ("interrupts", &s.interrupts),
        ]
    }
    let mut changes = BTreeMap::new();
    for ((group, old), (_, new)) in groups(before).into_iter().zip(groups(after)) {
        for (name, value) in new {
            let Some(was) = old.get(name) else { continue };
            let change = value.wrapping_sub(*was).cast_signed();
            if change != 0 {
                changes.insert(format!("{group}.{name}"), change);
            }
        }
    }
    if let (Some(old), Some(new)) = (before.carrier_changes, after.carrier_changes)
        && old != new
    {
        changes.insert("carrier_changes".to_owned(), new.wrapping_sub(old).cast_signed());
    }
    changes
}
