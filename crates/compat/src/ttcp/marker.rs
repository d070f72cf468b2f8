//! The UDP receiver without its socket: which datagrams are payload, and when the test began and ended.
//!
//! A marker is a datagram of at most 4 bytes: one before the data, four or five after it, all alike. Where the first is lost, or
//! overtaken by data, ttcp itself waits for ever or takes an end for a start. Here the first datagram of any kind
//! starts the clock, and a marker ends the test only when no more data follows it.

/// Longest marker, bytes.
pub(crate) const MARKER_BYTES: usize = 4;

/// Silence after data at which the test is over though no marker came, nanoseconds.
const SILENCE_NS: u64 = 5_000_000_000;

/// Silence after a single end marker at which it stands, nanoseconds.
const SETTLE_NS: u64 = 500_000_000;

/// What a datagram was.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Arrival {
    /// Payload: counted.
    Data,
    /// A marker: not counted.
    Marker,
    /// The marker with which the test is over.
    End,
}

/// The state of one UDP test. Instants are nanoseconds of any steady clock.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Markers {
    started_ns: Option<u64>,
    ended_ns: Option<u64>,
    last_ns: u64,
    bytes: u64,
    calls: u64,
    calls_at_end: u64,
}

impl Markers {
    /// Takes a datagram of `length` bytes that came at `now_ns`.
    pub fn arrived(&mut self, length: usize, now_ns: u64) -> Arrival {
        self.last_ns = now_ns;
        self.calls += 1;
        if length > MARKER_BYTES {
            self.started_ns.get_or_insert(now_ns);
            self.ended_ns = None;
            self.bytes += length as u64;
            return Arrival::Data;
        }
        if self.ended_ns.is_some() {
            return Arrival::End;
        }
        match self.started_ns {
            None => self.started_ns = Some(now_ns),
            Some(_) => {
                self.ended_ns = Some(now_ns);
                self.calls_at_end = self.calls;
            }
        }
        Arrival::Marker
    }

    /// Whether silence until `now_ns` has ended the test.
    pub fn is_over(&self, now_ns: u64) -> bool {
        let silence_ns = now_ns.saturating_sub(self.last_ns);
        match (self.started_ns, self.ended_ns) {
            (None, _) => false,
            (Some(_), Some(_)) => silence_ns >= SETTLE_NS,
            (Some(_), None) => silence_ns >= SILENCE_NS,
        }
    }

    /// Whether the test has begun.
    pub fn has_begun(&self) -> bool {
        self.started_ns.is_some()
    }

    /// Whether an end marker came.
    pub fn end_was_told(&self) -> bool {
        self.ended_ns.is_some()
    }

    /// Payload bytes.
    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Receive calls up to the first end marker, markers included.
    pub fn calls(&self) -> u64 {
        if self.ended_ns.is_some() { self.calls_at_end } else { self.calls }
    }

    /// From the first datagram to the end marker, or to the last datagram where none came, nanoseconds.
    pub fn elapsed_ns(&self) -> u64 {
        let end_ns = self.ended_ns.unwrap_or(self.last_ns);
        self.started_ns.map_or(0, |start_ns| end_ns.saturating_sub(start_ns))
    }
}

/// Runs the receiver over datagrams cut from `bytes`: a length byte, then as many bytes.
pub fn fuzz_decode(bytes: &[u8]) {
    let mut markers = Markers::default();
    let mut now_ns = 0;
    for length in bytes {
        now_ns += u64::from(*length) << 24;
        let _over = markers.is_over(now_ns);
        if markers.arrived(usize::from(*length), now_ns) == Arrival::End {
            break;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run(lengths: &[usize]) -> (Markers, Vec<Arrival>) {
        let mut markers = Markers::default();
        let arrivals = lengths.iter().zip(1..).map(|(l, at)| markers.arrived(*l, at * 1_000_000)).collect();
        (markers, arrivals)
    }

    #[test]
    fn a_whole_test_is_timed_from_the_first_marker_to_the_first_end() {
        let (markers, arrivals) = run(&[4, 100, 100, 100, 4, 4]);
        assert_eq!(arrivals[5], Arrival::End);
        assert_eq!((markers.bytes(), markers.calls(), markers.elapsed_ns()), (300, 5, 4_000_000));
    }

    #[test]
    fn a_lost_start_marker_does_not_make_an_end_a_start() {
        let (markers, arrivals) = run(&[100, 100, 4, 4]);
        assert_eq!(arrivals[3], Arrival::End);
        assert_eq!((markers.bytes(), markers.elapsed_ns()), (200, 2_000_000));
    }

    #[test]
    fn an_overtaken_start_marker_does_not_end_the_test() {
        let (markers, arrivals) = run(&[100, 4, 100, 100, 4, 4]);
        assert_eq!(
            arrivals[1..],
            [Arrival::Marker, Arrival::Data, Arrival::Data, Arrival::Marker, Arrival::End]
        );
        assert_eq!((markers.bytes(), markers.elapsed_ns()), (300, 4_000_000));
    }

    #[test]
    fn lost_end_markers_end_by_silence() {
        let (markers, _) = run(&[4, 100, 100]);
        assert!(!markers.is_over(3_000_000 + SILENCE_NS - 1));
        assert!(markers.is_over(3_000_000 + SILENCE_NS));
        assert_eq!(markers.elapsed_ns(), 2_000_000, "the silence is not part of the time");
        let (markers, _) = run(&[4, 100, 4]);
        assert!(markers.is_over(3_000_000 + SETTLE_NS));
    }

    #[test]
    fn nothing_is_over_before_it_begins() {
        assert!(!Markers::default().is_over(u64::MAX));
    }

    #[test]
    fn a_test_without_data_ends_too() {
        let (markers, arrivals) = run(&[4, 4, 4, 4, 4, 4]);
        assert_eq!(arrivals[2], Arrival::End);
        assert_eq!(markers.bytes(), 0);
    }

    proptest::proptest! {
        #[test]
        fn any_datagrams_are_survived(bytes: Vec<u8>) {
            fuzz_decode(&bytes);
        }
    }
}
