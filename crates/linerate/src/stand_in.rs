//! Keeps what a stand-in observed in a file of records, as any other run of linerate's.
//!
//! The file holds a record a line and is one run: what comes later is added as its next trial, so that repeats of a test
//! gather in one file, to be compared with another.

use std::fs::File;
use std::io::{Read, Seek, SeekFrom, Write};
use std::path::Path;

use jiff::Timestamp;
use linerate_compat::observed::Observed;
use linerate_lab::join::{self, Joined, Place};
use linerate_lab::runner;
use linerate_model::environment::Environment;
use linerate_model::factor;
use linerate_model::record::{ClockSync, NodeRecord, Outcome, StandIn};
use linerate_model::trial::Side;
use linerate_model::{NodeUrl, Record};

/// Adds a record to a file.
///
/// # Errors
/// The file can't be read or written, or holds something else.
pub(crate) fn keep(path: &Path, observed: Observed) -> Result<(), String> {
    let mut file = File::options()
        .read(true)
        .write(true)
        .create(true)
        .truncate(false)
        .open(path)
        .map_err(|e| e.to_string())?;
    // Several tests of a server may end at once, and several clients may share a file.
    file.lock().map_err(|e| format!("lock: {e}"))?;
    let mut text = String::new();
    file.read_to_string(&mut text).map_err(|e| e.to_string())?;
    let earlier = if text.trim().is_empty() {
        Vec::new()
    } else {
        linerate_report::parse_json(&text).map_err(|e| e.to_string())?
    };
    let record = record(observed, &earlier)?;
    let line = serde_json::to_string(&record).map_err(|e| e.to_string())?;
    let separator = if text.is_empty() || text.ends_with('\n') { "" } else { "\n" };
    file.seek(SeekFrom::End(0)).map_err(|e| e.to_string())?;
    file.write_all(format!("{separator}{line}\n").as_bytes()).map_err(|e| e.to_string())
}

fn record(observed: Observed, earlier: &[Record]) -> Result<Record, String> {
    let Observed {
        tool,
        side,
        started_at_ns,
        mut trial,
        interrupted,
        environment,
        near,
        far,
        remote,
        shared_kernel,
    } = observed;
    let run = match earlier.last() {
        Some(last) => last.run.clone(),
        None => runner::run_id().map_err(|e| e.to_string())?,
    };
    let levels = factor::levels(&trial);
    let alike = |r: &&Record| factor::levels(&r.trial) == levels;
    let place_of = |r: &Record| r.combination.unwrap_or_default();
    trial.repeat = u32::try_from(earlier.iter().filter(alike).count()).unwrap_or(u32::MAX);
    let combination = match earlier.iter().find(alike) {
        Some(known) => place_of(known),
        None => earlier.iter().map(place_of).max().map_or(0, |last| last + 1),
    };
    let here = NodeRecord { node: NodeUrl::Local, environment, reading: near, guest: None };
    let there = NodeRecord {
        node: NodeUrl::Tcp { host: remote.0, port: remote.1 },
        environment: Environment::default(),
        reading: far,
        guest: None,
    };
    let (dut, peer) = if side == Side::Dut { (here, there) } else { (there, here) };
    Ok(join::record(Joined {
        run,
        sequence: earlier.iter().map(|r| r.sequence + 1).max().unwrap_or(0),
        place: Place { seed: 0, block: trial.repeat, combination },
        started_at: Timestamp::from_nanosecond(started_at_ns.into()).map_err(|e| e.to_string())?.to_string(),
        trial,
        outcome: if interrupted { Outcome::Interrupted } else { Outcome::Complete },
        dut,
        dut_further: Vec::new(),
        peers: vec![(peer, ClockSync::default())],
        shared_kernel,
        stand_in: Some(StandIn { tool: tool.to_owned(), side, command: words() }),
    }))
}

/// The command line behind the program's name.
fn words() -> Vec<String> {
    std::env::args_os().skip(1).map(|word| word.to_string_lossy().into_owned()).collect()
}
