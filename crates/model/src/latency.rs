//! Latency distributions as data: kept whole, merged, never averaged.

use serde::{Deserialize, Serialize};

use crate::units::total;

/// A latency distribution: how often each value was seen, at three significant digits.
///
/// `counts` pairs a value in nanoseconds (the highest that the bucket stands for) with how often it was seen,
/// by rising value. Values above 60 s are in `overflow` only, and in `max_ns`.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct LatencyHistogram {
    /// (nanoseconds, count), by rising nanoseconds, no count 0.
    pub counts: Vec<(u64, u64)>,
    /// How many were longer than 60 s.
    pub overflow: u64,
    /// Shortest seen, nanoseconds, exact; 0 where there is none.
    pub min_ns: u64,
    /// Longest seen, nanoseconds, exact; 0 where there is none.
    pub max_ns: u64,
}

impl LatencyHistogram {
    /// How many values there are, those that overflowed included.
    pub fn total(&self) -> u64 {
        total(self.counts.iter().map(|&(_, n)| n).chain([self.overflow]))
    }

    /// The smallest value that at least `percent` of all values do not exceed (nearest rank); `None` when empty.
    pub fn percentile_ns(&self, percent: f64) -> Option<u64> {
        let total = self.total();
        if total == 0 {
            return None;
        }
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "0 to total by the clamp"
        )]
        let rank = ((percent.clamp(0.0, 100.0) / 100.0 * total as f64).ceil() as u64).clamp(1, total);
        let mut seen = 0_u64;
        for &(ns, count) in &self.counts {
            seen = count.saturating_add(seen);
            if seen >= rank {
                return Some(ns.min(self.max_ns));
            }
        }
        Some(self.max_ns)
    }

    /// Arithmetic mean of the values up to 60 s, nanoseconds; `None` when empty.
    pub fn mean_ns(&self) -> Option<f64> {
        let count = total(self.counts.iter().map(|&(_, n)| n));
        if count == 0 {
            return None;
        }
        Some(self.counts.iter().map(|&(ns, n)| ns as f64 * n as f64).sum::<f64>() / count as f64)
    }

    /// Adds another distribution to this one.
    pub fn merge(&mut self, other: &Self) {
        if other.total() == 0 {
            return;
        }
        self.min_ns = if self.total() == 0 { other.min_ns } else { self.min_ns.min(other.min_ns) };
        self.max_ns = self.max_ns.max(other.max_ns);
        self.overflow = total([self.overflow, other.overflow]);
        let mut merged = std::collections::BTreeMap::new();
        for &(ns, count) in self.counts.iter().chain(&other.counts) {
            let sum: &mut u64 = merged.entry(ns).or_insert(0);
            *sum = total([*sum, count]);
        }
        self.counts = merged.into_iter().collect();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percentiles_are_nearest_rank() {
        let h = LatencyHistogram {
            counts: vec![(10, 50), (20, 49), (30, 1)],
            overflow: 0,
            min_ns: 10,
            max_ns: 30,
        };
        assert_eq!(h.percentile_ns(50.0), Some(10));
        assert_eq!(h.percentile_ns(51.0), Some(20));
        assert_eq!(h.percentile_ns(99.0), Some(20));
        assert_eq!(h.percentile_ns(99.9), Some(30));
        assert_eq!(h.percentile_ns(100.0), Some(30));
        assert_eq!(LatencyHistogram::default().percentile_ns(50.0), None);
    }

    #[test]
    fn what_overflowed_counts_in_the_tail() {
        let h = LatencyHistogram { counts: vec![(10, 1)], overflow: 1, min_ns: 10, max_ns: 61_000_000_000 };
        assert_eq!(h.percentile_ns(50.0), Some(10));
        assert_eq!(h.percentile_ns(99.0), Some(61_000_000_000));
    }

    #[test]
    fn merging_adds() {
        let mut a = LatencyHistogram { counts: vec![(10, 1)], overflow: 0, min_ns: 10, max_ns: 10 };
        a.merge(&LatencyHistogram { counts: vec![(5, 2), (10, 3)], overflow: 1, min_ns: 5, max_ns: 99 });
        assert_eq!(a.counts, [(5, 2), (10, 4)]);
        assert_eq!((a.min_ns, a.max_ns, a.total()), (5, 99, 7));
        a.merge(&LatencyHistogram::default());
        assert_eq!(a.min_ns, 5);
    }
}
