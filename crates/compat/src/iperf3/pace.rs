//! When a stream's blocks are due.

use linerate_sys::clock;

use super::params::Params;

const SECOND_NS: u128 = 1_000_000_000;

/// Longest sleep before the stop is looked at, nanoseconds.
const LONGEST_SLEEP_NS: u64 = 20_000_000;

/// A TCP block that takes longer than this at the stream's rate is sent in pieces, nanoseconds.
const LONG_BLOCK_NS: u128 = 100_000_000;

/// Due times of one stream: after `n` bytes, `n / rate` after its start. Exact, without drift; a late thread catches up.
#[derive(Debug, Clone)]
pub(super) struct Pace {
    /// Bits a second; 0 is unlimited.
    rate: u64,
    start_ns: Option<u64>,
    bytes: u64,
    /// Bytes that go back to back.
    burst_bytes: u64,
    piece: usize,
}

impl Pace {
    /// For blocks of `len` bytes.
    pub(super) fn new(params: &Params, len: usize) -> Self {
        let rate = params.bandwidth.unwrap_or(0);
        Self {
            rate,
            start_ns: None,
            bytes: 0,
            burst_bytes: len as u64 * u64::from(params.burst),
            piece: if params.burst > 0 { len } else { piece(rate, len) },
        }
    }

    /// Bytes to hand over at a time.
    pub(super) fn piece(&self) -> usize {
        self.piece
    }

    /// When the bytes after those so far are due, on CLOCK_MONOTONIC, nanoseconds.
    pub(super) fn due_ns(&mut self, now_ns: u64) -> u64 {
        let start_ns = *self.start_ns.get_or_insert(now_ns);
        let in_burst = if self.burst_bytes > 0 { self.bytes % self.burst_bytes } else { 0 };
        start_ns + time_ns(self.bytes - in_burst, self.rate)
    }

    /// How many more units of `unit` bytes are due at `now_ns`, at most `most` and at least one.
    pub(super) fn due_units(&mut self, now_ns: u64, unit: usize, most: usize) -> usize {
        if self.rate == 0 {
            return most;
        }
        let mut count = 1;
        let start_ns = *self.start_ns.get_or_insert(now_ns);
        while count < most && start_ns + time_ns(self.bytes + (count * unit) as u64, self.rate) <= now_ns {
            count += 1;
        }
        count
    }

    /// Counts bytes as gone.
    pub(super) fn went(&mut self, bytes: usize) {
        self.bytes += bytes as u64;
    }

    /// Waits until the next `bytes` are due and counts them; false once `running` is not true any more.
    pub(super) fn wait(&mut self, bytes: usize, running: impl Fn() -> bool) -> bool {
        if !self.wait_due(running) {
            return false;
        }
        self.went(bytes);
        true
    }

    /// Waits until the next bytes are due.
    pub(super) fn wait_due(&mut self, running: impl Fn() -> bool) -> bool {
        if self.rate == 0 {
            return true;
        }
        loop {
            let now_ns = clock::monotonic_ns();
            let due_ns = self.due_ns(now_ns);
            if now_ns >= due_ns {
                return true;
            }
            clock::sleep_until(due_ns.min(now_ns + LONGEST_SLEEP_NS));
            if !running() {
                return false;
            }
        }
    }
}

fn time_ns(bytes: u64, rate: u64) -> u64 {
    if rate == 0 {
        return 0;
    }
    u64::try_from(u128::from(bytes) * 8 * SECOND_NS / u128::from(rate)).unwrap_or(u64::MAX / 2)
}

/// A block, or a part of it where a whole one would stall the stream for long.
fn piece(rate: u64, len: usize) -> usize {
    if rate == 0 || u128::from(time_ns(len as u64, rate)) <= LONG_BLOCK_NS {
        return len;
    }
    let bytes = u128::from(rate) / 8 * LONG_BLOCK_NS / SECOND_NS;
    usize::try_from(bytes).unwrap_or(len).clamp(1, len)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pace(bandwidth: u64, burst: u32, len: usize) -> Pace {
        Pace::new(&Params { bandwidth: Some(bandwidth), burst, ..Params::default() }, len)
    }

    #[test]
    fn blocks_are_due_at_the_rate_without_drift() {
        let mut pace = pace(7_000_000, 0, 1000);
        assert_eq!(pace.due_ns(500), 500);
        for _ in 0..700_000 {
            pace.went(1000);
        }
        assert_eq!(pace.due_ns(9), 500 + 800_000_000_000);
    }

    #[test]
    fn a_burst_goes_back_to_back() {
        let mut pace = pace(8_000_000, 10, 1000);
        let due: Vec<u64> = (0..21)
            .map(|_| {
                let due = pace.due_ns(0);
                pace.went(1000);
                due
            })
            .collect();
        assert!(due[..10].iter().all(|&d| d == 0));
        assert!(due[10..20].iter().all(|&d| d == 10_000_000));
        assert_eq!(due[20], 20_000_000);
    }

    #[test]
    fn slow_streams_send_small_pieces() {
        assert_eq!(pace(100_000, 0, 131_072).piece(), 1250);
        assert_eq!(pace(1_000_000_000, 0, 131_072).piece(), 131_072);
        assert_eq!(Pace::new(&Params::default(), 131_072).piece(), 131_072);
    }

    #[test]
    fn a_late_thread_has_several_due() {
        let mut pace = pace(8_000_000, 0, 1000);
        pace.due_ns(0);
        assert_eq!(pace.due_units(0, 1000, 16), 1);
        assert_eq!(pace.due_units(5_500_000, 1000, 16), 6);
        assert_eq!(pace.due_units(500_000_000, 1000, 16), 16);
    }

    #[test]
    fn a_stop_ends_the_wait() {
        let mut pace = pace(1, 0, 1000);
        assert!(pace.wait(1000, || true));
        assert!(!pace.wait(1000, || false));
    }
}
