//! Runs the chosen cases, one variant after the other, each between its guards, and puts everything back.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::{Duration, Instant};

use linerate_model::qualification::{CaseResult, Ended, Outcome, Qualification, Reason, ReasonCode};

use crate::bench::Bench;
use crate::calibrate::calibrate;
use crate::capture::CapturedFrame;
use crate::case::{Case, Run};
use crate::connect::Joined;
use crate::event::Event;
use crate::guard::{self, Changed};
use crate::liveness::{self, Life};
use crate::lock::{self, LockError};
use crate::record::Record;
use crate::restore::{self, Values};
use crate::selection::{Planned, Selection};
use crate::trouble::Trouble;

/// What is to be run, and how.
#[derive(Debug, Clone)]
pub struct Course {
    /// The chosen variants, in order.
    pub planned: Vec<Planned>,
    /// The selection that they come from.
    pub selection: Selection,
    /// Seed of every random choice.
    pub seed: u64,
    /// Loosens time limits, for kernels with debugging; 1 is as they are.
    pub patience: f64,
    /// The command line, for the record.
    pub command: Vec<String>,
    /// Set while a case is judged, and only then: faults are injected then.
    pub judging: Option<Arc<AtomicBool>>,
}

/// Why a run could not begin.
#[derive(Debug, thiserror::Error)]
pub enum RunError {
    /// A link is in use.
    #[error(transparent)]
    Lock(#[from] LockError),
    /// No random number, no clock.
    #[error("{0}")]
    Machine(String),
    /// A node failed before the first case.
    #[error("{0}")]
    Begin(Trouble),
}

/// Runs cases. What was found until a node was lost, or the run was stopped, is in the result.
///
/// # Errors
/// Where it could not begin.
pub fn run(
    joined: Joined,
    course: &Course,
    tell: &mut dyn FnMut(Event<'_>),
) -> Result<Qualification, RunError> {
    let _locks = lock::lock(&joined.names())?;
    let mut record = Record::begin(course).map_err(RunError::Machine)?;
    let mut bench = joined.bench(course.seed, record.probe_run());
    bench.patience = course.patience;
    bench.judging.clone_from(&course.judging);
    joined_notes(&bench, tell);
    let mut known = match prepare(&mut bench, &mut record) {
        Ok(known) => known,
        Err(trouble) => {
            put_back_at_the_end(&mut bench);
            return Err(RunError::Begin(trouble));
        }
    };
    if let Some((dut, medium)) = record.described() {
        tell(Event::Described { dut, medium });
    }
    let variants = course.planned.len() * course.selection.repeat.max(1) as usize;
    tell(Event::Planned { variants });
    let ended = match calibrate_all(&mut bench, tell) {
        Ok(()) => all(&mut bench, course, &mut known, &mut record, tell),
        Err(Trouble::Stopped) => Ended::Interrupted,
        Err(trouble) => {
            put_back_at_the_end(&mut bench);
            return Err(RunError::Begin(trouble));
        }
    };
    put_back_at_the_end(&mut bench);
    Ok(record.end(&mut bench, ended))
}

fn joined_notes(bench: &Bench, tell: &mut dyn FnMut(Event<'_>)) {
    for station in [&bench.dut, &bench.peer] {
        if !station.lent.is_empty() {
            let list: Vec<String> = station.lent.iter().map(|(a, prefix)| format!("{a}/{prefix}")).collect();
            let (name, link) = (station.name(), station.link());
            tell(Event::Note(format!("{name}: {link} has no address; it is lent {}", list.join(", "))));
        }
    }
}

fn prepare(bench: &mut Bench, record: &mut Record) -> Result<[Values; 2], Trouble> {
    for station in [&mut bench.dut, &mut bench.peer] {
        restore::lend_addresses(station)?;
    }
    let known = [restore::values(&mut bench.dut)?, restore::values(&mut bench.peer)?];
    record.describe(bench, &known)?;
    Ok(known)
}

fn calibrate_all(bench: &mut Bench, tell: &mut dyn FnMut(Event<'_>)) -> Result<(), Trouble> {
    let calibration = calibrate(bench)?;
    bench.calibration = Some(calibration);
    tell(Event::Calibrated(calibration));
    Ok(())
}

/// Nobody is left to be told; the agents put back what remains when they end.
fn put_back_at_the_end(bench: &mut Bench) {
    bench.dut.lent.clear();
    bench.peer.lent.clear();
    let _ = restore::put_back(bench);
}

fn all(
    bench: &mut Bench,
    course: &Course,
    known: &mut [Values; 2],
    record: &mut Record,
    tell: &mut dyn FnMut(Event<'_>),
) -> Ended {
    let mut index = 0;
    for repeat in 0..course.selection.repeat.max(1) {
        for (at, planned) in course.planned.iter().enumerate() {
            tell(Event::CaseBegins {
                id: planned.case.id,
                variant: planned.variant,
                title: planned.case.title,
                index,
            });
            index += 1;
            let last_of_case = course.planned.get(at + 1).is_none_or(|next| next.case.id != planned.case.id);
            let done = one(bench, planned, repeat, known, course.selection.disruptive, last_of_case);
            let Some(mut result) = done.result else { return Ended::Interrupted };
            tell(Event::CaseEnds { result: &mut result, frames: done.frames });
            let failed = result.outcome.is_bad();
            record.add(result);
            if let Some(why) = done.lost {
                return Ended::Lost(why);
            }
            if failed && course.selection.stop_on_fail {
                return Ended::StoppedOnFail;
            }
        }
    }
    Ended::Complete
}

struct Done {
    /// `None` where it was interrupted.
    result: Option<CaseResult>,
    frames: Vec<CapturedFrame>,
    /// Why no further case can be run.
    lost: Option<String>,
}

fn one(
    bench: &mut Bench,
    planned: &Planned,
    repeat: u32,
    known: &mut [Values; 2],
    disruptive: bool,
    last_of_case: bool,
) -> Done {
    let began = Instant::now();
    let case = planned.case;
    bench.begin(case.id, planned.variant);
    let skip =
        planned.skip.map(|(code, why)| (code, why.to_owned())).or_else(|| lacks_privilege(bench, case));
    let Run::Offered { judge, limit_s, .. } = case.run else {
        let (code, why) = skip.unwrap_or((ReasonCode::NotOffered, String::new()));
        return skipped(bench, planned, repeat, began, code, why);
    };
    if let Some((code, why)) = skip {
        return skipped(bench, planned, repeat, began, code, why);
    }
    let limit = bench.patient(Duration::from_secs(u64::from(limit_s)));
    let mut changed = Changed::default();
    let judged = guarded(bench, case, judge, limit, &mut changed);
    bench.watch.limit(None);
    let settled = if matches!(judged, Err(Trouble::Lost(_))) {
        Ok(None)
    } else {
        settle(bench, known, disruptive, last_of_case)
    };
    finish(bench, planned, repeat, began, judged, settled, changed)
}

/// The case itself, with counters and log before and after.
fn guarded(
    bench: &mut Bench,
    case: &Case,
    judge: fn(&mut Bench) -> Result<(), Trouble>,
    limit: Duration,
    changed: &mut Changed,
) -> Result<(), Trouble> {
    let before = guard::before(bench)?;
    bench.watch.limit(Some(limit));
    bench.set_judging(true);
    let judged = judge(bench);
    bench.set_judging(false);
    bench.watch.limit(None);
    if !matches!(judged, Err(Trouble::Lost(_))) {
        match guard::after(bench, &before, case.disruptive) {
            Ok(found) => *changed = found,
            // A link that is gone has no counters: that is told by what comes next.
            Err(Trouble::Refused(_)) => {}
            Err(trouble) => return judged.and(Err(trouble)),
        }
    }
    judged
}

/// Puts everything back; then the link must be as before. Gives why no further case can be run.
fn settle(
    bench: &mut Bench,
    known: &mut [Values; 2],
    disruptive: bool,
    last_of_case: bool,
) -> Result<Option<String>, Trouble> {
    if let Some(gone) = link_gone(bench)? {
        bench.fail(ReasonCode::Link, gone.clone());
        return Ok(Some(gone));
    }
    restore::put_back(bench)?;
    restore::compare(bench, known)?;
    if bench.watch.is_stopped() || (!last_of_case && bench.is_clean()) {
        return Ok(None);
    }
    // Generous: a dead link must not hold up what is left.
    let limit = bench.patient(Duration::from_secs(60));
    bench.watch.limit(Some(limit));
    let life = liveness::check(bench, disruptive);
    bench.watch.limit(None);
    match life {
        Ok(Life::Alive) | Err(Trouble::Stopped) => Ok(None),
        Ok(Life::Recovered(how)) => {
            bench.warn(format!("the link carries traffic again after {how}"));
            restore::put_back(bench)?;
            Ok(None)
        }
        Ok(Life::Dead) | Err(Trouble::Late) => {
            Ok(Some("the link carries no traffic any more, and could not be brought back".to_owned()))
        }
        Err(trouble) => Err(trouble),
    }
}

fn link_gone(bench: &mut Bench) -> Result<Option<String>, Trouble> {
    for station in [&mut bench.dut, &mut bench.peer] {
        let name = station.link().to_owned();
        if !station.node.links()?.iter().any(|link| link.name == name) {
            return Ok(Some(format!("link {name} of the {} is gone", station.name())));
        }
    }
    Ok(None)
}

fn lacks_privilege(bench: &Bench, case: &Case) -> Option<(ReasonCode, String)> {
    for station in [&bench.dut, &bench.peer] {
        if station.privilege < case.privilege {
            let words = format!("the {}'s agent lacks {}", station.name(), case.privilege.words());
            return Some((ReasonCode::NoPermission, words));
        }
    }
    None
}

fn skipped(
    bench: &mut Bench,
    planned: &Planned,
    repeat: u32,
    began: Instant,
    code: ReasonCode,
    why: String,
) -> Done {
    let skip = Err(Trouble::Skip(code, why));
    finish(bench, planned, repeat, began, skip, Ok(None), Changed::default())
}

fn finish(
    bench: &mut Bench,
    planned: &Planned,
    repeat: u32,
    began: Instant,
    judged: Result<(), Trouble>,
    settled: Result<Option<String>, Trouble>,
    changed: Changed,
) -> Done {
    if matches!(judged, Err(Trouble::Stopped)) {
        return Done { result: None, frames: Vec::new(), lost: None };
    }
    let findings = std::mem::take(&mut bench.findings);
    let (warnings, measured, evidence) =
        (findings.warnings.clone(), findings.measured.clone(), findings.evidence.clone());
    let mut faults = findings.into_faults();
    let mut outcome = if faults.is_empty() { Outcome::Pass } else { Outcome::Fail };
    let mut lost = None;
    for trouble in [judged.err(), settled.as_ref().err().map(|t| Trouble::harness(t.to_string()))] {
        let Some(trouble) = trouble else { continue };
        if let Trouble::Lost(error) = &trouble {
            lost = Some(error.to_string());
        }
        let (told, code) = word(&trouble);
        if told != Outcome::Skip || faults.is_empty() {
            outcome = if outcome == Outcome::Fail { Outcome::Fail } else { told };
            faults.push(Reason { code, text: trouble.to_string() });
        }
    }
    let lost = lost.or_else(|| settled.unwrap_or_else(|trouble| Some(trouble.to_string())));
    let mut faults = faults.into_iter();
    let case = planned.case;
    let result = CaseResult {
        id: case.id.to_owned(),
        variant: planned.variant.to_owned(),
        area: case.area(),
        title: case.title.to_owned(),
        outcome,
        reason: faults.next(),
        more_reasons: faults.collect(),
        warnings,
        duration_ns: crate::station::nanoseconds(began.elapsed()),
        measured,
        counters: changed.counters,
        evidence,
        log: changed.log,
        capture: None,
        expected: None,
        repeat,
    };
    let frames = if result.outcome.is_bad() {
        let mut frames = bench.dut.ring.take(bench.dut.side);
        frames.extend(bench.peer.ring.take(bench.peer.side));
        frames.sort_by_key(|frame| frame.time_ns);
        frames
    } else {
        Vec::new()
    };
    Done { result: Some(result), frames, lost }
}

fn word(trouble: &Trouble) -> (Outcome, ReasonCode) {
    match trouble {
        Trouble::Skip(code, _) => (Outcome::Skip, *code),
        Trouble::Refused(error) if error.is_permission() => (Outcome::Skip, ReasonCode::NoPermission),
        Trouble::Late => (Outcome::Timeout, ReasonCode::Slow),
        Trouble::Refused(_) | Trouble::Lost(_) | Trouble::Stopped | Trouble::Harness(_) => {
            (Outcome::Error, ReasonCode::Harness)
        }
    }
}
