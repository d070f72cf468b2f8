//! A qualification for a terminal: a line for each result that is no skip, skips by their reason, what it comes to.

use linerate_model::qualification::{CaseResult, Ended, Outcome, Qualification};

use super::dump::dump_lines;
use super::group::Totals;
use super::{case_name, driver, gist};
use crate::numbers;
use crate::text::{Style, paint, printable, wrap};

const OUTCOME_WIDTH: usize = 7;
const NAME_WIDTH: usize = 26;

/// A result in a line, as the live list shows it: outcome, name, the number or reason that tells most; further lines
/// where a reason is longer.
pub fn case_line(case: &CaseResult, width: usize, color: bool) -> String {
    let name = printable(&case_name(case));
    let outcome = format!("{:<OUTCOME_WIDTH$}", case.outcome.word());
    let head = format!("{outcome} {name:<NAME_WIDTH$} ");
    let indent = if head.chars().count() > OUTCOME_WIDTH + NAME_WIDTH + 2 { 10 } else { head.len() };
    let lines = wrap(&head, indent, &printable(&gist(case)), width);
    let text = lines.join("\n");
    match style(case.outcome) {
        Some(style) => text.replacen(&outcome, &paint(&outcome, style, color), 1),
        None => text,
    }
}

/// A qualification as text for a terminal of so many columns (80 and more). Ends with a newline.
pub fn qualification_text(qualification: &Qualification, width: usize, color: bool) -> String {
    let mut lines = wrap("", 2, &printable(&heading(qualification)), width);
    lines.push(String::new());
    let judged = qualification.cases.iter().filter(|case| case.outcome != Outcome::Skip);
    lines.extend(judged.map(|case| case_line(case, width, color)));
    lines.extend(failures(qualification, width, color));
    lines.extend(skips(qualification, width, color));
    lines.push(String::new());
    lines.extend(wrap("", 2, &summary(qualification), width));
    let mut text = lines.join("\n");
    text.push('\n');
    text
}

/// What was qualified, with what, and the seed that replays it.
pub(super) fn heading(qualification: &Qualification) -> String {
    let emulator = qualification.emulator.as_ref().map(|name| format!(" in {name}")).unwrap_or_default();
    format!(
        "{} ({}) on {}{emulator}, kernel {}; peer {} on {}; medium {}; seed {}",
        qualification.dut.link,
        driver(qualification),
        qualification.dut.node,
        qualification.dut.environment.kernel,
        qualification.peer.link,
        qualification.peer.node,
        qualification.medium,
        qualification.seed,
    )
}

fn failures(qualification: &Qualification, width: usize, color: bool) -> Vec<String> {
    let mut lines = Vec::new();
    for case in qualification.cases.iter().filter(|case| case.outcome.is_bad()) {
        lines.push(String::new());
        lines.push(paint(&printable(&format!("{}: {}", case_name(case), case.title)), Style::Bold, color));
        for reason in case.reason.iter().chain(&case.more_reasons) {
            let text = format!("{}: {}", reason.code.word(), reason.text);
            lines.extend(wrap("  ", 4, &printable(&text), width));
        }
        let evidence = case.evidence.iter().flat_map(dump_lines);
        lines.extend(evidence.map(|line| format!("    {}", printable(&line))));
        lines.extend(case.log.iter().flat_map(|line| wrap("  log: ", 4, &printable(line), width)));
        lines.extend(case.capture.iter().map(|file| format!("  frames: {}", printable(file))));
    }
    let lost = qualification.journal.iter().filter(|entry| entry.restored == Some(false));
    for entry in lost {
        let text = format!("{} of {} was not put back after {}", entry.what, entry.end, entry.case);
        lines.extend(wrap("", 2, &printable(&text), width));
    }
    lines
}

/// Skips with the same reason stand together.
pub(super) fn skips_by_reason(cases: &[CaseResult]) -> Vec<(String, Vec<String>)> {
    let mut groups: Vec<(String, Vec<String>)> = Vec::new();
    for case in cases.iter().filter(|case| case.outcome == Outcome::Skip) {
        let (reason, name) = (gist(case), case_name(case));
        match groups.iter_mut().find(|(known, _)| *known == reason) {
            Some((_, names)) => names.push(name),
            None => groups.push((reason, vec![name])),
        }
    }
    groups.sort_by_key(|(reason, _)| reason.split(':').next().unwrap_or_default().to_owned());
    groups
}

fn skips(qualification: &Qualification, width: usize, color: bool) -> Vec<String> {
    let groups = skips_by_reason(&qualification.cases);
    if groups.is_empty() {
        return Vec::new();
    }
    let count: usize = groups.iter().map(|(_, names)| names.len()).sum();
    let mut lines = vec![String::new(), paint(&format!("skipped ({count})"), Style::Bold, color)];
    for (reason, names) in groups {
        lines.extend(wrap("  ", 4, &printable(&reason), width));
        lines.extend(wrap("      ", 6, &printable(&names.join(" ")), width));
    }
    lines
}

/// `48 results in 41.2 s: 30 pass, 1 fail, 17 skip`, and how the run ended.
pub(super) fn summary(qualification: &Qualification) -> String {
    let Totals { pass, fail, xfail, xpass, skip, error } =
        Totals::of(qualification.cases.iter().map(|case| case.outcome));
    let all = qualification.cases.len();
    let counts = [
        (pass, "pass"),
        (fail, "fail"),
        (error, "error"),
        (xfail, "failed as expected"),
        (xpass, "passed against expectation"),
        (skip, "skip"),
    ];
    let counts: Vec<String> = counts
        .iter()
        .filter(|(count, _)| *count > 0)
        .map(|(count, word)| format!("{count} {word}"))
        .collect();
    let counts = if counts.is_empty() { "none".to_owned() } else { counts.join(", ") };
    let plural = if all == 1 { "" } else { "s" };
    let mut text = format!("{all} result{plural} in {}: {counts}.", numbers::time(qualification.duration_ns));
    match &qualification.ended {
        Ended::Complete => {}
        Ended::Interrupted => text += " Interrupted: the other cases were not run.",
        Ended::StoppedOnFail => text += " Stopped at the first failure.",
        Ended::Lost(why) => {
            text += " Ended early: ";
            text += &printable(why);
        }
    }
    if xpass > 0 {
        text += " Remove the entries of the list of expected failures that passed.";
    }
    text
}

fn style(outcome: Outcome) -> Option<Style> {
    match outcome {
        Outcome::Fail | Outcome::Timeout | Outcome::Error => Some(Style::Red),
        Outcome::ExpectedFail | Outcome::UnexpectedPass => Some(Style::Yellow),
        Outcome::Skip => Some(Style::Dim),
        Outcome::Pass => None,
    }
}
