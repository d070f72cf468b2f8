//! Taking the runs of a stranger's document into the history.

use std::path::Path;

use linerate_model::Record;
use linerate_model::qualification::Qualification;
use rusqlite::{Connection, OptionalExtension, params};
use serde_json::value::RawValue;

use crate::error::{ImportError, StoreError};
use crate::qualification;
use crate::run::{RunInfo, check_info, check_tag};
use crate::store::{RecordRow, insert_run};
use crate::time::nanoseconds;
use crate::transfer::{Imported, ImportedRun};

/// Imports within the caller's transaction, which must be given up after an error.
pub(crate) struct Importer<'a> {
    pub(crate) connection: &'a Connection,
    pub(crate) path: &'a Path,
    pub(crate) done: Imported,
}

impl Importer<'_> {
    /// # Errors
    /// See [`crate::Store::import`].
    pub(crate) fn run(&mut self, run: &ImportedRun<'_>) -> Result<(), StoreError> {
        let info = &run.info;
        let invalid = |reason| ImportError::Invalid { object: format!("run '{:.32}'", info.id), reason };
        let started_ns = check_info(info).map_err(invalid)?;
        match self.stored_info(&info.id)? {
            None => {
                insert_run(self.connection, info, started_ns).map_err(self.failed(&info.id))?;
                self.done.runs_added += 1;
            }
            Some(stored) if stored == RunColumns::of(info) => self.done.runs_known += 1,
            Some(_) => return Err(ImportError::Conflict(format!("run {}", info.id)).into()),
        }
        for (at, text) in run.records.iter().enumerate() {
            self.record(&info.id, at, text)?;
        }
        if let Some(text) = run.qualification {
            self.qualification(&info.id, text.get())?;
        }
        for tag in &run.tags {
            check_tag(tag)?;
            let sql = "INSERT OR IGNORE INTO tags (run, name) VALUES (?1, ?2)";
            self.connection.execute(sql, params![info.id, tag]).map_err(self.failed(&info.id))?;
        }
        self.end(run)
    }

    fn record(&mut self, run: &str, at: usize, text: &RawValue) -> Result<(), StoreError> {
        let object = || format!("record number {at} of run {run}");
        let text = text.get();
        let parsed = serde_json::from_str(text);
        let record: Record = parsed.map_err(|cause| ImportError::Syntax { object: object(), cause })?;
        let invalid = |reason| ImportError::Invalid { object: object(), reason };
        if record.run != run {
            return Err(invalid("it belongs to another run".to_owned()).into());
        }
        let sql = "SELECT record FROM records WHERE run = ?1 AND sequence = ?2";
        let stored: Option<String> = self
            .connection
            .query_row(sql, params![run, record.sequence], |row| row.get(0))
            .optional()
            .map_err(self.failed(run))?;
        let Some(stored) = stored else {
            let row = RecordRow::new(&record, text).map_err(invalid)?;
            row.insert(self.connection).map_err(self.failed(run))?;
            self.done.trials_added += 1;
            return Ok(());
        };
        // The text may have been laid out anew on its way; its content counts.
        if stored != text && serde_json::from_str::<Record>(&stored).ok().as_ref() != Some(&record) {
            return Err(ImportError::Conflict(format!("trial {} of run {run}", record.sequence)).into());
        }
        self.done.trials_known += 1;
        Ok(())
    }

    fn qualification(&self, run: &str, text: &str) -> Result<(), StoreError> {
        let object = || format!("the qualification of run {run}");
        let parsed = serde_json::from_str(text);
        let read: Qualification = parsed.map_err(|cause| ImportError::Syntax { object: object(), cause })?;
        let invalid = |reason| ImportError::Invalid { object: object(), reason };
        if read.run != run {
            return Err(invalid("it belongs to another run".to_owned()).into());
        }
        let Some(stored) = qualification::stored(self.connection, run).map_err(self.failed(run))? else {
            let row = qualification::Row::new(&read, text).map_err(invalid)?;
            return row.insert(self.connection).map_err(self.failed(run));
        };
        if stored != text && serde_json::from_str::<Qualification>(&stored).ok().as_ref() != Some(&read) {
            return Err(ImportError::Conflict(object()).into());
        }
        Ok(())
    }

    /// Notes how the run ended where the history doesn't know.
    fn end(&self, run: &ImportedRun<'_>) -> Result<(), StoreError> {
        let (Some(ended_at), Some(outcome)) = (&run.ended_at, run.outcome) else { return Ok(()) };
        let id = &run.info.id;
        if nanoseconds(ended_at).is_none() {
            let reason = format!("'{ended_at:.64}' is no RFC 3339 time");
            return Err(ImportError::Invalid { object: format!("the end of run {id}"), reason }.into());
        }
        let sql = "UPDATE runs SET ended_at = ?2, outcome = ?3 WHERE id = ?1 AND outcome IS NULL";
        self.connection.execute(sql, params![id, ended_at, outcome.name()]).map_err(self.failed(id))?;
        Ok(())
    }

    fn stored_info(&self, id: &str) -> Result<Option<RunColumns>, StoreError> {
        let sql = "SELECT started_at, command, seed FROM runs WHERE id = ?1";
        let read = |row: &rusqlite::Row<'_>| {
            Ok(RunColumns { started_at: row.get(0)?, command: row.get(1)?, seed: row.get(2)? })
        };
        self.connection.query_row(sql, [id], read).optional().map_err(self.failed(id))
    }

    fn failed<'a>(&'a self, run: &'a str) -> impl FnOnce(rusqlite::Error) -> StoreError + use<'a> {
        move |cause| StoreError::sqlite(format!("import run {run}"), self.path, cause)
    }
}

/// What tells one run from another of the same id.
#[derive(PartialEq, Eq)]
struct RunColumns {
    started_at: String,
    command: String,
    seed: String,
}

impl RunColumns {
    fn of(info: &RunInfo) -> Self {
        Self {
            started_at: info.started_at.clone(),
            command: serde_json::Value::from(info.command.clone()).to_string(),
            seed: info.seed.to_string(),
        }
    }
}
