//! Records latencies of one thread: an HDR histogram from 1 ns to 60 s at three digits.

use hdrhistogram::Histogram;
use linerate_model::latency::LatencyHistogram;

const LONGEST_NS: u64 = 60_000_000_000;

/// Owned by one thread; about 216 KiB.
pub(crate) struct LatencyRecorder {
    histogram: Histogram<u64>,
    overflow: u64,
    min_ns: u64,
    max_ns: u64,
}

impl LatencyRecorder {
    pub(crate) fn new() -> Self {
        let histogram =
            Histogram::new_with_bounds(1, LONGEST_NS, 3).expect("bounds 1 < 60e9 and 3 digits are valid");
        Self { histogram, overflow: 0, min_ns: u64::MAX, max_ns: 0 }
    }

    /// Records one latency. The histogram rounds its top bound up, so values past 60 s are told apart here.
    pub(crate) fn record(&mut self, ns: u64) {
        self.min_ns = self.min_ns.min(ns);
        self.max_ns = self.max_ns.max(ns);
        if ns > LONGEST_NS {
            self.overflow += 1;
        } else {
            self.histogram.saturating_record(ns.max(1));
        }
    }

    /// The distribution as plain data.
    pub(crate) fn into_data(self) -> LatencyHistogram {
        let counts = self
            .histogram
            .iter_recorded()
            .map(|v| (self.histogram.highest_equivalent(v.value_iterated_to()), v.count_at_value()))
            .collect();
        let min_ns = if self.min_ns == u64::MAX { 0 } else { self.min_ns };
        LatencyHistogram { counts, overflow: self.overflow, min_ns, max_ns: self.max_ns }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_ones_are_counted_not_lost() {
        let mut recorder = LatencyRecorder::new();
        for ns in [0, 5, 5, 1_000_000, LONGEST_NS, LONGEST_NS + 1, u64::MAX] {
            recorder.record(ns);
        }
        let data = recorder.into_data();
        assert_eq!((data.total(), data.overflow), (7, 2));
        assert_eq!((data.min_ns, data.max_ns), (0, u64::MAX));
        assert!(data.counts.contains(&(5, 2)));
        let million = data.percentile_ns(55.0).unwrap();
        assert!((1_000_000..1_001_000).contains(&million));
    }

    #[test]
    fn nothing_recorded_is_empty() {
        assert_eq!(LatencyRecorder::new().into_data(), LatencyHistogram::default());
    }
}
