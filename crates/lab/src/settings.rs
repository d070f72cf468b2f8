//! The settings of trials: rehearsed before any traffic, in force while a trial runs, put back at the end.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use linerate_agent::node::{Node, NodeError};
use linerate_model::trial::{SettingLevel, Side, Trial};

use crate::path::Path;
use crate::runner::{Bench, RunError, path_of};

/// Shortest pause after a setting changed.
const SHORTEST_PAUSE: Duration = Duration::from_millis(200);
/// Shortest pause after a link lost its carrier meanwhile.
const PAUSE_AFTER_FLAP: Duration = Duration::from_secs(1);
const SIDES: [Side; 2] = [Side::Dut, Side::Peer];

/// A link with its keys and values, in the order in which they are set.
type Wanted = Option<(String, Vec<(String, String)>)>;

/// What is in force on both nodes.
#[derive(Debug, Default)]
pub struct InForce {
    dut: Wanted,
    peer: Wanted,
}

/// A setting that names no node, or a node that has no link on the path.
#[derive(Debug, thiserror::Error)]
pub enum SettingError {
    /// `dut.`, `peer.` or `both.` is missing.
    #[error("{0}: a setting begins with dut., peer. or both.")]
    NoNode(String),
    /// Which link it is of is not known.
    #[error("{key}: the link of the {side} on the path is not known; name it with --link or --peer-link")]
    NoLink {
        /// The setting.
        key: String,
        /// `dut` or `peer`.
        side: &'static str,
    },
}

impl InForce {
    /// Brings every combination of settings into force once, and puts all back: what a node refuses stops the run before
    /// any traffic.
    ///
    /// # Errors
    /// The first refusal, in the node's words.
    pub fn rehearse(
        &mut self,
        bench: &mut Bench,
        trials: &[Trial],
        stop: &AtomicBool,
    ) -> Result<(), RunError> {
        let mut rehearsed: Vec<&Trial> = Vec::new();
        for trial in trials {
            let known = |other: &&Trial| other.settings == trial.settings && other.family == trial.family;
            if trial.settings.is_empty() || rehearsed.iter().any(known) || stop.load(Ordering::Relaxed) {
                continue;
            }
            let path = path_of(bench, trial)?;
            self.change_to(bench, &path, &trial.settings)?;
            rehearsed.push(trial);
        }
        self.put_back(bench)
    }

    /// Makes these the settings in force, waits for links that lost their carrier, and pauses where anything changed; tells
    /// whether it did.
    ///
    /// # Errors
    /// A node's refusal.
    pub fn bring(
        &mut self,
        bench: &mut Bench,
        path: &Path,
        settings: &[SettingLevel],
        settle: Duration,
        stop: &AtomicBool,
    ) -> Result<bool, RunError> {
        let Some(flapped) = self.change_to(bench, path, settings)? else { return Ok(false) };
        let shortest = if flapped { PAUSE_AFTER_FLAP } else { SHORTEST_PAUSE };
        let end = Instant::now() + settle.max(shortest);
        while Instant::now() < end && !stop.load(Ordering::Relaxed) {
            std::thread::sleep(Duration::from_millis(10));
        }
        Ok(true)
    }

    /// Puts everything back on both nodes.
    ///
    /// # Errors
    /// A node fails, or a setting does not go back.
    pub fn put_back(&mut self, bench: &mut Bench) -> Result<(), RunError> {
        let mut outcome = Ok(());
        for side in SIDES {
            if self.of(side).take().is_none() {
                continue;
            }
            let node = bench.node(side);
            let restored = node.restore().map_err(RunError::from).and_then(|report| {
                let Some(not_back) = report.not_back.first() else { return Ok(()) };
                Err(RunError::NotPutBack { node: node.url().to_string(), what: not_back.to_string() })
            });
            outcome = outcome.and(restored);
        }
        outcome
    }

    /// Whether a link lost its carrier by the change; `None` where nothing changed.
    fn change_to(
        &mut self,
        bench: &mut Bench,
        path: &Path,
        settings: &[SettingLevel],
    ) -> Result<Option<bool>, RunError> {
        let mut changed = None;
        for side in SIDES {
            let wanted = wanted(side, path, settings)?;
            if *self.of(side) == wanted {
                continue;
            }
            let flapped = change(bench.node(side), self.of(side), wanted)?;
            changed = Some(changed.unwrap_or(false) | flapped);
        }
        Ok(changed)
    }

    fn of(&mut self, side: Side) -> &mut Wanted {
        match side {
            Side::Dut => &mut self.dut,
            Side::Peer => &mut self.peer,
        }
    }
}

fn change(node: &mut Node, in_force: &mut Wanted, wanted: Wanted) -> Result<bool, NodeError> {
    let (link, settings) = match (&wanted, &*in_force) {
        (Some((link, settings)), _) => (link.clone(), settings.clone()),
        (None, Some((link, _))) => (link.clone(), Vec::new()),
        (None, None) => return Ok(false),
    };
    // Noted first: a refusal half way leaves something to put back.
    *in_force = Some((link.clone(), Vec::new()));
    let applied = node.apply(&link, &settings)?;
    *in_force = wanted;
    Ok(applied.flapped)
}

/// One node's settings; `None` where it has none.
fn wanted(side: Side, path: &Path, settings: &[SettingLevel]) -> Result<Wanted, SettingError> {
    let own = match side {
        Side::Dut => "dut",
        Side::Peer => "peer",
    };
    let mut pairs = Vec::new();
    let mut first = None;
    for level in settings {
        let Some((node @ ("dut" | "peer" | "both"), key)) = level.key.split_once('.') else {
            return Err(SettingError::NoNode(level.key.clone()));
        };
        if node == own || node == "both" {
            first.get_or_insert(&level.key);
            pairs.push((key.to_owned(), level.value.clone()));
        }
    }
    let Some(key) = first else { return Ok(None) };
    let link = path.end(side).link.as_ref();
    let link = link.ok_or_else(|| SettingError::NoLink { key: key.clone(), side: own })?;
    Ok(Some((link.name.clone(), pairs)))
}
