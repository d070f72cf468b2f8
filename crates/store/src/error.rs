//! Why the history could not be read or written, with the file and what to do.

use std::io;
use std::path::{Path, PathBuf};

use rusqlite::ErrorCode;

/// What went wrong with the history.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    /// Neither a variable nor the password database tells where the user's data belongs.
    #[error(
        "find the history: no $XDG_DATA_HOME, no $HOME, and user {uid} has no home in the password database; name a file with --db, or use --no-store"
    )]
    NoHome {
        /// The effective user.
        uid: u32,
    },
    /// The folder could not be made.
    #[error("make folder {} for the history: {cause}; name another file with --db, or use --no-store", folder.display())]
    Folder {
        /// The folder.
        folder: PathBuf,
        /// What the kernel said.
        cause: io::Error,
    },
    /// Written by a newer linerate.
    #[error("open history {}: its schema is version {found}, this linerate knows versions up to {known}; use the newer linerate, or name another file with --db", path.display())]
    Newer {
        /// The file.
        path: PathBuf,
        /// Its version.
        found: i64,
        /// The newest that this program knows.
        known: i64,
    },
    /// An SQLite database of another program.
    #[error("open history {}: it is an SQLite database of another program and was left as it is; name another file with --db", path.display())]
    Foreign {
        /// The file.
        path: PathBuf,
    },
    /// SQLite refused.
    #[error("{operation} in history {}: {cause}{}", path.display(), cure(cause))]
    Sqlite {
        /// What was to be done: `store trial 3 of run ...`.
        operation: String,
        /// The file.
        path: PathBuf,
        /// What SQLite said.
        cause: rusqlite::Error,
    },
    /// A reference that names no run.
    #[error("run '{0}': not in the history; `linerate history` lists what is there")]
    NoSuchRun(String),
    /// A prefix of more than one id.
    #[error("run '{reference}': {matches} runs begin like that; give more digits")]
    Ambiguous {
        /// What was given.
        reference: String,
        /// How many.
        matches: usize,
    },
    /// There is no run at all.
    #[error("run 'last': history {} has no run yet", path.display())]
    Empty {
        /// The file.
        path: PathBuf,
    },
    /// The run is there already.
    #[error("begin run {0}: the history has a run of that id")]
    RunExists(String),
    /// The trial is there already.
    #[error("store trial {sequence} of run {run}: the history has that trial")]
    TrialExists {
        /// The run.
        run: String,
        /// The trial's number.
        sequence: u32,
    },
    /// A run or record that would not be found or read again.
    #[error("{object}: {reason}")]
    Invalid {
        /// What: `run ...`, `trial 3 of run ...`.
        object: String,
        /// Why.
        reason: String,
    },
    /// A text that can't be a tag.
    #[error("tag '{0}': 1 to 64 letters, digits and ._:/+@-, no run id, and not 'last'")]
    BadTag(String),
    /// The run has no such tag.
    #[error("run {run} has no tag '{tag}'")]
    NotTagged {
        /// The run's id.
        run: String,
        /// The tag.
        tag: String,
    },
    /// What is stored can't be read as what it should be.
    #[error("{object} in history {}: {cause}", path.display())]
    Damaged {
        /// What.
        object: String,
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        cause: serde_json::Error,
    },
    /// Records match, but none has the figure.
    #[error("none of {records} matching records has {metric}; choose the workload, or another metric")]
    NoSuchFigure {
        /// The metric as it was asked for.
        metric: String,
        /// How many records were looked at.
        records: usize,
    },
    /// The export could not be written.
    #[error("export {object}: {cause}")]
    Export {
        /// What.
        object: String,
        /// What the writer said.
        cause: io::Error,
    },
    /// The import was refused; nothing of it was kept.
    #[error("import: {0}; nothing was imported")]
    Import(#[from] ImportError),
}

/// Why a file is no history.
#[derive(Debug, thiserror::Error)]
pub enum ImportError {
    /// It could not be read.
    #[error("read: {0}")]
    Read(#[from] io::Error),
    /// Too large to be held in memory.
    #[error("the file is larger than {limit} bytes; export fewer runs into one file")]
    TooLarge {
        /// The limit.
        limit: u64,
    },
    /// Not the JSON of an export.
    #[error("{object} is not as `linerate export` writes it: {cause}")]
    Syntax {
        /// Which part.
        object: String,
        /// What is wrong, and where.
        cause: serde_json::Error,
    },
    /// Written by a newer linerate, or something else altogether.
    #[error("the layout is '{found}', this linerate reads '{known}'")]
    Layout {
        /// What the file says.
        found: String,
        /// What is known.
        known: &'static str,
    },
    /// The history has something else under the same name.
    #[error("{0} is in the history already, and differs")]
    Conflict(String),
    /// A value that can't be.
    #[error("{object}: {reason}")]
    Invalid {
        /// Which part.
        object: String,
        /// Why.
        reason: String,
    },
}

impl StoreError {
    pub(crate) fn sqlite(operation: impl Into<String>, path: &Path, cause: rusqlite::Error) -> Self {
        Self::Sqlite { operation: operation.into(), path: path.to_owned(), cause }
    }

    /// Whether the disk, or the file's own limit, was full.
    pub fn is_disk_full(&self) -> bool {
        matches!(self, Self::Sqlite { cause, .. } if code(cause) == Some(ErrorCode::DiskFull))
    }
}

fn code(cause: &rusqlite::Error) -> Option<ErrorCode> {
    cause.sqlite_error_code()
}

/// What to do about SQLite's refusal, as the end of a sentence.
fn cure(cause: &rusqlite::Error) -> &'static str {
    match code(cause) {
        Some(ErrorCode::DiskFull) => {
            "; what was stored before is kept: free some room, or name another file with --db"
        }
        Some(ErrorCode::ReadOnly | ErrorCode::CannotOpen | ErrorCode::PermissionDenied) => {
            "; check the rights of the file and its folder, or name another file with --db"
        }
        Some(ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked) => {
            "; another process held it for more than 30 s: end that one, or name another file with --db"
        }
        Some(ErrorCode::NotADatabase) => "; name another file with --db",
        Some(ErrorCode::DatabaseCorrupt) => {
            "; move it away, and save what `sqlite3 FILE .recover` still reads"
        }
        _ => "",
    }
}
