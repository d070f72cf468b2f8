//! `linerate import`: runs of a document, or of a file of records, into the history.

use std::fs::File;
use std::io::BufReader;
use std::path::Path;

use linerate_model::Record;
use linerate_model::exit::ExitCode;
use linerate_model::qualification::Ended;
use linerate_model::trial::Side;
use linerate_store::{HISTORY_SCHEMA, MAX_IMPORT_BYTES, RunInfo, RunOutcome, Store};
use serde_json::json;

use crate::cli::ImportArgs;
use crate::failure::Failure;
use crate::history;
use crate::output::{print, printable};
use crate::references::qualification_of;

pub(crate) fn run(args: ImportArgs) -> Result<ExitCode, Failure> {
    let mut store = history::open(args.db.db.as_deref())?;
    for path in &args.files {
        let imported = if path == Path::new("-") {
            store.import(std::io::stdin().lock())
        } else {
            let read = |e| Failure::usage(format!("read {}: {e}", path.display()));
            if let Some(document) = qualification_document(path)? {
                store.import(document.as_bytes())
            } else {
                match records_of(path).map_err(read)? {
                    Some(records) => store.import(document(&store, &records)?.as_bytes()),
                    None => store.import(BufReader::new(File::open(path).map_err(read)?)),
                }
            }
        };
        // The reason may quote the file.
        let done =
            imported.map_err(|e| Failure::usage(printable(&format!("import {}: {e}", path.display()))))?;
        print(&format!(
            "{}: {} new runs with {} trials; {} runs and {} trials were there already\n",
            path.display(),
            done.runs_added,
            done.trials_added,
            done.runs_known,
            done.trials_known
        ))?;
    }
    Ok(ExitCode::Good)
}

/// The qualification of a file as the document that its export would be; none where it is something else.
fn qualification_document(path: &Path) -> Result<Option<String>, Failure> {
    let reference = path.to_string_lossy();
    let too_large = std::fs::metadata(path).is_ok_and(|found| found.len() > MAX_IMPORT_BYTES);
    if too_large || !path.is_file() {
        return Ok(None);
    }
    let Some(found) = qualification_of(&reference, None)? else { return Ok(None) };
    let outcome =
        if found.ended == Ended::Interrupted { RunOutcome::Interrupted } else { RunOutcome::Complete };
    let info = RunInfo {
        id: found.run.clone(),
        started_at: found.started_at.clone(),
        command: found.command.clone(),
        linerate_version: found.dut.environment.linerate_version.clone(),
        plan_json: None,
        seed: found.seed,
    };
    let run = json!({ "info": info, "ended_at": found.started_at, "outcome": outcome, "tags": [], "records": [],
                      "qualification": found });
    let document = json!({ "schema": HISTORY_SCHEMA, "runs": [run] });
    serde_json::to_string(&document).map(Some).map_err(|e| Failure::node(format!("make the document: {e}")))
}

/// The records of a file that holds nothing else; none where it is something else, or too large to be looked at.
fn records_of(path: &Path) -> std::io::Result<Option<Vec<Record>>> {
    if std::fs::metadata(path)?.len() > MAX_IMPORT_BYTES {
        return Ok(None);
    }
    let text = std::fs::read_to_string(path)?;
    Ok(linerate_report::parse_json(&text).ok().filter(|records| !records.is_empty()))
}

/// Records as the document that an export of their runs would be.
fn document(store: &Store, records: &[Record]) -> Result<String, Failure> {
    let mut ids: Vec<&str> = Vec::new();
    for record in records {
        if !ids.contains(&record.run.as_str()) {
            ids.push(&record.run);
        }
    }
    let runs: Vec<serde_json::Value> = ids
        .into_iter()
        .map(|id| {
            let those: Vec<&Record> = records.iter().filter(|r| r.run == id).collect();
            json!({
                "info": store.run(id).map_or_else(|_unknown| info(&those), |known| known.info),
                "ended_at": those.last().map(|r| &r.started_at),
                "outcome": RunOutcome::Complete,
                "tags": [],
                "records": those,
            })
        })
        .collect();
    let document = json!({ "schema": HISTORY_SCHEMA, "runs": runs });
    serde_json::to_string(&document).map_err(|e| Failure::node(format!("make the document: {e}")))
}

/// What the first record tells of its run.
fn info(records: &[&Record]) -> RunInfo {
    // Invariant: a run is known by its records, so there is one.
    let first = records[0];
    let stand_in = first.stand_in.as_ref();
    let node = match stand_in.map(|s| s.side) {
        Some(Side::Peer) => &first.peer,
        _ => &first.dut,
    };
    let words = stand_in.map(|s| s.command.clone()).unwrap_or_default();
    RunInfo {
        id: first.run.clone(),
        started_at: first.started_at.clone(),
        command: std::iter::once("linerate".to_owned()).chain(words).collect(),
        linerate_version: node.environment.linerate_version.clone(),
        plan_json: None,
        seed: first.seed.unwrap_or_default(),
    }
}
