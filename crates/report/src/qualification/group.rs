//! Variants of a case together, and how many of each outcome there are.

use linerate_model::qualification::{CaseResult, Outcome};

/// How many results there are of each outcome.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Totals {
    /// Passed.
    pub pass: u64,
    /// Failed, or not over in time.
    pub fail: u64,
    /// Failed as expected.
    pub xfail: u64,
    /// Passed against expectation.
    pub xpass: u64,
    /// Skipped.
    pub skip: u64,
    /// The suite itself failed.
    pub error: u64,
}

impl Totals {
    /// Counts outcomes.
    pub fn of(outcomes: impl IntoIterator<Item = Outcome>) -> Self {
        let mut totals = Self::default();
        for outcome in outcomes {
            let count = match outcome {
                Outcome::Pass => &mut totals.pass,
                Outcome::Fail | Outcome::Timeout => &mut totals.fail,
                Outcome::ExpectedFail => &mut totals.xfail,
                Outcome::UnexpectedPass => &mut totals.xpass,
                Outcome::Skip => &mut totals.skip,
                Outcome::Error => &mut totals.error,
            };
            *count += 1;
        }
        totals
    }

    /// All of them.
    pub fn all(&self) -> u64 {
        self.pass + self.fail + self.xfail + self.xpass + self.skip + self.error
    }
}

/// Results of one run of one case: its variants, side by side.
pub(super) struct Group<'a> {
    pub(super) cases: &'a [CaseResult],
}

impl<'a> Group<'a> {
    /// All groups, in the order run.
    pub(super) fn all(cases: &'a [CaseResult]) -> Vec<Self> {
        cases.chunk_by(|a, b| a.id == b.id && a.repeat == b.repeat).map(|cases| Self { cases }).collect()
    }

    /// Whether it has variants to be shown one by one.
    pub(super) fn has_variants(&self) -> bool {
        self.cases.len() > 1 || self.cases.iter().any(|case| !case.variant.is_empty())
    }

    /// The name of the whole: `CSUM-03`, `CSUM-03@2`.
    pub(super) fn name(&self) -> String {
        let mut whole = self.cases[0].clone();
        whole.variant.clear();
        super::case_name(&whole)
    }

    /// The answer of the whole: the worst of its parts; a skip where all were skipped.
    pub(super) fn outcome(&self) -> Outcome {
        let worst = self.cases.iter().map(|case| case.outcome).max_by_key(|outcome| weight(*outcome));
        worst.unwrap_or(Outcome::Skip)
    }

    /// The part that makes the whole what it is.
    pub(super) fn decisive(&self) -> &'a CaseResult {
        let outcome = self.outcome();
        self.cases.iter().find(|case| case.outcome == outcome).unwrap_or(&self.cases[0])
    }
}

/// How much an outcome outweighs others.
pub(super) fn weight(outcome: Outcome) -> u8 {
    match outcome {
        Outcome::Skip => 0,
        Outcome::Pass => 1,
        Outcome::ExpectedFail => 2,
        Outcome::UnexpectedPass => 3,
        Outcome::Fail => 4,
        Outcome::Timeout => 5,
        Outcome::Error => 6,
    }
}
