//! Synthetic trials with known truth, and how often the statistics get it right. Shared by the test, which holds the
//! rates against their promises, and by the example, which prints the tables of `docs/statistics.md`.

pub(crate) mod changes;
pub(crate) mod intervals;
pub(crate) mod process;
pub(crate) mod sequences;
pub(crate) mod verdicts;

/// How often something happened.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Rate {
    pub(crate) hits: u32,
    pub(crate) of: u32,
}

impl Rate {
    /// Runs `trial` so many times, each with a number of its own.
    pub(crate) fn measure(runs: u32, mut trial: impl FnMut(u64) -> bool) -> Self {
        let hits = (0..runs).filter(|run| trial(u64::from(*run))).count() as u32;
        Self { hits, of: runs }
    }

    pub(crate) fn share(self) -> f64 {
        f64::from(self.hits) / f64::from(self.of.max(1))
    }

    /// Whether a true rate of at most `limit` explains this, with three standard errors of sampling.
    pub(crate) fn at_most(self, limit: f64) -> bool {
        self.share() <= limit + self.allowance(limit)
    }

    /// Whether a true rate of at least `limit` explains this, with three standard errors of sampling.
    pub(crate) fn at_least(self, limit: f64) -> bool {
        self.share() >= limit - self.allowance(limit)
    }

    fn allowance(self, limit: f64) -> f64 {
        3.0 * (limit * (1.0 - limit) / f64::from(self.of.max(1))).sqrt()
    }
}

impl std::fmt::Display for Rate {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{:.1} %", self.share() * 100.0)
    }
}
