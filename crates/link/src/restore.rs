//! Settings put back: by their owner at its end, or by the next linerate from the journal that a dead owner left.

use std::collections::BTreeMap;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::error::{LinkError, Result};
use crate::journal::{Entry, Found, Journal, JournalFolder, LockedFolder, set_aside};
use crate::settings::part::{Scope, Values};
use crate::{links, netns};

/// Some settings let themselves be put back only after others, so the order is turned around in between.
const PASSES: u32 = 6;
/// What a change sets off in the kernel may take a moment.
const SETTLE: Duration = Duration::from_millis(20);

/// A setting that was found different from what it was.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Difference {
    /// Its link.
    pub link: String,
    /// Its name, of a part that was touched: `feature tx-tcp-segmentation`, `mtu`.
    pub setting: String,
    /// What it was before linerate's first change.
    pub before: String,
    /// What it was found as.
    pub found: String,
}

/// A setting that could not be put back.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct NotBack {
    /// Which, with what it should be and what it is.
    pub difference: Difference,
    /// What the kernel said, where it said anything.
    pub why: Option<String>,
}

impl std::fmt::Display for Difference {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { link, setting, before, found } = self;
        write!(f, "{setting} of {link}: is {} and was {}", shown(found), shown(before))
    }
}

impl std::fmt::Display for NotBack {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match &self.why {
            Some(why) => write!(f, "{} ({why})", self.difference),
            None => write!(f, "{}", self.difference),
        }
    }
}

/// Addresses and routes have no value of their own to show.
fn shown(value: &str) -> &str {
    if value.is_empty() { "there" } else { value }
}

/// What came of putting settings back.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Report {
    /// Settings that were different and are as they were again.
    pub put_back: Vec<Difference>,
    /// Those that are not.
    pub not_back: Vec<NotBack>,
}

impl Report {
    /// Whether every setting is as it was.
    pub fn is_complete(&self) -> bool {
        self.not_back.is_empty()
    }
}

/// What became of one journal.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Restored {
    /// The journal.
    pub journal: String,
    /// Process id of its owner; 0 where it can't be read.
    pub owner: u32,
    /// Name of the owner's namespace, if it had one.
    pub netns: Option<String>,
    /// The links whose settings it keeps.
    pub links: Vec<String>,
    /// What was done.
    pub outcome: Outcome,
}

/// What was done about a journal.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Outcome {
    /// Its settings were put back; it stays where one was not.
    Done(Report),
    /// There was nothing to put back any more, for this reason; it was removed.
    Moot(String),
    /// Its owner lives: it was left alone.
    InUse,
    /// It could not be used, for this reason; it stays.
    Failed(String),
}

/// Puts back what owners that died have left changed, in every folder that this user's journals may be in. Safe at any
/// time: a journal whose owner lives is left alone, and of several at once one works while the others wait.
///
/// # Errors
/// A folder that can't be read or locked.
pub fn restore_stale() -> Result<Vec<Restored>> {
    let mut all = Vec::new();
    for folder in JournalFolder::known() {
        all.extend(restore_stale_in(&folder)?);
    }
    Ok(all)
}

/// [`restore_stale`] for one folder.
///
/// # Errors
/// As [`restore_stale`].
pub fn restore_stale_in(folder: &JournalFolder) -> Result<Vec<Restored>> {
    match folder.lock_if_there()? {
        Some(locked) => restore_locked(&locked),
        None => Ok(Vec::new()),
    }
}

/// Removes the journals of dead owners without putting anything back; returns what they kept.
///
/// # Errors
/// As [`restore_stale`], and a journal that can't be removed.
pub fn forget_stale() -> Result<Vec<Restored>> {
    let mut all = Vec::new();
    for folder in JournalFolder::known() {
        let Some(locked) = folder.lock_if_there()? else { continue };
        for found in locked.journals()? {
            if let Found::Stale(journal) = found {
                all.push(restored(&journal, Outcome::Moot("forgotten as asked".to_owned())));
                journal.remove()?;
            }
        }
    }
    Ok(all)
}

pub(crate) fn restore_locked(folder: &LockedFolder) -> Result<Vec<Restored>> {
    let mut all = Vec::new();
    for found in folder.journals()? {
        all.push(match found {
            Found::Stale(journal) => restore_journal(journal),
            Found::Living(header, entries) => Restored {
                journal: String::new(),
                owner: header.owner(),
                netns: header.netns,
                links: links_of(&entries),
                outcome: Outcome::InUse,
            },
            Found::Damaged(path, error) => {
                let aside = set_aside(&path)?;
                Restored {
                    journal: aside.display().to_string(),
                    owner: 0,
                    netns: None,
                    links: Vec::new(),
                    outcome: Outcome::Failed(error.to_string()),
                }
            }
        });
    }
    Ok(all)
}

fn restore_journal(journal: Journal) -> Restored {
    let outcome = match put_back_where_it_is(&journal) {
        Ok(outcome) => outcome,
        Err(error) => Outcome::Failed(error.to_string()),
    };
    let mut restored = restored(&journal, outcome);
    let finished = match &restored.outcome {
        Outcome::Done(report) => report.is_complete(),
        Outcome::Moot(_) => true,
        Outcome::InUse | Outcome::Failed(_) => false,
    };
    if finished && let Err(error) = journal.remove() {
        restored.outcome = Outcome::Failed(error.to_string());
    }
    restored
}

fn restored(journal: &Journal, outcome: Outcome) -> Restored {
    Restored {
        journal: journal.path().display().to_string(),
        owner: journal.header.owner(),
        netns: journal.header.netns.clone(),
        links: links_of(&journal.entries),
        outcome,
    }
}

fn links_of(entries: &[Entry]) -> Vec<String> {
    let mut links: Vec<_> = entries.iter().map(|entry| entry.link.clone()).collect();
    links.sort();
    links.dedup();
    links
}

fn put_back_where_it_is(journal: &Journal) -> Result<Outcome> {
    if !journal.header.is_of_this_boot()? {
        return Ok(Outcome::Moot("the machine was started anew since".to_owned()));
    }
    if journal.entries.is_empty() {
        return Ok(Outcome::Done(Report::default()));
    }
    let work = || put_back(&journal.entries);
    if let Some(report) = netns::in_identity(journal.header.namespace, work)? {
        return Ok(Outcome::Done(report));
    }
    // What is not the namespace's is still there to be put back.
    let machine: Vec<_> =
        journal.entries.iter().filter(|entry| entry.part.scope() == Scope::Machine).cloned().collect();
    if machine.is_empty() {
        return Ok(Outcome::Moot("its network namespace is gone".to_owned()));
    }
    put_back(&machine).map(Outcome::Done)
}

/// Puts parts back in the calling thread's namespace, last one first, until all read as they were or nothing helps.
/// Parts of a link that is gone are passed over.
///
/// # Errors
/// The links can't be listed.
pub(crate) fn put_back(entries: &[Entry]) -> Result<Report> {
    let mut found: BTreeMap<(usize, String), String> = BTreeMap::new();
    let mut causes: BTreeMap<usize, String> = BTreeMap::new();
    let mut differing = BTreeMap::new();
    for pass in 0..PASSES {
        let mut order: Vec<_> = (0..entries.len()).collect();
        if pass % 2 == 0 {
            order.reverse();
        }
        if pass > 0 {
            std::thread::sleep(SETTLE * (pass - 1));
        }
        differing.clear();
        for number in order {
            let entry = &entries[number];
            let Some(link) = present_name(entry)? else { continue };
            let now = match entry.part.values(&link) {
                Ok(now) => now,
                Err(error) => {
                    causes.insert(number, error.to_string());
                    Values::new()
                }
            };
            let different = differences(entry, &now);
            if different.is_empty() {
                continue;
            }
            for difference in &different {
                found.entry((number, difference.setting.clone())).or_insert_with(|| difference.found.clone());
            }
            match entry.part.put_back(&link, &entry.before, &now) {
                Ok(()) => drop(causes.remove(&number)),
                Err(error) => drop(causes.insert(number, error.to_string())),
            }
            differing.insert(number, different);
        }
        if differing.is_empty() {
            break;
        }
    }
    Ok(report(entries, found, &differing, &causes))
}

fn report(
    entries: &[Entry],
    found: BTreeMap<(usize, String), String>,
    differing: &BTreeMap<usize, Vec<Difference>>,
    causes: &BTreeMap<usize, String>,
) -> Report {
    let mut report = Report::default();
    for (number, differences) in differing {
        let why = causes.get(number).cloned();
        report.not_back.extend(
            differences.iter().map(|difference| NotBack { difference: difference.clone(), why: why.clone() }),
        );
    }
    for ((number, setting), found) in found {
        let still = differing.get(&number).is_some_and(|all| all.iter().any(|one| one.setting == setting));
        if still {
            continue;
        }
        let entry = &entries[number];
        let before = entry.before.iter().find(|(item, _)| name(entry, item) == setting);
        let before = before.map(|(_, value)| value.clone()).unwrap_or_default();
        report.put_back.push(Difference { link: entry.link.clone(), setting, before, found });
    }
    report
}

/// The name that the entry's link has now; `None` where the link is gone and its part with it.
fn present_name(entry: &Entry) -> Result<Option<String>> {
    match links::name_of(entry.index)? {
        Some(name) => Ok(Some(name)),
        // Of the machine's parts, interrupts are found by their link only.
        None if entry.part.scope() == Scope::Link => Ok(None),
        None if entry.part == crate::settings::part::Part::IrqAffinity => Ok(None),
        None => Ok(Some(entry.link.clone())),
    }
}

fn differences(entry: &Entry, now: &Values) -> Vec<Difference> {
    let differs = |(item, before): (&String, &String)| {
        let found = now.get(item);
        (found != Some(before)).then(|| Difference {
            link: entry.link.clone(),
            setting: name(entry, item),
            before: before.clone(),
            found: found.cloned().unwrap_or_else(|| "gone".to_owned()),
        })
    };
    entry.before.iter().filter_map(differs).collect()
}

fn name(entry: &Entry, item: &str) -> String {
    let label = entry.part.label();
    if label.is_empty() || label == item { item.to_owned() } else { format!("{label} {item}") }
}

/// Refuses to go on where settings of a dead owner could not be put back, or a living one has changed them.
///
/// # Errors
/// [`LinkError::InUse`] or [`LinkError::NotPutBack`].
pub(crate) fn require_free(restored: &[Restored]) -> Result<()> {
    for one in restored {
        let why = match &one.outcome {
            Outcome::Done(report) => report.not_back.first().map(ToString::to_string),
            Outcome::Failed(why) if one.owner != 0 => Some(why.clone()),
            _ => None,
        };
        if let Some(why) = why {
            return Err(LinkError::NotPutBack { owner: one.owner, why });
        }
    }
    Ok(())
}
