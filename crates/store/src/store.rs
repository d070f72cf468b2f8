//! The history, and what writes to it. What reads is in `find`, `series` and `transfer`.

use std::fs::DirBuilder;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};

use jiff::Timestamp;
use linerate_model::Record;
use linerate_model::record::RECORD_SCHEMA;
use rusqlite::{Connection, ErrorCode, Transaction, TransactionBehavior, params};

use crate::error::StoreError;
use crate::run::{RunInfo, RunOutcome, check_info, check_tag, is_id};
use crate::schema;
use crate::time::nanoseconds;

/// An open history. One per thread; any number of threads and processes at once.
#[derive(Debug)]
pub struct Store {
    pub(crate) connection: Connection,
    pub(crate) path: PathBuf,
}

impl Store {
    /// Opens a history; makes the file and its folders (for this user alone) where they are missing, and brings an
    /// older layout to the present one.
    ///
    /// # Errors
    /// Names the file, the reason and what to do: the folder can't be made, the file can't be opened, it is another
    /// program's, or a newer linerate wrote it ([`StoreError::Newer`]).
    pub fn open(path: &Path) -> Result<Self, StoreError> {
        if let Some(folder) = path.parent().filter(|folder| !folder.as_os_str().is_empty()) {
            DirBuilder::new()
                .recursive(true)
                .mode(0o700)
                .create(folder)
                .map_err(|cause| StoreError::Folder { folder: folder.to_owned(), cause })?;
        }
        Ok(Self { connection: schema::open(path)?, path: path.to_owned() })
    }

    /// The file.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Enters a run, before its first trial.
    ///
    /// # Errors
    /// [`StoreError::RunExists`], [`StoreError::Invalid`] where id or time are none, or SQLite's refusal.
    pub fn begin_run(&self, info: &RunInfo) -> Result<(), StoreError> {
        let object = || format!("run {}", info.id);
        let started_ns =
            check_info(info).map_err(|reason| StoreError::Invalid { object: object(), reason })?;
        insert_run(&self.connection, info, started_ns).map_err(|cause| {
            if is_duplicate(&cause) {
                return StoreError::RunExists(info.id.clone());
            }
            self.failed(format!("begin {}", object()))(cause)
        })
    }

    /// Changes the plan of a run, as JSON.
    ///
    /// # Errors
    /// [`StoreError::NoSuchRun`], or SQLite's refusal.
    pub fn set_plan(&self, run: &str, plan_json: &str) -> Result<(), StoreError> {
        let changed = self
            .connection
            .execute("UPDATE runs SET plan = ?2 WHERE id = ?1", params![run, plan_json])
            .map_err(self.failed(format!("store the plan of run {run}")))?;
        if changed == 0 { Err(StoreError::NoSuchRun(run.to_owned())) } else { Ok(()) }
    }

    /// Stores a trial; it is on disk when this returns. The run must have begun.
    ///
    /// # Errors
    /// [`StoreError::NoSuchRun`], [`StoreError::TrialExists`], [`StoreError::Invalid`] where the record would not read
    /// back as it is (a figure that is no number, say), or SQLite's refusal, as when the disk is full
    /// ([`StoreError::is_disk_full`]): then this trial alone is missing.
    pub fn append(&self, record: &Record) -> Result<(), StoreError> {
        let object = || format!("trial {} of run {}", record.sequence, record.run);
        let invalid = |reason| StoreError::Invalid { object: object(), reason };
        let text = serde_json::to_string(record).map_err(|cause| invalid(cause.to_string()))?;
        let read_back: Option<Record> = serde_json::from_str(&text).ok();
        if read_back.as_ref() != Some(record) {
            return Err(invalid("it would not read back as it is: a figure is no number".to_owned()));
        }
        let row = RecordRow::new(record, &text).map_err(invalid)?;
        row.insert(&self.connection).map_err(|cause| match extended_code(&cause) {
            Some(rusqlite::ffi::SQLITE_CONSTRAINT_FOREIGNKEY) => StoreError::NoSuchRun(record.run.clone()),
            _ if is_duplicate(&cause) => {
                StoreError::TrialExists { run: record.run.clone(), sequence: record.sequence }
            }
            _ => self.failed(format!("store {}", object()))(cause),
        })
    }

    /// Notes how a run ended, and when: now. A run that was resumed ends again.
    ///
    /// # Errors
    /// [`StoreError::NoSuchRun`], or SQLite's refusal.
    pub fn end_run(&self, run: &str, outcome: RunOutcome) -> Result<(), StoreError> {
        let ended_at = Timestamp::now().to_string();
        let changed = self
            .connection
            .execute(
                "UPDATE runs SET ended_at = ?2, outcome = ?3 WHERE id = ?1",
                params![run, ended_at, outcome.name()],
            )
            .map_err(self.failed(format!("end run {run}")))?;
        if changed == 0 { Err(StoreError::NoSuchRun(run.to_owned())) } else { Ok(()) }
    }

    /// Gives a run a tag; several runs may have the same. Returns the run's id.
    ///
    /// # Errors
    /// [`StoreError::BadTag`], a reference that names no run (see [`Store::resolve`]), or SQLite's refusal.
    pub fn tag(&self, reference: &str, name: &str) -> Result<String, StoreError> {
        check_tag(name)?;
        let run = self.resolve(reference)?;
        self.connection
            .execute("INSERT OR IGNORE INTO tags (run, name) VALUES (?1, ?2)", params![run, name])
            .map_err(self.failed(format!("tag run {run}")))?;
        Ok(run)
    }

    /// Takes a tag from a run. Returns the run's id.
    ///
    /// # Errors
    /// [`StoreError::NotTagged`], a reference that names no run, or SQLite's refusal.
    pub fn untag(&self, reference: &str, name: &str) -> Result<String, StoreError> {
        let run = self.resolve(reference)?;
        let removed = self
            .connection
            .execute("DELETE FROM tags WHERE run = ?1 AND name = ?2", params![run, name])
            .map_err(self.failed(format!("untag run {run}")))?;
        if removed == 0 { Err(StoreError::NotTagged { run, tag: name.to_owned() }) } else { Ok(run) }
    }

    /// Removes a run with its trials and tags. Returns its id and how many trials there were.
    ///
    /// # Errors
    /// A reference that names no run, or SQLite's refusal.
    pub fn remove(&mut self, reference: &str) -> Result<(String, u64), StoreError> {
        let run = self.resolve(reference)?;
        let failed = self.failed(format!("remove run {run}"));
        let remove = |connection: &mut Connection| {
            let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
            let trials = transaction.execute("DELETE FROM records WHERE run = ?1", [&run])?;
            transaction.execute("DELETE FROM runs WHERE id = ?1", [&run])?;
            transaction.commit()?;
            Ok(trials)
        };
        let trials = remove(&mut self.connection).map_err(failed)?;
        Ok((run, trials as u64))
    }

    /// Gives the room of removed runs back to the file system. Needs as much free disk as the file has.
    ///
    /// # Errors
    /// SQLite's refusal.
    pub fn vacuum(&self) -> Result<(), StoreError> {
        self.connection.execute_batch("VACUUM").map_err(self.failed("give back removed runs' room"))
    }

    /// Turns SQLite's refusal of an operation into an error that names the operation and the file.
    pub(crate) fn failed<T: Into<String>>(
        &self,
        operation: T,
    ) -> impl FnOnce(rusqlite::Error) -> StoreError + use<T> {
        let path = self.path.clone();
        move |cause| StoreError::sqlite(operation, &path, cause)
    }

    /// A transaction for writing, which waits for its turn at its begin rather than at its first write.
    pub(crate) fn write(&mut self, operation: &str) -> Result<Transaction<'_>, StoreError> {
        let failed = self.failed(operation);
        self.connection.transaction_with_behavior(TransactionBehavior::Immediate).map_err(failed)
    }
}

pub(crate) fn insert_run(
    connection: &Connection,
    info: &RunInfo,
    started_ns: i64,
) -> Result<(), rusqlite::Error> {
    let command = serde_json::Value::from(info.command.clone()).to_string();
    connection.execute(
        "INSERT INTO runs (id, started_at, started_ns, command, linerate_version, plan, seed) \
         VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)",
        params![
            info.id,
            info.started_at,
            started_ns,
            command,
            info.linerate_version,
            info.plan_json,
            info.seed.to_string()
        ],
    )?;
    Ok(())
}

/// A record with the columns by which it is found.
pub(crate) struct RecordRow<'a> {
    record: &'a Record,
    text: &'a str,
    started_ns: i64,
    trial: String,
    summary: String,
}

impl<'a> RecordRow<'a> {
    /// `text` is the record as JSON.
    ///
    /// # Errors
    /// Says why the record would not be found or understood again.
    pub(crate) fn new(record: &'a Record, text: &'a str) -> Result<Self, String> {
        if record.schema != RECORD_SCHEMA {
            return Err(format!("its layout is '{}', not '{RECORD_SCHEMA}'", record.schema));
        }
        if !is_id(&record.run) {
            return Err("its run is not 32 lower-case hex digits".to_owned());
        }
        let started_ns = nanoseconds(&record.started_at)
            .ok_or_else(|| format!("'{}' is no RFC 3339 time", record.started_at))?;
        let trial = serde_json::to_string(&record.trial).map_err(|cause| cause.to_string())?;
        let summary = serde_json::to_string(&record.summary).map_err(|cause| cause.to_string())?;
        Ok(Self { record, text, started_ns, trial, summary })
    }

    pub(crate) fn insert(&self, connection: &Connection) -> Result<(), rusqlite::Error> {
        let environment = &self.record.dut.environment;
        let link = environment.link.as_ref();
        let mut statement = connection.prepare_cached(
            "INSERT INTO records (run, sequence, started_ns, workload, link, driver, kernel, machine, trial, summary, \
             record) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11)",
        )?;
        statement.execute(params![
            self.record.run,
            self.record.sequence,
            self.started_ns,
            self.record.trial.workload.kind().name(),
            link.map(|link| &link.name),
            link.and_then(|link| link.driver.as_ref()),
            environment.kernel,
            environment.host,
            self.trial,
            self.summary,
            self.text,
        ])?;
        Ok(())
    }
}

fn is_duplicate(cause: &rusqlite::Error) -> bool {
    cause.sqlite_error_code() == Some(ErrorCode::ConstraintViolation)
        && extended_code(cause) == Some(rusqlite::ffi::SQLITE_CONSTRAINT_PRIMARYKEY)
}

fn extended_code(cause: &rusqlite::Error) -> Option<i32> {
    cause.sqlite_error().map(|error| error.extended_code)
}
