//! KTAP version 1 (Documentation/dev-tools/ktap.rst of Linux), as kselftest and KUnit's parser read it.
//!
//! A case with variants is a nested test; diagnostics stand before the result that they belong to.

use std::fmt::Write as _;

use linerate_model::qualification::{CaseResult, Ended, Outcome, Qualification};

use super::dump::dump_lines;
use super::group::{Group, Totals};
use super::{case_name, driver, gist, measured};
use crate::text::printable;

/// What else is to be written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct KtapOptions {
    /// The metadata lines that KTAP version 2 proposes, `#:ktap_test:` and so on; comments to a reader of version 1.
    pub metadata: bool,
}

/// A qualification as KTAP. Ends with the totals.
pub fn ktap(qualification: &Qualification, options: KtapOptions) -> String {
    let groups = Group::all(&qualification.cases);
    let mut text = String::from("KTAP version 1\n");
    if options.metadata {
        run_metadata(qualification, &mut text);
    }
    line(&mut text, "", &format!("1..{}", groups.len()));
    for (number, group) in groups.iter().enumerate() {
        if group.has_variants() {
            nested(group, options, &mut text);
            let outcome = group.outcome();
            let gist = if outcome == Outcome::Pass { String::new() } else { gist(group.decisive()) };
            line(&mut text, "", &result(outcome, number + 1, &group.name(), &gist));
        } else {
            let case = &group.cases[0];
            diagnostics(case, "", &mut text);
            line(&mut text, "", &result(case.outcome, number + 1, &case_name(case), &gist_of(case)));
        }
    }
    ending(&qualification.ended, &mut text);
    let totals = Totals::of(groups.iter().map(Group::outcome));
    let Totals { pass, fail, xfail, xpass, skip, error } = totals;
    let counts = format!("pass:{pass} fail:{fail} xfail:{xfail} xpass:{xpass} skip:{skip} error:{error}");
    line(&mut text, "", &format!("# Totals: {counts}"));
    text
}

/// The exit code that kselftest expects (`tools/testing/selftests/kselftest.h`): 0 pass, 1 fail, 2 failed only as
/// expected, 3 passed against expectation, 4 nothing but skips. A run that did not come to its end is a failure.
pub fn kselftest_exit(qualification: &Qualification) -> u8 {
    let totals = Totals::of(qualification.cases.iter().map(|case| case.outcome));
    let is_whole = qualification.ended == Ended::Complete;
    match totals {
        t if t.fail + t.error > 0 || !is_whole => 1,
        t if t.all() == t.skip => 4,
        t if t.xpass > 0 => 3,
        t if t.pass == 0 => 2,
        _ => 0,
    }
}

fn nested(group: &Group<'_>, options: KtapOptions, text: &mut String) {
    line(text, INDENT, "KTAP version 1");
    if options.metadata {
        line(text, INDENT, &format!("#:ktap_test: {}", group.name()));
        line(text, INDENT, &format!("#:linerate_title: {}", one_line(&group.cases[0].title)));
    }
    line(text, INDENT, &format!("1..{}", group.cases.len()));
    for (number, case) in group.cases.iter().enumerate() {
        diagnostics(case, INDENT, text);
        line(text, INDENT, &result(case.outcome, number + 1, &case_name(case), &gist_of(case)));
    }
}

const INDENT: &str = "  ";

fn gist_of(case: &CaseResult) -> String {
    if case.outcome == Outcome::Pass { String::new() } else { gist(case) }
}

/// `not ok 3 CSUM-03.v4 # TIMEOUT text`. Only a skip and what is expected are `ok` beside a pass; the text behind a plain
/// failure begins with its reason code, which is no directive.
fn result(outcome: Outcome, number: usize, name: &str, gist: &str) -> String {
    let (ok, directive) = match outcome {
        Outcome::Pass => ("ok", ""),
        Outcome::Skip => ("ok", "SKIP"),
        Outcome::ExpectedFail => ("ok", "XFAIL"),
        Outcome::UnexpectedPass => ("ok", "XPASS"),
        Outcome::Fail => ("not ok", ""),
        Outcome::Timeout => ("not ok", "TIMEOUT"),
        Outcome::Error => ("not ok", "ERROR"),
    };
    let name = one_line(name).replace('#', "");
    let gist = one_line(gist);
    let behind: Vec<&str> = [directive, &gist].into_iter().filter(|part| !part.is_empty()).collect();
    if behind.is_empty() {
        return format!("{ok} {number} {name}");
    }
    format!("{ok} {number} {name} # {}", behind.join(" "))
}

fn diagnostics(case: &CaseResult, indent: &str, text: &mut String) {
    let mut note = |note: &str| line(text, indent, &format!("# {}", one_line(note)));
    if !case.title.is_empty() && case.outcome != Outcome::Pass {
        note(&format!("{}: {}", case_name(case), case.title));
    }
    if case.reason.is_some() && case.outcome.is_bad() {
        for reason in case.reason.iter().chain(&case.more_reasons) {
            note(&format!("{}: {}", reason.code.word(), reason.text));
        }
    }
    for warning in &case.warnings {
        note(&format!("warning: {warning}"));
    }
    for number in &case.measured {
        note(&measured(number));
    }
    if let Some(evidence) = &case.evidence {
        for shown in dump_lines(evidence) {
            note(&shown);
        }
    }
    for logged in &case.log {
        note(&format!("log: {logged}"));
    }
    if let Some(capture) = &case.capture {
        note(&format!("capture: {capture}"));
    }
    if let Some(link) = case.expected.as_ref().and_then(|expected| expected.link.as_ref()) {
        note(&format!("see {link}"));
    }
}

fn run_metadata(qualification: &Qualification, text: &mut String) {
    let environment = &qualification.dut.environment;
    let facts = [
        ("ktap_test", "linerate-qualify".to_owned()),
        ("ktap_arch", environment.architecture.clone()),
        ("ktap_duration", format!("{:.3}s", seconds(qualification.duration_ns))),
        ("linerate_run", qualification.run.clone()),
        ("linerate_seed", qualification.seed.to_string()),
        ("linerate_kernel", environment.kernel.clone()),
        ("linerate_driver", driver(qualification).to_owned()),
        ("linerate_medium", qualification.medium.clone()),
        ("linerate_emulator", qualification.emulator.clone().unwrap_or_default()),
    ];
    for (name, value) in facts.iter().filter(|(_, value)| !value.is_empty()) {
        line(text, "", &format!("#:{name}: {}", one_line(value)));
    }
}

fn ending(ended: &Ended, text: &mut String) {
    match ended {
        Ended::Complete => {}
        Ended::Interrupted => line(text, "", "# interrupted: what was not run is missing"),
        Ended::StoppedOnFail => line(text, "", "# stopped at the first failure"),
        Ended::Lost(why) => line(text, "", &format!("Bail out! {}", one_line(why))),
    }
}

fn line(text: &mut String, indent: &str, content: &str) {
    // Writing to a string can't fail.
    let _ = writeln!(text, "{indent}{}", content.trim_end());
}

fn one_line(text: &str) -> String {
    printable(text)
}

fn seconds(ns: u64) -> f64 {
    ns as f64 / 1e9
}
