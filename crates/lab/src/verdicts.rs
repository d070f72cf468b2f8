//! Which trials of two runs, or of two levels of one factor, belong together; and what changed between them.

use std::collections::BTreeSet;

use linerate_model::factor::{self, Level};
use linerate_model::record::{Outcome, Record};
use linerate_model::trial::Trial;

use crate::figures::{self, Figure};
use crate::plan::Decide;
use crate::stats::compare::{Compared, Comparison, Pairing, Rule, Verdict, compare};
use crate::stats::confidence::Confidence;
use crate::stats::error::StatsError;
use crate::stats::looks::LookPlan;

/// Trials of base and new that differ in nothing else.
#[derive(Debug, Clone, PartialEq)]
pub struct Match<'a> {
    /// What they have in common.
    pub levels: Vec<Level>,
    /// Complete trials under base, in the order run; paired with those of `new` where [`Match::pairing`] says so.
    pub base: Vec<&'a Record>,
    /// Complete trials under new, in the order run.
    pub new: Vec<&'a Record>,
    /// How they belong together.
    pub pairing: Pairing,
}

/// One figure of one match, with its answer.
#[derive(Debug, Clone, PartialEq)]
pub struct Row {
    /// Place of its match.
    pub of: usize,
    /// The figure, with the value of base's first trial.
    pub figure: Figure,
    /// The answer, or why there is none.
    pub answer: Result<Compared, StatsError>,
}

/// Why two things can't be compared.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum MatchError {
    /// No trial of one is as a trial of the other.
    #[error("no complete trial of the base has its like among the new ones: they differ in {0}")]
    NothingInCommon(String),
    /// The run does not vary the factor.
    #[error("the run does not vary {factor}; it varies {}", or_nothing(.varied))]
    NotVaried {
        /// What was asked for.
        factor: String,
        /// What is there.
        varied: Vec<String>,
    },
    /// The factor has more than two levels.
    #[error("{factor} has {} levels ({}): name two, as in --factor {factor}={},{}", .levels.len(), .levels.join(", "), .levels[0], .levels[1])]
    ManyLevels {
        /// What was asked for.
        factor: String,
        /// Its levels.
        levels: Vec<String>,
    },
}

fn or_nothing(names: &[String]) -> String {
    if names.is_empty() { "nothing".to_owned() } else { names.join(", ") }
}

/// Matches the trials of two sets of records: by block where all are of one interleaved run, else as separate runs.
///
/// # Errors
/// Where nothing matches.
pub fn match_runs<'a>(base: &'a [Record], new: &'a [Record]) -> Result<Vec<Match<'a>>, MatchError> {
    let matches = matched(base, new, |r| factor::levels(&r.trial));
    if matches.is_empty() {
        return Err(MatchError::NothingInCommon(differences(base, new)));
    }
    Ok(matches)
}

/// Matches the trials of one run that differ in one factor alone. `levels` names base and new; where it is `None` the
/// factor must have two, and the one that comes first in the plan is the base. Returns the two levels too.
///
/// # Errors
/// Where the run doesn't vary the factor, or no two levels are named of several.
pub fn match_levels<'a>(
    records: &'a [Record],
    name: &str,
    levels: Option<(String, String)>,
) -> Result<(Vec<Match<'a>>, (String, String)), MatchError> {
    let found = levels_of(records, name);
    let (base, new) = match (levels, found.as_slice()) {
        (Some(levels), _) => levels,
        (None, [base, new]) => (base.clone(), new.clone()),
        (None, [] | [_]) => {
            return Err(MatchError::NotVaried { factor: name.to_owned(), varied: varied(records) });
        }
        (None, _) => return Err(MatchError::ManyLevels { factor: name.to_owned(), levels: found }),
    };
    if let Some(missing) = [&base, &new].into_iter().find(|level| !found.contains(level)) {
        return Err(MatchError::NotVaried { factor: format!("{name}={missing}"), varied: found });
    }
    let of = |level: &str| -> Vec<&Record> {
        records.iter().filter(|r| factor::level(&r.trial, name).as_deref() == Some(level)).collect()
    };
    let key = |r: &Record| factor::levels(&r.trial).into_iter().filter(|l| l.factor != name).collect();
    let matches = matched(of(&base), of(&new), key);
    if matches.is_empty() {
        return Err(MatchError::NothingInCommon(format!("more than {name}")));
    }
    Ok((matches, (base, new)))
}

/// The factors that take more than one level in these records, by name.
pub fn varied(records: &[Record]) -> Vec<String> {
    let mut names: Vec<String> = Vec::new();
    for level in records.iter().flat_map(|r| factor::levels(&r.trial)) {
        if !names.contains(&level.factor) && levels_of(records, &level.factor).len() > 1 {
            names.push(level.factor);
        }
    }
    names
}

/// The factors that take more than one level among trials, by name.
pub fn varied_among(trials: &[Trial]) -> Vec<String> {
    let mut names: Vec<String> = Vec::new();
    for level in trials.iter().flat_map(factor::levels) {
        if !names.contains(&level.factor) && level_count(trials, &level.factor) > 1 {
            names.push(level.factor);
        }
    }
    names
}

/// How many levels a factor takes among trials.
pub fn level_count(trials: &[Trial], name: &str) -> usize {
    trials.iter().filter_map(|t| factor::level(t, name)).collect::<BTreeSet<_>>().len()
}

/// The levels that a factor takes, in the order of the plan.
fn levels_of(records: &[Record], name: &str) -> Vec<String> {
    let mut places: Vec<(Option<u32>, String)> = Vec::new();
    for record in records {
        let Some(value) = factor::level(&record.trial, name) else { continue };
        match places.iter_mut().find(|(_, known)| *known == value) {
            Some((place, _)) => *place = (*place).min(record.combination),
            None => places.push((record.combination, value)),
        }
    }
    places.sort_by_key(|(place, _)| *place);
    places.into_iter().map(|(_, value)| value).collect()
}

fn differences(base: &[Record], new: &[Record]) -> String {
    let (Some(base), Some(new)) = (base.first(), new.first()) else {
        return "having trials at all".to_owned();
    };
    let (base, new) = (factor::levels(&base.trial), factor::levels(&new.trial));
    let differ = base.iter().filter(|l| !new.contains(l)).map(|l| l.factor.clone());
    let all: Vec<String> = differ.collect();
    if all.is_empty() { "how they ended".to_owned() } else { all.join(", ") }
}

fn matched<'a>(
    base: impl IntoIterator<Item = &'a Record>,
    new: impl IntoIterator<Item = &'a Record>,
    key: impl Fn(&Record) -> Vec<Level>,
) -> Vec<Match<'a>> {
    let complete = |r: &&Record| r.outcome == Outcome::Complete;
    let mut matches: Vec<Match<'a>> = Vec::new();
    for record in base.into_iter().filter(complete) {
        let levels = key(record);
        match matches.iter_mut().find(|m| m.levels == levels) {
            Some(found) => found.base.push(record),
            None => matches.push(Match {
                levels,
                base: vec![record],
                new: Vec::new(),
                pairing: Pairing::Separate,
            }),
        }
    }
    for record in new.into_iter().filter(complete) {
        let levels = key(record);
        if let Some(found) = matches.iter_mut().find(|m| m.levels == levels) {
            found.new.push(record);
        }
    }
    matches.retain(|m| !m.new.is_empty());
    matches.sort_by_key(|m| m.base.first().and_then(|r| r.combination));
    matches.iter_mut().for_each(Match::pair);
    matches
}

impl Match<'_> {
    /// Pairs by block where both sides are of the same interleaved run; blocks that only one side has are left out.
    fn pair(&mut self) {
        self.base.sort_by_key(|r| r.sequence);
        self.new.sort_by_key(|r| r.sequence);
        let run = &self.base[0].run;
        let interleaved = |r: &&Record| r.run == *run && r.block.is_some();
        let distinct = self.base.iter().all(|b| self.new.iter().all(|n| n.sequence != b.sequence));
        if !distinct || !self.base.iter().chain(&self.new).all(interleaved) {
            return;
        }
        let blocks = |side: &[&Record]| -> Vec<Option<u32>> { side.iter().map(|r| r.block).collect() };
        let (of_base, of_new) = (blocks(&self.base), blocks(&self.new));
        self.base.retain(|r| of_new.contains(&r.block));
        self.new.retain(|r| of_base.contains(&r.block));
        self.base.sort_by_key(|r| r.block);
        self.new.sort_by_key(|r| r.block);
        if self.base.len() == self.new.len() && !self.base.is_empty() {
            self.pairing = Pairing::ByBlock;
        }
    }

    fn values(side: &[&Record], name: &str, metrics: &[String]) -> Vec<f64> {
        let value =
            |r: &&Record| figures::chosen(r, metrics).into_iter().find(|f| f.name == name).map(|f| f.value);
        side.iter().filter_map(value).collect()
    }
}

/// Judges every figure of every match together: those that `metrics` choose (see [`figures::METRICS`]), or the usual ones.
///
/// # Errors
/// For a margin outside 0 to below 1.
pub fn judge(matches: &[Match<'_>], rule: &Rule, metrics: &[String]) -> Result<Vec<Row>, StatsError> {
    let mut figures: Vec<(usize, Figure, Vec<f64>, Vec<f64>)> = Vec::new();
    for (of, matched) in matches.iter().enumerate() {
        let Some(first) = matched.base.first() else { continue };
        for figure in figures::chosen(first, metrics) {
            let values = |side| Match::values(side, figure.name, metrics);
            figures.push((of, figure, values(&matched.base), values(&matched.new)));
        }
    }
    let table: Vec<Comparison<'_>> = figures
        .iter()
        .map(|(of, figure, base, new)| Comparison {
            direction: figure.direction,
            base,
            new,
            pairing: matches[*of].pairing,
        })
        .collect();
    let answers = compare(&table, rule)?;
    let rows = figures.iter().zip(answers);
    Ok(rows.map(|((of, figure, ..), answer)| Row { of: *of, figure: *figure, answer }).collect())
}

/// The factor that an A/B run varies: the only one.
pub fn ab_factor(records: &[Record]) -> Option<String> {
    varied(records).into_iter().next()
}

/// How many rows an A/B run will have, by what its workloads show: the first look depends on it.
pub fn rows_of(combinations: usize, transactional: bool, shared_kernel: bool, metrics: &[String]) -> usize {
    let machines = if shared_kernel { 1 } else { 2 };
    let usual = 1 + machines + if transactional { 2 } else { 0 };
    let of = |metric: &String| if metric.starts_with("cpu") { machines } else { 1 };
    let figures = if metrics.is_empty() { usual } else { metrics.iter().map(of).sum() };
    (combinations / 2).max(1) * figures
}

/// The rule for the look that is due after so many blocks, or for the last look of all.
///
/// # Errors
/// For a confidence outside 50 to 100 %.
pub fn look_rule(decide: &Decide, blocks: u32, last: bool) -> Result<Option<Rule>, StatsError> {
    let confidence = Confidence::from_percent(decide.confidence_percent)?;
    let plan = LookPlan::new(confidence, decide.comparisons.max(1) as usize)?;
    let look = plan.due(blocks).or_else(|| last.then(|| plan.last(blocks)));
    Ok(look.map(|look| Rule { confidence: look.confidence, margin: decide.margin }))
}

/// Whether a look is due after so many blocks of an A/B run, and decides every row.
pub fn all_decided(records: &[Record], decide: &Decide, metrics: &[String], blocks: u32) -> bool {
    let Ok(Some(rule)) = look_rule(decide, blocks, false) else { return false };
    let Some(factor) = ab_factor(records) else { return false };
    let Ok((matches, _)) = match_levels(records, &factor, None) else { return false };
    let Ok(rows) = judge(&matches, &rule, metrics) else { return false };
    // A row that can't be judged (a figure of zero) never will be.
    rows.iter().filter_map(|row| row.answer.as_ref().ok()).all(|c| c.verdict != Verdict::Undecided)
}
