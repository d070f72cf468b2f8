//! What a strand measured.

use linerate_model::latency::LatencyHistogram;
use linerate_traffic::StreamCount;
use serde::{Deserialize, Serialize};

/// Durations of one kind of thing, nanoseconds.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Durations {
    /// How many.
    pub count: u64,
    /// Their sum.
    pub sum_ns: u64,
    /// The longest.
    pub max_ns: u64,
    /// The shortest; 0 where there is none.
    pub min_ns: u64,
}

impl Durations {
    pub(crate) fn add(&mut self, ns: u64) {
        self.min_ns = if self.count == 0 { ns } else { self.min_ns.min(ns) };
        self.max_ns = self.max_ns.max(ns);
        self.count += 1;
        self.sum_ns += ns;
    }

    pub(crate) fn merge(&mut self, other: &Self) {
        if other.count == 0 {
            return;
        }
        self.min_ns = if self.count == 0 { other.min_ns } else { self.min_ns.min(other.min_ns) };
        self.max_ns = self.max_ns.max(other.max_ns);
        self.count += other.count;
        self.sum_ns += other.sum_ns;
    }

    /// The mean; 0 where there is none.
    pub fn mean_ns(&self) -> u64 {
        self.sum_ns.checked_div(self.count).unwrap_or(0)
    }
}

/// What one strand did in one transaction.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct TransactionTimes {
    /// Iterations.
    pub(crate) iterations: Durations,
    /// Each flowop.
    pub(crate) flowops: Vec<Durations>,
    /// When the last operation ended, on CLOCK_MONOTONIC.
    pub(crate) ended_ns: u64,
}

/// What one strand did.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct StrandResult {
    pub(crate) bytes: u64,
    pub(crate) operations: u64,
    /// What was moved each way.
    #[serde(skip)]
    pub(crate) moved: StreamCount,
    /// Durations of iterations that move payload, where they were asked for.
    pub(crate) latency: Option<LatencyHistogram>,
    /// From its start to its end.
    pub(crate) elapsed_ns: u64,
    pub(crate) transactions: Vec<TransactionTimes>,
    pub(crate) warnings: Vec<String>,
    pub(crate) failure: Option<String>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn merged_durations_are_those_of_all() {
        let mut all = Durations::default();
        for part in [[5, 7].as_slice(), &[], &[2, 100]] {
            let mut durations = Durations::default();
            part.iter().for_each(|ns| durations.add(*ns));
            all.merge(&durations);
        }
        assert_eq!(all, Durations { count: 4, sum_ns: 114, max_ns: 100, min_ns: 2 });
        assert_eq!(all.mean_ns(), 28);
        assert_eq!(Durations::default().mean_ns(), 0);
    }
}
