//! The course of a run: blocks of trials until it is enough.

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use linerate_model::event::Event;
use linerate_model::experiment::LeftOut;
use linerate_model::hazard::{Hazard, HazardKind};
use linerate_model::record::{Outcome, Record};
use linerate_model::trial::SettingLevel;

use crate::bench::Bench;
use crate::join::Place;
use crate::plan::{Plan, Repeats};
use crate::runner::{RunError, Session};
use crate::standing::{self, Standing};
use crate::stats::stop::StopState;
use crate::verdicts;

/// Runs a plan's blocks; returns whether it came to its end, or a signal ended it. `done` are the records of a run that goes
/// on: what is there is not run again. Every finished trial is told as an event.
///
/// # Errors
/// Where a node fails. What was finished until then has been told.
pub fn run(
    bench: &mut Bench,
    plan: &Plan,
    run_id: &str,
    done: &[Record],
    stop: &AtomicBool,
    tell: &mut dyn FnMut(Event),
) -> Result<Outcome, RunError> {
    let mut course = Course::new(plan, done);
    tell(plan.announcement(course.finished.len()));
    let mut session = Session::new(bench, run_id, Duration::from_nanos(plan.settle_ns), stop);
    let outcome = course
        .rehearse(&mut session, tell)
        .and_then(|()| blocks(&mut session, &mut course, done, stop, tell));
    // What went wrong first is told; an agent whose controller is lost puts everything back by itself.
    let restored = session.put_back();
    outcome.and_then(|outcome| restored.map(|()| outcome))
}

fn blocks(
    session: &mut Session<'_>,
    course: &mut Course<'_>,
    done: &[Record],
    stop: &AtomicBool,
    tell: &mut dyn FnMut(Event),
) -> Result<Outcome, RunError> {
    let plan = course.plan;
    let mut sequence = done.iter().map(|r| r.sequence + 1).max().unwrap_or(0);
    for block in 0_u32.. {
        for combination in plan.order(block) {
            if course.finished.contains(&(combination, block)) || course.skipped.contains(&combination) {
                continue;
            }
            if stop.load(Ordering::Relaxed) {
                return Ok(Outcome::Interrupted);
            }
            let place = Place { seed: plan.seed, block, combination: combination as u32 };
            let trial = plan.trial(combination, block);
            let Some(mut record) = session.run(&trial, sequence, place, tell)? else {
                return Ok(Outcome::Interrupted);
            };
            sequence += 1;
            let outcome = record.outcome;
            record.hazards.extend(course.take(combination, &record));
            tell(Event::TrialFinished(Box::new(record)));
            if outcome == Outcome::Interrupted {
                return Ok(outcome);
            }
        }
        let blocks = block + 1;
        let next = course.next(blocks);
        tell(Event::BlockFinished { blocks, likely_blocks: next.likely_blocks });
        if next.enough {
            break;
        }
    }
    Ok(Outcome::Complete)
}

/// What has been measured, and when it is enough.
struct Course<'a> {
    plan: &'a Plan,
    /// (combination, block) of every complete trial.
    finished: BTreeSet<(usize, u32)>,
    /// Combinations that a node refuses.
    skipped: BTreeSet<usize>,
    records: Vec<Record>,
    begun: Instant,
    /// Time that a run which goes on has spent before.
    spent: Duration,
}

struct Next {
    enough: bool,
    likely_blocks: Option<u32>,
}

impl<'a> Course<'a> {
    fn new(plan: &'a Plan, done: &[Record]) -> Self {
        let records: Vec<Record> = done.iter().filter(|r| r.outcome == Outcome::Complete).cloned().collect();
        let at = |r: &Record| Some((r.combination? as usize, r.block?));
        let trial_ns = |r: &Record| crate::plan::trial_ns(&r.trial).unwrap_or(0);
        Self {
            plan,
            finished: records.iter().filter_map(at).collect(),
            spent: Duration::from_nanos(records.iter().map(trial_ns).sum()),
            skipped: BTreeSet::new(),
            records,
            begun: Instant::now(),
        }
    }

    /// Finds out before any traffic which settings the nodes take.
    fn rehearse(&mut self, session: &mut Session<'_>, tell: &mut dyn FnMut(Event)) -> Result<(), RunError> {
        if !self.plan.skip_refused {
            return session.rehearse(&self.plan.combinations);
        }
        let mut rehearsed: Vec<&[SettingLevel]> = vec![&[]];
        for trial in &self.plan.combinations {
            let settings = trial.settings.as_slice();
            if rehearsed.contains(&settings) {
                continue;
            }
            rehearsed.push(settings);
            match session.rehearse(std::slice::from_ref(trial)) {
                Ok(()) => {}
                Err(RunError::Node(error)) if error.is_refusal() => {
                    session.put_back()?;
                    let skipped = self.skip(settings);
                    let words: Vec<String> =
                        settings.iter().map(|s| format!("{}={}", s.key, s.value)).collect();
                    let (levels, reason) = (words.join(" "), error.to_string());
                    tell(Event::Skipped(LeftOut { levels, combinations: skipped, reason }));
                }
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    /// Leaves out all combinations with these settings; returns how many they are.
    fn skip(&mut self, settings: &[SettingLevel]) -> usize {
        let all = self.plan.combinations.iter().enumerate();
        let those: Vec<usize> = all.filter(|(_, t)| t.settings == settings).map(|(at, _)| at).collect();
        self.skipped.extend(&those);
        those.len()
    }

    /// Notes a trial; gives what is to be distrusted of it in the light of the others.
    fn take(&mut self, combination: usize, record: &Record) -> Vec<Hazard> {
        if record.outcome == Outcome::Complete {
            self.finished.insert((combination, record.trial.repeat));
            // What is judged later needs the figures, not the readings.
            self.records.push(record.clone());
        }
        let Repeats::Until(until) = self.plan.repeats else { return Vec::new() };
        standing::of(&self.records, combination, &until)
            .iter()
            .filter_map(|s| too_wide(s, until.width))
            .collect()
    }

    fn next(&self, blocks: u32) -> Next {
        match self.plan.repeats {
            Repeats::Fixed(all) => Next { enough: blocks >= all, likely_blocks: Some(all) },
            Repeats::Until(until) => {
                let all: Vec<Standing> = (0..self.plan.combinations.len())
                    .flat_map(|combination| standing::of(&self.records, combination, &until))
                    .collect();
                let open = all.iter().filter(|s| s.progress.state == StopState::Continue);
                let likely = open.clone().filter_map(|s| s.progress.likely_repeats).max();
                Next { enough: open.count() == 0, likely_blocks: Some(likely.unwrap_or(blocks)) }
            }
            Repeats::Decide(decide) => {
                let spent = self.spent + self.begun.elapsed();
                let block = spent / blocks;
                let budget = Duration::from_nanos(decide.budget_ns);
                let decided = verdicts::all_decided(&self.records, &decide, &self.plan.metrics, blocks);
                let fits = u32::try_from(budget.as_nanos() / block.as_nanos().max(1)).ok();
                Next { enough: decided || spent + block > budget, likely_blocks: fits }
            }
        }
    }
}

fn too_wide(standing: &Standing, width: f64) -> Option<Hazard> {
    if standing.progress.state != StopState::GaveUp {
        return None;
    }
    let found = match standing.progress.relative_half_width {
        Some(half) => format!("within {:.1} %", half * 100.0),
        None => "not within any interval".to_owned(),
    };
    Some(Hazard {
        kind: HazardKind::TooWide,
        side: None,
        evidence: format!(
            "after {} repeats {} is known {found}; {} % was asked for",
            standing.repeats,
            standing.metric,
            width * 100.0
        ),
        cure: "raise --max-repeat or --width, or measure for longer".to_owned(),
    })
}
