//! Sequence accounting of a datagram receiver: distinct, duplicate, reordered and too late, by phase; and jitter.

use crate::control::Phase;

/// How far back a sequence number can be told new from repeated.
const SPAN: u64 = 65_536;

const WORDS: usize = (SPAN / 64) as usize;

/// Datagrams of one phase as they arrived.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Arrivals {
    /// Distinct ones.
    pub received: u64,
    /// Arrived again.
    pub duplicates: u64,
    /// Distinct ones with a number below one that came before (RFC 4737, section 3.3).
    pub reordered: u64,
    /// So late that new and repeated can't be told apart; not in the other counts.
    pub too_late: u64,
}

/// Which sequence numbers have arrived.
#[derive(Debug)]
pub(crate) struct Tracker {
    /// One above the highest number seen.
    next: u64,
    seen: Box<[u64; WORDS]>,
    by_phase: [Arrivals; Phase::COUNT],
}

impl Tracker {
    pub(crate) fn new() -> Self {
        Self { next: 0, seen: Box::new([0; WORDS]), by_phase: Default::default() }
    }

    /// Counts the arrival of number `sequence`, sent in `phase`. Takes any number.
    pub(crate) fn arrived(&mut self, sequence: u64, phase: Phase) {
        if sequence >= self.next {
            self.forget_up_to(sequence);
            self.mark(sequence);
            self.next = sequence + 1;
            self.by_phase[phase.index()].received += 1;
            return;
        }
        let counts = &mut self.by_phase[phase.index()];
        if self.next - sequence > SPAN {
            counts.too_late += 1;
        } else if self.seen[word(sequence)] & bit(sequence) != 0 {
            counts.duplicates += 1;
        } else {
            counts.received += 1;
            counts.reordered += 1;
            self.mark(sequence);
        }
    }

    /// What arrived of `phase`.
    pub(crate) fn arrivals(&self, phase: Phase) -> Arrivals {
        self.by_phase[phase.index()]
    }

    fn mark(&mut self, sequence: u64) {
        self.seen[word(sequence)] |= bit(sequence);
    }

    /// Clears the places of the numbers from `next` to `sequence`, which `SPAN` older numbers had.
    fn forget_up_to(&mut self, sequence: u64) {
        if sequence - self.next >= SPAN {
            self.seen.fill(0);
            return;
        }
        for number in self.next..=sequence {
            self.seen[word(number)] &= !bit(number);
        }
    }
}

fn word(sequence: u64) -> usize {
    (sequence % SPAN / 64) as usize
}

fn bit(sequence: u64) -> u64 {
    1 << (sequence % 64)
}

/// Interarrival jitter (RFC 3550, section 6.4.1), nanoseconds. The clocks of the ends need not agree.
#[derive(Debug, Default)]
pub(crate) struct Jitter {
    last_transit: Option<i64>,
    smoothed_ns: f64,
}

impl Jitter {
    /// Takes the next datagram's times of sending and arrival.
    pub(crate) fn arrived(&mut self, sent_ns: u64, arrived_ns: u64) {
        let transit = arrived_ns.wrapping_sub(sent_ns) as i64;
        if let Some(last) = self.last_transit.replace(transit) {
            let difference = transit.wrapping_sub(last).unsigned_abs() as f64;
            self.smoothed_ns += (difference - self.smoothed_ns) / 16.0;
        }
    }

    /// The smoothed jitter so far.
    pub(crate) fn ns(&self) -> u64 {
        self.smoothed_ns as u64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn arrivals(sequences: impl IntoIterator<Item = u64>) -> Arrivals {
        let mut tracker = Tracker::new();
        for sequence in sequences {
            tracker.arrived(sequence, Phase::Window);
        }
        tracker.arrivals(Phase::Window)
    }

    #[test]
    fn in_order_is_plain() {
        assert_eq!(arrivals(0..200_000), Arrivals { received: 200_000, ..Default::default() });
    }

    #[test]
    fn gaps_swaps_and_repeats_are_told_apart() {
        // 3 is lost; 5 comes after 6; 6 and 1 come twice.
        let got = arrivals([0, 1, 2, 4, 6, 5, 6, 7, 1]);
        assert_eq!(got, Arrivals { received: 7, duplicates: 2, reordered: 1, too_late: 0 });
    }

    #[test]
    fn the_edge_of_the_span() {
        let last = 100_000;
        let edge = last + 1 - SPAN;
        assert_eq!(
            arrivals([last, edge, edge]),
            Arrivals { received: 2, duplicates: 1, reordered: 1, too_late: 0 }
        );
        assert_eq!(arrivals([last, edge - 1]), Arrivals { received: 1, too_late: 1, ..Default::default() });
    }

    #[test]
    fn a_place_is_free_again_after_a_span() {
        assert_eq!(arrivals([5, 5 + SPAN, 4 + SPAN]).duplicates, 0);
        assert_eq!(arrivals([5, SPAN + 4, SPAN + 5]).received, 3);
        assert_eq!(arrivals([0, (1 << 48) - 1, (1 << 48) - 2]).reordered, 1);
    }

    #[test]
    fn phases_are_counted_apart() {
        let mut tracker = Tracker::new();
        tracker.arrived(0, Phase::Warmup);
        tracker.arrived(2, Phase::Window);
        tracker.arrived(1, Phase::Warmup);
        assert_eq!(tracker.arrivals(Phase::Warmup).received, 2);
        assert_eq!(tracker.arrivals(Phase::Warmup).reordered, 1);
        assert_eq!(tracker.arrivals(Phase::Window), Arrivals { received: 1, ..Default::default() });
    }

    #[test]
    fn even_spacing_has_no_jitter_and_a_constant_swing_has_its_size() {
        let mut even = Jitter::default();
        let mut swinging = Jitter::default();
        for i in 0..1000u64 {
            even.arrived(i * 1000, (u64::MAX - 500_000).wrapping_add(i * 1000));
            swinging.arrived(i * 1000, i * 1000 + 100 * (i % 2));
        }
        assert_eq!(even.ns(), 0);
        assert!((98..=100).contains(&swinging.ns()));
    }
}
