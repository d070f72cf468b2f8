//! Keeps what a strand sends within a rate.

use linerate_sys::clock;

use super::gate::Gate;

/// Longest sleep before a stop is looked for again.
const STEP_NS: u64 = 20_000_000;
const NS_PER_SECOND: u128 = 1_000_000_000;

/// When the next bytes may go.
#[derive(Debug)]
pub(super) struct Pace {
    bits_per_second: Option<u64>,
    due_ns: u64,
}

impl Pace {
    /// `None` is no limit.
    pub(super) fn new(bits_per_second: Option<u64>) -> Self {
        Self { bits_per_second, due_ns: 0 }
    }

    /// Waits for its turn; false when it was told to end meanwhile.
    pub(super) fn wait(&self, gate: &Gate, transaction: u32) -> bool {
        if self.bits_per_second.is_none() {
            return true;
        }
        loop {
            let now_ns = clock::monotonic_ns();
            if now_ns >= self.due_ns {
                return true;
            }
            if gate.stops_blocked(transaction) {
                return false;
            }
            clock::sleep_until(self.due_ns.min(now_ns + STEP_NS));
        }
    }

    /// These bytes went: the next may once they would have left at the rate. Time that was not used is not made up for.
    pub(super) fn sent(&mut self, bytes: usize) {
        let Some(rate) = self.bits_per_second else { return };
        self.due_ns = due_ns(self.due_ns.max(clock::monotonic_ns()), bytes, rate);
    }
}

fn due_ns(from_ns: u64, bytes: usize, bits_per_second: u64) -> u64 {
    let takes_ns = bytes as u128 * 8 * NS_PER_SECOND / u128::from(bits_per_second.max(1));
    from_ns.saturating_add(u64::try_from(takes_ns).unwrap_or(u64::MAX))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_take_the_time_that_the_rate_gives_them() {
        assert_eq!(due_ns(5, 125_000, 1_000_000), 1_000_000_005);
        assert_eq!(due_ns(0, 1 << 20, 10_000_000_000), 838_860);
        assert_eq!(due_ns(0, usize::MAX, 0), u64::MAX);
    }

    #[test]
    fn a_strand_that_is_told_to_end_does_not_wait_for_its_turn() {
        let gate = Gate::new(1);
        let mut pace = Pace::new(Some(8));
        assert!(pace.wait(&gate, 0));
        pace.sent(1_000_000);
        gate.kill();
        assert!(!pace.wait(&gate, 0));
        assert!(Pace::new(None).wait(&gate, 0));
    }
}
