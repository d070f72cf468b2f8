//! What a command line names: a file of records, or a run of the history.

use std::path::Path;

use linerate_model::Record;
use linerate_model::experiment::LeftOut;
use linerate_model::qualification::Qualification;
use linerate_report::qualification::{is_qualification, parse_qualification};

use crate::failure::Failure;
use crate::history;

/// Records with what is known of their run.
pub(crate) struct Found {
    pub(crate) records: Vec<Record>,
    /// The command line that made them.
    pub(crate) command: Option<Vec<String>>,
    /// What the run left out.
    pub(crate) left_out: Vec<LeftOut>,
}

/// The records of a file, where there is one of that name, else of the run that the reference names.
pub(crate) fn records_of(reference: &str, db: Option<&Path>) -> Result<Found, Failure> {
    let path = Path::new(reference);
    if path.is_file() {
        let text = std::fs::read_to_string(path)
            .map_err(|e| Failure::usage(format!("read {}: {e}", path.display())))?;
        let records = linerate_report::parse_json(&text)
            .map_err(|e| Failure::usage(format!("{}: {e}", path.display())))?;
        return Ok(Found { records, command: None, left_out: Vec::new() });
    }
    let store = history::open(db)?;
    let run = store.run(reference).map_err(Failure::usage)?;
    let records = store.records(&run.info.id).map_err(Failure::node)?;
    let left_out = history::left_out(&run.info);
    Ok(Found { records, command: Some(run.info.command), left_out })
}

/// The qualification of a file or of the run that the reference names; none where that is something else.
pub(crate) fn qualification_of(reference: &str, db: Option<&Path>) -> Result<Option<Qualification>, Failure> {
    let path = Path::new(reference);
    if path.is_file() {
        let text = std::fs::read_to_string(path)
            .map_err(|e| Failure::usage(format!("read {}: {e}", path.display())))?;
        if !is_qualification(&text) {
            return Ok(None);
        }
        let read = parse_qualification(&text);
        return read.map(Some).map_err(|e| Failure::usage(format!("{}: {e}", path.display())));
    }
    let store = history::open(db)?;
    let run = store.resolve(reference).map_err(Failure::usage)?;
    store.qualification(&run).map_err(Failure::node)
}
