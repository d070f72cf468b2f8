//! When each message of a paced stream is due: exact, evenly spread, without drift.

use linerate_model::units::{Rate, RateUnit};
use linerate_sys::clock;

use crate::control::Control;

const NS_PER_SECOND: u128 = 1_000_000_000;

/// Longest sleep before the stop flag is looked at again.
const LONGEST_SLEEP_NS: u64 = 50_000_000;

/// Due times of one stream's messages on CLOCK_MONOTONIC, nanoseconds.
///
/// The interval is kept as a fraction, so that any number of messages takes exactly the time that the rate asks for.
#[derive(Debug, Clone)]
pub(crate) struct Schedule {
    due_ns: u64,
    /// Numerator of the part of a nanosecond that `due_ns` leaves out.
    rest: u128,
    step_ns: u64,
    step_rest: u128,
    denominator: u128,
}

impl Schedule {
    /// The share of stream `index` of `streams` in a total `rate` of messages of `size` bytes. Streams take turns, so that
    /// the total is even too.
    pub(crate) fn new(rate: Rate, size: u64, streams: u32, index: u32, start_ns: u64) -> Self {
        let units = match rate.unit {
            RateUnit::BitsPerSecond => u128::from(size) * 8,
            RateUnit::PacketsPerSecond | RateUnit::RequestsPerSecond => 1,
        };
        let denominator = u128::from(rate.per_second.max(1));
        let one_of_all = units * NS_PER_SECOND;
        let step = one_of_all * u128::from(streams);
        let offset = one_of_all * u128::from(index);
        Self {
            due_ns: start_ns + (offset / denominator) as u64,
            rest: offset % denominator,
            step_ns: (step / denominator) as u64,
            step_rest: step % denominator,
            denominator,
        }
    }

    /// One turn every `interval_ns`.
    pub(crate) fn every(interval_ns: u64, start_ns: u64) -> Self {
        Self { due_ns: start_ns, rest: 0, step_ns: interval_ns, step_rest: 0, denominator: 1 }
    }

    /// When the next message is due.
    pub(crate) fn due_ns(&self) -> u64 {
        self.due_ns
    }

    /// Moves on to the message after.
    pub(crate) fn advance(&mut self) {
        self.due_ns += self.step_ns;
        self.rest += self.step_rest;
        if self.rest >= self.denominator {
            self.rest -= self.denominator;
            self.due_ns += 1;
        }
    }

    /// Sleeps until the next message is due, then moves on. False once the trial is stopped. A late thread does not sleep.
    pub(crate) fn take_turn(&mut self, control: &Control) -> bool {
        if !wait_until(self.due_ns, control) {
            return false;
        }
        self.advance();
        true
    }
}

/// Sleeps until CLOCK_MONOTONIC reads `due_ns`; false if the trial is stopped before.
pub(crate) fn wait_until(due_ns: u64, control: &Control) -> bool {
    loop {
        if control.stopped() {
            return false;
        }
        let now = clock::monotonic_ns();
        if now >= due_ns {
            return true;
        }
        clock::sleep_until(due_ns.min(now + LONGEST_SLEEP_NS));
    }
}

/// Bytes a second of one stream, for a rate in bits or in calls of `size` bytes.
pub(crate) fn stream_bytes_per_second(rate: Rate, size: u64, streams: u32) -> u64 {
    let total = match rate.unit {
        RateUnit::BitsPerSecond => u128::from(rate.per_second) / 8,
        RateUnit::PacketsPerSecond | RateUnit::RequestsPerSecond => {
            u128::from(rate.per_second) * u128::from(size)
        }
    };
    u64::try_from(total / u128::from(streams.max(1))).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn due_times(mut schedule: Schedule, count: usize) -> Vec<u64> {
        (0..count)
            .map(|_| {
                let due = schedule.due_ns();
                schedule.advance();
                due
            })
            .collect()
    }

    #[test]
    fn an_odd_rate_does_not_drift() {
        let rate = Rate { per_second: 7, unit: RateUnit::PacketsPerSecond };
        let due = due_times(Schedule::new(rate, 64, 1, 0, 1000), 7_000_001);
        assert_eq!(due[0], 1000);
        assert_eq!(due[7_000_000], 1000 + 1_000_000 * 1_000_000_000);
        assert_eq!(due[1], 1000 + 142_857_142);
    }

    #[test]
    fn bits_are_turned_into_calls() {
        let rate = Rate { per_second: 8_000_000, unit: RateUnit::BitsPerSecond };
        let due = due_times(Schedule::new(rate, 1000, 1, 0, 0), 4);
        assert_eq!(due, [0, 1_000_000, 2_000_000, 3_000_000]);
        assert_eq!(stream_bytes_per_second(rate, 1000, 4), 250_000);
    }

    #[test]
    fn streams_take_turns_and_add_up() {
        let rate = Rate { per_second: 1000, unit: RateUnit::RequestsPerSecond };
        let mut all: Vec<u64> =
            (0..4).flat_map(|i| due_times(Schedule::new(rate, 1, 4, i, 0), 250)).collect();
        all.sort_unstable();
        assert_eq!(all, (0..1000).map(|i| i * 1_000_000).collect::<Vec<_>>());
    }

    #[test]
    fn a_stopped_trial_does_not_wait() {
        let control = Control::new();
        assert!(wait_until(clock::monotonic_ns() + 1000, &control));
        control.stop();
        assert!(!wait_until(u64::MAX, &control));
    }
}
