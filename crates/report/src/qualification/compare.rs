//! What changed from one qualification to another.

use linerate_model::qualification::{CaseResult, Outcome, Qualification};

use super::group::weight;
use super::{case_name, driver, gist};
use crate::text::{Style, paint, printable, wrap};

/// How a case changed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Change {
    /// Passed, fails now.
    Regression,
    /// Was skipped, expected to fail or not there, and fails now.
    NewFailure,
    /// Failed, passes now.
    Fixed,
    /// Was expected to fail, passes now.
    FixedAgainstExpectation,
    /// Fails as before.
    StillFailing,
    /// Was skipped, passes now: a capability more.
    Gained,
    /// Passed, is skipped now: a capability less.
    Lost,
    /// Failed, is skipped or expected now.
    NoLongerJudged,
    /// Passes, is skipped or fails as expected, as before.
    Same,
    /// Only in the base.
    Gone,
    /// Only in the new one, and not failing.
    Added,
}

impl Change {
    const SHOWN: [(Self, &'static str); 9] = [
        (Self::Regression, "regressions: passed, fail now"),
        (Self::NewFailure, "new failures: were skipped, expected or not run"),
        (Self::StillFailing, "still failing"),
        (Self::Lost, "capabilities lost: passed, skipped now"),
        (Self::Gained, "capabilities gained: were skipped, pass now"),
        (Self::Fixed, "fixed: failed, pass now"),
        (Self::FixedAgainstExpectation, "pass against expectation: remove the entries"),
        (Self::NoLongerJudged, "failed, skipped or expected now"),
        (Self::Gone, "not run any more"),
    ];
}

/// A case in both.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ChangedCase {
    /// `CSUM-01.v6_udp`.
    pub name: String,
    /// How it changed.
    pub change: Change,
    /// Outcome in the base.
    pub base: Option<Outcome>,
    /// Outcome in the new one.
    pub new: Option<Outcome>,
    /// The reason or number that tells most of the newer one.
    pub gist: String,
}

/// Two qualifications, case by case, in the order of the new one, then those that are gone.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Comparison {
    /// The cases.
    pub cases: Vec<ChangedCase>,
}

impl Comparison {
    /// How many cases changed so.
    pub fn count(&self, change: Change) -> usize {
        self.cases.iter().filter(|case| case.change == change).count()
    }

    /// Something fails that did not.
    pub fn is_worse(&self) -> bool {
        self.count(Change::Regression) + self.count(Change::NewFailure) > 0
    }
}

/// Holds one qualification against another. Of repeats, the worst counts.
pub fn compare_qualifications(base: &Qualification, new: &Qualification) -> Comparison {
    let (base, new) = (worst(&base.cases), worst(&new.cases));
    let before = |name: &str| base.iter().find(|(known, _)| known == name).map(|(_, case)| *case);
    let mut cases: Vec<ChangedCase> = new
        .iter()
        .map(|(name, case)| {
            let base = before(name).map(|base| base.outcome);
            let change = change(base, case.outcome);
            ChangedCase { name: name.clone(), change, base, new: Some(case.outcome), gist: gist(case) }
        })
        .collect();
    let gone = base.iter().filter(|(name, _)| !new.iter().any(|(known, _)| known == name));
    cases.extend(gone.map(|(name, case)| ChangedCase {
        name: name.clone(),
        change: Change::Gone,
        base: Some(case.outcome),
        new: None,
        gist: gist(case),
    }));
    Comparison { cases }
}

fn worst(cases: &[CaseResult]) -> Vec<(String, &CaseResult)> {
    let mut worst: Vec<(String, &CaseResult)> = Vec::new();
    for case in cases {
        let name = case_name(&CaseResult { repeat: 0, ..case.clone() });
        match worst.iter_mut().find(|(known, _)| *known == name) {
            Some((_, known)) if weight(case.outcome) > weight(known.outcome) => *known = case,
            Some(_) => {}
            None => worst.push((name, case)),
        }
    }
    worst
}

fn change(base: Option<Outcome>, new: Outcome) -> Change {
    use Outcome::{ExpectedFail, Pass, Skip, UnexpectedPass};
    let Some(base) = base else { return if new.is_bad() { Change::NewFailure } else { Change::Added } };
    let passed = matches!(base, Pass | UnexpectedPass);
    match new {
        _ if new.is_bad() && base.is_bad() => Change::StillFailing,
        _ if new.is_bad() && passed => Change::Regression,
        _ if new.is_bad() => Change::NewFailure,
        UnexpectedPass | Pass if base == ExpectedFail => Change::FixedAgainstExpectation,
        UnexpectedPass | Pass if base.is_bad() => Change::Fixed,
        UnexpectedPass | Pass if base == Skip => Change::Gained,
        Skip if passed => Change::Lost,
        _ if base.is_bad() => Change::NoLongerJudged,
        _ => Change::Same,
    }
}

/// A comparison for a terminal of so many columns. Ends with a newline.
pub fn comparison_text(base: &Qualification, new: &Qualification, width: usize, color: bool) -> String {
    let comparison = compare_qualifications(base, new);
    let side = |q: &Qualification| {
        let emulator = q.emulator.as_ref().map(|name| format!(" in {name}")).unwrap_or_default();
        format!("{} on kernel {}{emulator}", driver(q), q.dut.environment.kernel)
    };
    let head = format!("{} against {} (base)", side(new), side(base));
    let mut lines = wrap("", 2, &printable(&head), width);
    for (kind, title) in Change::SHOWN {
        let of_kind: Vec<&ChangedCase> = comparison.cases.iter().filter(|case| case.change == kind).collect();
        if of_kind.is_empty() {
            continue;
        }
        lines.push(String::new());
        lines.push(paint(&format!("{title} ({})", of_kind.len()), Style::Bold, color));
        if kind == Change::Gone {
            let names: Vec<String> = of_kind.iter().map(|case| printable(&case.name)).collect();
            lines.extend(wrap("  ", 2, &names.join(" "), width));
            continue;
        }
        for case in of_kind {
            let words = [case.base, case.new].map(|outcome| outcome.map_or("not run", Outcome::word));
            let head = format!("  {:<26} {:<7} -> {:<7} ", printable(&case.name), words[0], words[1]);
            lines.extend(wrap(&head, 6, &printable(&case.gist), width));
        }
    }
    let counts = [
        (Change::Regression, "regression"),
        (Change::NewFailure, "new failure"),
        (Change::Fixed, "fixed"),
        (Change::StillFailing, "still failing"),
        (Change::Lost, "lost"),
        (Change::Gained, "gained"),
        (Change::Same, "the same"),
        (Change::Added, "added"),
    ];
    let told: Vec<String> = counts
        .into_iter()
        .filter_map(|(kind, word)| Some((comparison.count(kind), word)).filter(|(count, _)| *count > 0))
        .map(|(count, word)| format!("{count} {word}"))
        .collect();
    lines.push(String::new());
    let told = if told.is_empty() { "nothing to compare".to_owned() } else { told.join(", ") };
    lines.extend(wrap("", 2, &format!("{} cases: {told}.", comparison.cases.len()), width));
    let mut text = lines.join("\n");
    text.push('\n');
    text
}
