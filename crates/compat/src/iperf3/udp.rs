//! UDP datagrams: the hello that makes a stream, the header of each datagram, and what a receiver makes of them.

/// What a client says to make a stream (from 3.12 on).
pub const HELLO: [u8; 4] = *b"9876";
/// What older clients say.
pub const HELLO_OLD: [u8; 4] = 123_456_789_u32.to_le_bytes();
/// What a server answers; clients of every version take it.
pub const ANSWER: [u8; 4] = *b"6789";
/// What older servers answer.
pub const ANSWER_OLD: [u8; 4] = 987_654_321_u32.to_le_bytes();

/// Shortest datagram with a header of 32-bit, and of 64-bit counters, bytes.
const HEADER: [usize; 2] = [12, 16];

/// Whether a datagram asks for a stream.
pub fn is_hello(datagram: &[u8]) -> bool {
    datagram == HELLO || datagram == HELLO_OLD
}

/// Whether a datagram says that the stream is made.
pub fn is_answer(datagram: &[u8]) -> bool {
    datagram == ANSWER || datagram == ANSWER_OLD
}

/// The header of a datagram, big-endian on the wire: seconds, microseconds, sequence number from 1.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Header {
    /// The sender's clock, microseconds.
    pub sent_us: u64,
    /// Number of the datagram in its stream.
    pub sequence: u64,
}

impl Header {
    /// Writes it at the start of `datagram`, which has room (16 bytes and more).
    pub fn write(self, datagram: &mut [u8], wide: bool) {
        datagram[0..4].copy_from_slice(&((self.sent_us / 1_000_000) as u32).to_be_bytes());
        datagram[4..8].copy_from_slice(&((self.sent_us % 1_000_000) as u32).to_be_bytes());
        if wide {
            datagram[8..16].copy_from_slice(&self.sequence.to_be_bytes());
        } else {
            datagram[8..12].copy_from_slice(&(self.sequence as u32).to_be_bytes());
        }
    }

    /// Reads it; none if the datagram is too short.
    pub fn read(datagram: &[u8], wide: bool) -> Option<Self> {
        if datagram.len() < HEADER[usize::from(wide)] {
            return None;
        }
        let word =
            |at: usize| datagram[at..].first_chunk::<4>().map_or(0, |b| u64::from(u32::from_be_bytes(*b)));
        let sent_us = word(0) * 1_000_000 + word(4);
        let sequence = if wide { word(8) << 32 | word(12) } else { word(8) };
        Some(Self { sent_us, sequence })
    }
}

/// Sequence numbers that are remembered to tell a duplicate from a late datagram.
const WINDOW: u64 = 1 << 16;

/// What a receiver knows of a stream's datagrams.
#[derive(Debug, Clone)]
pub struct Arrivals {
    /// Highest sequence number seen.
    pub highest: u64,
    /// Numbers not seen up to the highest.
    pub lost: u64,
    /// Datagrams that came behind a higher number, duplicates apart.
    pub out_of_order: u64,
    /// Datagrams that came twice. They do not hide losses.
    pub duplicates: u64,
    /// Mean deviation of the time between datagrams, seconds (RFC 1889, appendix A.8).
    pub jitter_s: f64,
    transit_us: Option<i64>,
    seen: Vec<u64>,
}

impl Default for Arrivals {
    fn default() -> Self {
        Self {
            highest: 0,
            lost: 0,
            out_of_order: 0,
            duplicates: 0,
            jitter_s: 0.0,
            transit_us: None,
            seen: vec![0; (WINDOW / 64) as usize],
        }
    }
}

impl Arrivals {
    /// A datagram came at `now_us` of this side's clock.
    pub fn note(&mut self, header: Header, now_us: u64) {
        self.note_order(header.sequence);
        let transit = now_us as i64 - header.sent_us as i64;
        if let Some(before) = self.transit_us {
            let deviation_s = transit.abs_diff(before) as f64 / 1e6;
            self.jitter_s += (deviation_s - self.jitter_s) / 16.0;
        }
        self.transit_us = Some(transit);
    }

    /// The omitted time is over: jitter begins again; numbers go on.
    pub fn restart_jitter(&mut self) {
        self.jitter_s = 0.0;
        self.transit_us = None;
    }

    fn note_order(&mut self, sequence: u64) {
        if sequence > self.highest {
            self.forget_between(sequence);
            self.lost += sequence - 1 - self.highest;
            self.highest = sequence;
            self.mark(sequence);
        } else if self.highest - sequence < WINDOW && self.marked(sequence) {
            self.duplicates += 1;
        } else {
            self.out_of_order += 1;
            self.lost = self.lost.saturating_sub(1);
            if self.highest - sequence < WINDOW {
                self.mark(sequence);
            }
        }
    }

    /// Clears the places that the numbers up to `next` will use.
    fn forget_between(&mut self, next: u64) {
        if next - self.highest >= WINDOW {
            self.seen.fill(0);
            return;
        }
        for number in self.highest + 1..next {
            let (word, bit) = place(number);
            self.seen[word] &= !bit;
        }
    }

    fn mark(&mut self, number: u64) {
        let (word, bit) = place(number);
        self.seen[word] |= bit;
    }

    fn marked(&self, number: u64) -> bool {
        let (word, bit) = place(number);
        self.seen[word] & bit != 0
    }
}

fn place(number: u64) -> (usize, u64) {
    let slot = number % WINDOW;
    ((slot / 64) as usize, 1 << (slot % 64))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn arrived(numbers: impl IntoIterator<Item = u64>) -> Arrivals {
        let mut arrivals = Arrivals::default();
        for (at, sequence) in numbers.into_iter().enumerate() {
            arrivals.note(Header { sent_us: at as u64 * 100, sequence }, at as u64 * 100 + 7);
        }
        arrivals
    }

    #[test]
    fn a_duplicate_hides_no_loss() {
        let seen = arrived((1..=20).chain(31..=50).chain([40]));
        assert_eq!((seen.lost, seen.highest, seen.out_of_order, seen.duplicates), (10, 50, 0, 1));
    }

    #[test]
    fn a_late_datagram_is_not_lost() {
        let seen = arrived([1, 2, 4, 5, 3, 3]);
        assert_eq!((seen.lost, seen.out_of_order, seen.duplicates), (0, 1, 1));
    }

    #[test]
    fn numbers_wrap_around_the_memory() {
        let seen = arrived((1..=3 * WINDOW).filter(|n| n % 1000 != 0));
        assert_eq!(seen.lost, 3 * WINDOW / 1000);
        assert_eq!((seen.out_of_order, seen.duplicates), (0, 0));
        let jump = arrived([1, 10 * WINDOW, 10 * WINDOW - 1]);
        assert_eq!((jump.lost, jump.out_of_order, jump.duplicates), (10 * WINDOW - 3, 1, 0));
    }

    #[test]
    fn jitter_is_a_sixteenth_of_each_change() {
        let mut arrivals = Arrivals::default();
        arrivals.note(Header { sent_us: 0, sequence: 1 }, 1000);
        assert_eq!(arrivals.jitter_s, 0.0);
        arrivals.note(Header { sent_us: 100, sequence: 2 }, 1116);
        assert!((arrivals.jitter_s - 1e-6).abs() < 1e-12);
        arrivals.restart_jitter();
        arrivals.note(Header { sent_us: 100, sequence: 3 }, 5000);
        assert_eq!(arrivals.jitter_s, 0.0);
    }

    #[test]
    fn the_header_is_that_of_the_transcript() {
        let bytes = [0, 0, 3, 0x6e, 0, 6, 0x0b, 0x23, 0, 0, 0, 1, 0xef, 0x21, 0x54, 0xc5];
        let header = Header::read(&bytes, false).unwrap();
        assert_eq!(header, Header { sent_us: 878_396_067, sequence: 1 });
        let mut back = bytes;
        back[..12].fill(0);
        header.write(&mut back, false);
        assert_eq!(back, bytes);
        assert_eq!(HELLO_OLD, [0x15, 0xcd, 0x5b, 0x07]);
        assert_eq!(ANSWER_OLD, [0xb1, 0x68, 0xde, 0x3a]);
    }

    proptest! {
        #[test]
        fn any_datagram_is_read_or_too_short(bytes in proptest::collection::vec(any::<u8>(), 0..40), wide: bool) {
            prop_assert_eq!(Header::read(&bytes, wide).is_some(), bytes.len() >= HEADER[usize::from(wide)]);
        }

        #[test]
        fn any_numbers_are_counted(numbers in proptest::collection::vec(any::<u64>(), 0..50)) {
            let count = numbers.len() as u64;
            let seen = arrived(numbers);
            prop_assert!(seen.out_of_order + seen.duplicates <= count);
        }
    }
}
