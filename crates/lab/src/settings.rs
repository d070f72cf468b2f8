//! The settings of trials: rehearsed before any traffic, in force while a trial runs, put back at the end.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use linerate_agent::node::{Node, NodeError};
use linerate_model::trial::{SettingLevel, Side, Trial};

use crate::bench::{Bench, NODE_KEY};
use crate::path::Path;
use crate::runner::RunError;

/// Shortest pause after a setting changed.
const SHORTEST_PAUSE: Duration = Duration::from_millis(200);
/// Shortest pause after a link lost its carrier meanwhile.
const PAUSE_AFTER_FLAP: Duration = Duration::from_secs(1);

/// A link with its keys and values, in the order in which they are set.
type Wanted = Option<(String, Vec<(String, String)>)>;

/// What is in force on all nodes.
#[derive(Debug)]
pub struct InForce(Vec<Seat>);

/// A node whose settings a run may change: the dut, or a peer.
#[derive(Debug)]
struct Seat {
    side: Side,
    /// Its pair; the dut is changed by the agent of the first.
    pair: usize,
    wanted: Wanted,
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
    /// Nothing is changed yet.
    pub fn of(bench: &Bench) -> Self {
        let seat = |side, pair| Seat { side, pair, wanted: None };
        let peers = (0..=bench.further.len()).map(|pair| seat(Side::Peer, pair));
        Self(std::iter::once(seat(Side::Dut, 0)).chain(peers).collect())
    }

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
            self.change_to(bench, trial)?;
            rehearsed.push(trial);
        }
        self.put_back(bench)
    }

    /// Makes a trial's settings those in force, waits for links that lost their carrier, and pauses where anything changed; tells
    /// whether it did.
    ///
    /// # Errors
    /// A node's refusal.
    pub fn bring(
        &mut self,
        bench: &mut Bench,
        trial: &Trial,
        settle: Duration,
        stop: &AtomicBool,
    ) -> Result<bool, RunError> {
        let Some(flapped) = self.change_to(bench, trial)? else { return Ok(false) };
        let shortest = if flapped { PAUSE_AFTER_FLAP } else { SHORTEST_PAUSE };
        let end = Instant::now() + settle.max(shortest);
        while Instant::now() < end && !stop.load(Ordering::Relaxed) {
            std::thread::sleep(Duration::from_millis(10));
        }
        Ok(true)
    }

    /// Puts everything back on all nodes.
    ///
    /// # Errors
    /// A node fails, or a setting does not go back.
    pub fn put_back(&mut self, bench: &mut Bench) -> Result<(), RunError> {
        let mut outcome = Ok(());
        for seat in &mut self.0 {
            if seat.wanted.take().is_none() {
                continue;
            }
            let Some(pair) = bench.pairs().nth(seat.pair) else { continue };
            let node = pair.node(seat.side);
            let restored = node.restore().map_err(RunError::from).and_then(|report| {
                let Some(not_back) = report.not_back.first() else { return Ok(()) };
                Err(RunError::NotPutBack { node: node.url().to_string(), what: not_back.to_string() })
            });
            outcome = outcome.and(restored);
        }
        outcome
    }

    /// Whether a link lost its carrier by the change; `None` where nothing changed.
    fn change_to(&mut self, bench: &mut Bench, trial: &Trial) -> Result<Option<bool>, RunError> {
        let mut changed = None;
        for seat in &mut self.0 {
            let Some(pair) = bench.pairs().nth(seat.pair) else { continue };
            let wanted = wanted(seat.side, pair.path(trial.family)?, &trial.settings)?;
            if seat.wanted == wanted {
                continue;
            }
            let flapped = change(pair.node(seat.side), &mut seat.wanted, wanted)?;
            changed = Some(changed.unwrap_or(false) | flapped);
        }
        Ok(changed)
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
    for level in settings.iter().filter(|level| level.key != NODE_KEY) {
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
