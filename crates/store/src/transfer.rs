//! Runs out as one JSON document, and in again.
//!
//! The document is `{"schema": "linerate.history/1", "runs": [{"info", "ended_at", "outcome", "tags", "records"}]}`; each
//! record is the very text that was stored. A run that was a qualification has no records, but a `"qualification"`.

use std::io::{self, Read, Write};

use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use crate::error::{ImportError, StoreError};
use crate::find::column;
use crate::import::Importer;
use crate::run::{RunInfo, RunOutcome};
use crate::store::Store;

/// Name and version of the layout of an export.
pub const HISTORY_SCHEMA: &str = "linerate.history/1";

/// Largest file that [`Store::import`] takes: it is held in memory.
pub const MAX_IMPORT_BYTES: u64 = 1 << 30;

/// What an import did.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Imported {
    /// Runs that were new.
    pub runs_added: u64,
    /// Runs that were there already.
    pub runs_known: u64,
    /// Trials that were new.
    pub trials_added: u64,
    /// Trials that were there already, with the same content.
    pub trials_known: u64,
}

#[derive(Serialize)]
struct ExportedRun<'a> {
    info: &'a RunInfo,
    ended_at: Option<&'a str>,
    outcome: Option<RunOutcome>,
    tags: &'a [String],
    records: Vec<Box<RawValue>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    qualification: Option<Box<RawValue>>,
}

/// One run of a document; the records are checked one by one.
#[derive(Deserialize)]
pub(crate) struct ImportedRun<'a> {
    pub(crate) info: RunInfo,
    pub(crate) ended_at: Option<String>,
    pub(crate) outcome: Option<RunOutcome>,
    pub(crate) tags: Vec<String>,
    #[serde(borrow)]
    pub(crate) records: Vec<&'a RawValue>,
    #[serde(borrow, default)]
    pub(crate) qualification: Option<&'a RawValue>,
}

#[derive(Deserialize)]
struct Layout {
    schema: String,
}

#[derive(Deserialize)]
struct Document<'a> {
    #[serde(borrow)]
    runs: Vec<&'a RawValue>,
}

impl Store {
    /// Writes the runs that the references name (see [`Store::resolve`]), each once, as one JSON document. All come
    /// from one state of the history, whoever writes meanwhile. Returns how many runs were written.
    ///
    /// # Errors
    /// A reference that names no run (then nothing is written), the writer's refusal, or SQLite's.
    pub fn export(&self, references: &[&str], mut writer: impl Write) -> Result<u64, StoreError> {
        // Ends with its drop; nothing was changed.
        let _snapshot = self.connection.unchecked_transaction().map_err(self.failed("export"))?;
        let mut ids: Vec<String> = Vec::new();
        for reference in references {
            let id = self.resolve(reference)?;
            if !ids.contains(&id) {
                ids.push(id);
            }
        }
        let head = format!("{{\"schema\":\"{HISTORY_SCHEMA}\",\"runs\":[");
        write_all(&mut writer, &head, "the beginning")?;
        for (number, id) in ids.iter().enumerate() {
            let separator = if number == 0 { "\n" } else { ",\n" };
            write_all(&mut writer, separator, id)?;
            self.export_run(id, &mut writer)?;
        }
        write_all(&mut writer, "\n]}\n", "the end")?;
        let flushed = writer.flush();
        flushed.map_err(|cause| StoreError::Export { object: "the end".to_owned(), cause })?;
        Ok(ids.len() as u64)
    }

    fn export_run(&self, id: &str, writer: &mut impl Write) -> Result<(), StoreError> {
        let run = self.run(id)?;
        let sql = "SELECT record FROM records WHERE run = ?1 ORDER BY sequence";
        let texts = column(&self.connection, sql, &[&id]).map_err(self.failed(format!("read run {id}")))?;
        let raw = |text| {
            RawValue::from_string(text).map_err(|cause| StoreError::Damaged {
                object: format!("a trial of run {id}"),
                path: self.path.clone(),
                cause,
            })
        };
        let exported = ExportedRun {
            info: &run.info,
            ended_at: run.ended_at.as_deref(),
            outcome: run.outcome,
            tags: &run.tags,
            records: texts.into_iter().map(raw).collect::<Result<_, _>>()?,
            qualification: self.qualification_text(id)?.map(raw).transpose()?,
        };
        serde_json::to_writer(writer, &exported)
            .map_err(|cause| StoreError::Export { object: format!("run {id}"), cause: cause.into() })
    }

    /// Takes in a document that [`Store::export`] wrote, whole or not at all. What is there already with the same
    /// content is counted and left, so that importing twice does nothing; trials, tags and the end of a run that the
    /// history lacks are added.
    ///
    /// # Errors
    /// [`StoreError::Import`] with the place in the file: larger than [`MAX_IMPORT_BYTES`], not such a document, of a
    /// newer layout, values that can't be, or a run or trial that differs from the one of the same id. Or SQLite's refusal.
    pub fn import(&mut self, reader: impl Read) -> Result<Imported, StoreError> {
        self.import_at_most(reader, MAX_IMPORT_BYTES)
    }

    fn import_at_most(&mut self, reader: impl Read, limit: u64) -> Result<Imported, StoreError> {
        let text = read_at_most(reader, limit)?;
        let runs = split(&text)?;
        let failed = self.failed("import");
        let path = self.path.clone();
        let transaction = self.write("import")?;
        let mut importer = Importer { connection: &transaction, path: &path, done: Imported::default() };
        for run in runs {
            importer.run(&run)?;
        }
        let done = importer.done;
        transaction.commit().map_err(failed)?;
        Ok(done)
    }
}

fn write_all(writer: &mut impl Write, text: &str, object: &str) -> Result<(), StoreError> {
    let written = writer.write_all(text.as_bytes());
    written.map_err(|cause| StoreError::Export { object: object.to_owned(), cause })
}

fn read_at_most(reader: impl Read, limit: u64) -> Result<String, ImportError> {
    let mut bytes = Vec::new();
    let read = reader.take(limit.saturating_add(1)).read_to_end(&mut bytes)?;
    if read as u64 > limit {
        return Err(ImportError::TooLarge { limit });
    }
    String::from_utf8(bytes)
        .map_err(|cause| ImportError::Read(io::Error::new(io::ErrorKind::InvalidData, cause.utf8_error())))
}

/// The runs of a document. The layout is looked at first, so that a newer one is told as such.
fn split(text: &str) -> Result<Vec<ImportedRun<'_>>, ImportError> {
    let syntax = |object: String| move |cause| ImportError::Syntax { object, cause };
    let layout: Layout = serde_json::from_str(text).map_err(syntax("the file".to_owned()))?;
    if layout.schema != HISTORY_SCHEMA {
        let found = layout.schema.chars().take(64).collect();
        return Err(ImportError::Layout { found, known: HISTORY_SCHEMA });
    }
    let document: Document<'_> = serde_json::from_str(text).map_err(syntax("the file".to_owned()))?;
    let runs = document.runs.iter().enumerate();
    runs.map(|(at, run)| serde_json::from_str(run.get()).map_err(syntax(format!("run number {at}"))))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_over_the_limit_is_not_read_to_its_end() {
        let endless = io::repeat(b' ');
        assert!(matches!(read_at_most(endless, 1000), Err(ImportError::TooLarge { limit: 1000 })));
        assert_eq!(read_at_most(&b"12345"[..], 5).unwrap(), "12345");
        assert!(matches!(read_at_most(&b"\xff"[..], 5), Err(ImportError::Read(_))));
    }

    #[test]
    fn another_layout_is_told_before_anything_else() {
        let error = split(r#"{"runs": 7, "schema": "linerate.history/2"}"#).err().unwrap();
        let text = error.to_string();
        assert_eq!(text, "the layout is 'linerate.history/2', this linerate reads 'linerate.history/1'");
    }
}
