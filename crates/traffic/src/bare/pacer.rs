//! Evenly paced messages.

use std::time::Duration;

use linerate_model::units::Rate;

use super::Tally;
use crate::pace::Schedule;

/// When messages may go.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Pace {
    /// `rate` on average, `burst` messages at a time (0 is 1).
    Rate {
        /// Bits, or messages, a second.
        rate: Rate,
        /// Messages that go together.
        burst: u32,
    },
    /// `messages` at the begin of every interval (0 is 1).
    Every {
        /// From the begin of one burst to that of the next.
        interval: Duration,
        /// Messages that go together.
        messages: u32,
    },
}

/// The due times of one loop's messages: exact on average, a late loop catches up.
#[derive(Debug)]
pub struct Pacer {
    schedule: Schedule,
    burst: u32,
    left: u32,
}

impl Pacer {
    /// For messages of `size` bytes, the first due at `start_ns` of CLOCK_MONOTONIC.
    pub fn new(pace: Pace, size: usize, start_ns: u64) -> Self {
        let (schedule, burst) = match pace {
            Pace::Rate { rate, burst } => {
                // A burst of n is one turn of n streams.
                let burst = burst.max(1);
                (Schedule::new(rate, size as u64, burst, 0, start_ns), burst)
            }
            Pace::Every { interval, messages } => {
                let ns = u64::try_from(interval.as_nanos()).unwrap_or(u64::MAX / 4);
                (Schedule::every(ns, start_ns), messages.max(1))
            }
        };
        Self { schedule, burst, left: 0 }
    }

    /// Sleeps until the next message may go; false once stopped.
    pub fn take_turn(&mut self, tally: &Tally) -> bool {
        if self.left == 0 {
            if !tally.wait_until(self.schedule.due_ns()) {
                return false;
            }
            self.schedule.advance();
            self.left = self.burst;
        }
        self.left -= 1;
        true
    }

    /// When the next message may go, if that is later than `now_ns`; else takes its turn.
    pub fn due_after(&mut self, now_ns: u64) -> Option<u64> {
        if self.left == 0 {
            let due = self.schedule.due_ns();
            if due > now_ns {
                return Some(due);
            }
            self.schedule.advance();
            self.left = self.burst;
        }
        self.left -= 1;
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use linerate_model::units::RateUnit;

    fn dues(mut pacer: Pacer, count: usize) -> Vec<u64> {
        let mut now = 0;
        let mut dues = Vec::new();
        while dues.len() < count {
            match pacer.due_after(now) {
                Some(due) => now = due,
                None => dues.push(now),
            }
        }
        dues
    }

    #[test]
    fn bursts_go_together_and_the_average_holds() {
        let every = Pace::Every { interval: Duration::from_nanos(10), messages: 3 };
        assert_eq!(dues(Pacer::new(every, 1, 0), 7), [0, 0, 0, 10, 10, 10, 20]);
        let rate = Rate { per_second: 1_000_000_000, unit: RateUnit::PacketsPerSecond };
        assert_eq!(dues(Pacer::new(Pace::Rate { rate, burst: 2 }, 1, 0), 5), [0, 0, 2, 2, 4]);
        let bits = Rate { per_second: 8_000_000_000, unit: RateUnit::BitsPerSecond };
        assert_eq!(dues(Pacer::new(Pace::Rate { rate: bits, burst: 0 }, 100, 5), 3), [5, 105, 205]);
    }
}
