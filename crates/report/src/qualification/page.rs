//! Qualifications as one page of HTML: a matrix of cases by driver, and what went wrong in each run. No network, no script.

use askama::Template;
use linerate_model::qualification::{CaseResult, Evidence, Outcome, Qualification};

use super::dump::rows;
use super::group::{Totals, weight};
use super::table::{skips_by_reason, summary};
use super::{case_name, driver, gist, measured};
use crate::html::theme;

const STYLE: &str = include_str!("../../templates/report.css");
const OWN_STYLE: &str = include_str!("../../templates/qualification.css");

#[derive(Template)]
#[template(path = "qualification.html")]
struct Page<'a> {
    title: String,
    colours: String,
    style: &'static str,
    own_style: &'static str,
    version: &'a str,
    columns: Vec<Column>,
    areas: Vec<AreaPart>,
    runs: Vec<RunPart>,
}

/// A qualification's head in the matrix.
struct Column {
    driver: String,
    kernel: String,
    place: String,
}

struct AreaPart {
    name: String,
    rows: Vec<MatrixRow>,
}

struct MatrixRow {
    name: String,
    title: String,
    /// Several where a run was repeated.
    cells: Vec<Option<Cell>>,
}

struct Cell {
    word: &'static str,
    mark: &'static str,
    gist: String,
    number: String,
    link: Option<String>,
}

/// What belongs to one qualification alone.
struct RunPart {
    name: String,
    summary: String,
    facts: Vec<(&'static str, String)>,
    failures: Vec<Failure>,
    expected: Vec<(String, String)>,
    warnings: Vec<(String, String)>,
    skips: Vec<(String, Vec<String>)>,
    changed: Vec<(String, String, String, String)>,
    lost: Vec<String>,
    settings: Vec<(String, String)>,
    command: String,
}

struct Failure {
    id: String,
    name: String,
    title: String,
    word: &'static str,
    reasons: Vec<(String, String)>,
    evidence: Option<EvidencePart>,
    counters: Vec<(String, String)>,
    numbers: Vec<String>,
    log: Vec<String>,
    capture: Option<String>,
}

struct EvidencePart {
    what: String,
    place: Option<String>,
    dumps: Vec<Dump>,
}

struct Dump {
    name: &'static str,
    length: usize,
    rows: Vec<super::dump::Row>,
}

/// The page of one or several qualifications, side by side.
pub fn qualification_html(qualifications: &[Qualification]) -> String {
    let drivers: Vec<&str> = qualifications.iter().map(driver).collect();
    let mut named: Vec<&str> = drivers.clone();
    named.dedup();
    let page = Page {
        title: format!("linerate qualify: {}", named.join(", ")),
        colours: theme::variables(),
        style: STYLE,
        own_style: OWN_STYLE,
        version: qualifications.first().map_or("", |first| first.dut.environment.linerate_version.as_str()),
        columns: qualifications.iter().map(column).collect(),
        areas: areas(qualifications),
        runs: qualifications.iter().enumerate().map(|(index, run)| run_part(index, run)).collect(),
    };
    // Writing to a string fails only if a part's own formatting does, and every part is a string or a number.
    page.render().unwrap_or_default()
}

fn column(qualification: &Qualification) -> Column {
    let place = qualification.emulator.clone().unwrap_or_else(|| {
        let bus = qualification.dut.environment.link.as_ref().and_then(|link| link.bus.clone());
        bus.unwrap_or_else(|| qualification.medium.clone())
    });
    Column {
        driver: driver(qualification).to_owned(),
        kernel: qualification.dut.environment.kernel.clone(),
        place,
    }
}

/// Rows of the matrix by area, in the order in which cases were run first.
fn areas(qualifications: &[Qualification]) -> Vec<AreaPart> {
    let mut areas: Vec<AreaPart> = Vec::new();
    for case in qualifications.iter().flat_map(|q| &q.cases) {
        let name = row_name(case);
        let at = areas.iter().position(|area| area.name == case.area).unwrap_or_else(|| {
            areas.push(AreaPart { name: case.area.clone(), rows: Vec::new() });
            areas.len() - 1
        });
        if areas[at].rows.iter().any(|row| row.name == name) {
            continue;
        }
        let cells = qualifications.iter().enumerate().map(|(run, q)| cell(run, q, &name)).collect();
        areas[at].rows.push(MatrixRow { name, title: case.title.clone(), cells });
    }
    areas
}

/// Repeats share a row.
fn row_name(case: &CaseResult) -> String {
    case_name(&CaseResult { repeat: 0, ..case.clone() })
}

fn cell(run: usize, qualification: &Qualification, name: &str) -> Option<Cell> {
    let all: Vec<&CaseResult> = qualification.cases.iter().filter(|case| row_name(case) == name).collect();
    let worst = all.iter().max_by_key(|case| weight(case.outcome))?;
    let (mark, word) = (mark(worst.outcome), worst.outcome.word());
    let bad = all.iter().filter(|case| case.outcome == worst.outcome).count();
    let number = match (all.len(), worst.outcome) {
        (1, Outcome::Pass) => worst.measured.first().map(measured).unwrap_or_default(),
        (1, _) => worst.reason.as_ref().map(|reason| reason.code.word()).unwrap_or_default(),
        (repeats, _) => format!("{bad} of {repeats}"),
    };
    let link = worst.outcome.is_bad().then(|| anchor(run, worst));
    Some(Cell { word, mark, gist: gist(worst), number, link })
}

fn mark(outcome: Outcome) -> &'static str {
    match outcome {
        Outcome::Pass => "\u{2713}",
        Outcome::Fail | Outcome::Timeout => "\u{2717}",
        Outcome::Error => "!",
        Outcome::Skip => "\u{2013}",
        Outcome::ExpectedFail | Outcome::UnexpectedPass => "\u{2248}",
    }
}

fn anchor(run: usize, case: &CaseResult) -> String {
    let name = case_name(case);
    let safe: String = name.chars().map(|c| if c.is_ascii_alphanumeric() { c } else { '-' }).collect();
    format!("r{run}-{safe}")
}

fn run_part(index: usize, qualification: &Qualification) -> RunPart {
    let cases = &qualification.cases;
    let of = |outcome: Outcome| cases.iter().filter(move |case| case.outcome == outcome);
    let expected = of(Outcome::ExpectedFail).chain(of(Outcome::UnexpectedPass));
    let warnings =
        cases.iter().flat_map(|case| case.warnings.iter().map(|warning| (case_name(case), warning.clone())));
    let lost = qualification.journal.iter().filter(|entry| entry.restored == Some(false));
    RunPart {
        name: format!("{} {}", driver(qualification), qualification.dut.link),
        summary: summary(qualification),
        facts: facts(qualification),
        failures: cases.iter().filter(|c| c.outcome.is_bad()).map(|case| failure(index, case)).collect(),
        expected: expected
            .map(|case| (format!("{} {}", case_name(case), case.outcome.word()), gist(case)))
            .collect(),
        warnings: warnings.collect(),
        skips: skips_by_reason(cases),
        changed: changed(qualification),
        lost: lost.map(|entry| format!("{}: {} {}", entry.case, entry.end, entry.what)).collect(),
        settings: qualification.dut.settings_before.iter().map(|(k, v)| (k.clone(), v.clone())).collect(),
        command: qualification.command.join(" "),
    }
}

fn facts(qualification: &Qualification) -> Vec<(&'static str, String)> {
    let totals = Totals::of(qualification.cases.iter().map(|case| case.outcome));
    let mut facts = vec![
        ("results", format!("{} ({} pass)", totals.all(), totals.pass)),
        ("dut", format!("{} on {}", qualification.dut.link, qualification.dut.node)),
        ("peer", format!("{} on {}", qualification.peer.link, qualification.peer.node)),
        ("host", qualification.dut.environment.host.clone()),
        ("kernel", qualification.dut.environment.kernel.clone()),
        ("medium", qualification.medium.clone()),
        ("emulator", qualification.emulator.clone().unwrap_or_default()),
        ("seed", qualification.seed.to_string()),
        ("started", qualification.started_at.clone()),
        ("run", qualification.run.clone()),
    ];
    if let Some(calibration) = &qualification.calibration {
        let frames = crate::numbers::count(calibration.frames_per_second);
        let bits = crate::numbers::bit_rate(calibration.flow_bits_per_second);
        facts.push(("slower end", format!("{frames} small frames/s, {bits} of judged TCP")));
    }
    if let Some(link) = &qualification.dut.environment.link {
        facts.push(("driver version", link.driver_version.clone().unwrap_or_default()));
        facts.push(("firmware", link.firmware.clone().unwrap_or_default()));
    }
    facts.retain(|(_, value)| !value.is_empty());
    facts
}

fn failure(run: usize, case: &CaseResult) -> Failure {
    let reasons = case.reason.iter().chain(&case.more_reasons);
    Failure {
        id: anchor(run, case),
        name: case_name(case),
        title: case.title.clone(),
        word: case.outcome.word(),
        reasons: reasons.map(|reason| (reason.code.word(), reason.text.clone())).collect(),
        evidence: case.evidence.as_ref().map(evidence),
        counters: case.counters.iter().map(|(name, delta)| (name.clone(), format!("{delta:+}"))).collect(),
        numbers: case.measured.iter().map(measured).collect(),
        log: case.log.clone(),
        capture: case.capture.clone(),
    }
}

fn evidence(evidence: &Evidence) -> EvidencePart {
    let (expected, got) = (evidence.expected.as_deref(), evidence.got.as_deref());
    let dumps = [("expected", expected, got), ("got", got, expected)].into_iter().filter_map(
        |(name, bytes, other)| {
            let bytes = bytes?;
            Some(Dump { name, length: bytes.len(), rows: rows(bytes, other, evidence.offset) })
        },
    );
    EvidencePart {
        what: evidence.what.clone(),
        place: evidence.offset.map(|at| format!("first difference at offset {at} (0x{at:x})")),
        dumps: dumps.collect(),
    }
}

/// End, key, before, after.
fn changed(qualification: &Qualification) -> Vec<(String, String, String, String)> {
    let mut all = Vec::new();
    for (side, end) in [("dut", &qualification.dut), ("peer", &qualification.peer)] {
        for (key, after) in &end.settings_after {
            let before = end.settings_before.get(key).cloned().unwrap_or_default();
            all.push((side.to_owned(), key.clone(), before, after.clone()));
        }
    }
    all
}
