//! The file's layout: who wrote it, its version, and the steps from each version to the next.
//!
//! To change the layout, append a step to [`MIGRATIONS`] and never edit one that was released; add a fixture of the
//! version left behind to `tests/fixtures`.

use std::path::Path;
use std::thread;
use std::time::{Duration, Instant};

use rusqlite::{Connection, ErrorCode, TransactionBehavior};

use crate::error::StoreError;

/// Step `n` leads from version `n` (0 is an empty file) to version `n + 1`.
const MIGRATIONS: &[&str] = &[include_str!("schema/v1.sql"), include_str!("schema/v2.sql")];

/// `application_id` of a history: "lrat" in ASCII.
const APPLICATION_ID: i64 = 0x6c72_6174;

/// How long one process waits for another's transaction.
const BUSY_LIMIT: Duration = Duration::from_secs(30);

/// Opens a file, makes it if need be, and brings it to the newest version.
///
/// # Errors
/// Names the file: not to be opened, another program's, or of a newer version.
pub(crate) fn open(path: &Path) -> Result<Connection, StoreError> {
    let mut connection = Connection::open(path).map_err(|cause| StoreError::sqlite("open", path, cause))?;
    let deadline = Instant::now() + BUSY_LIMIT;
    // SQLite doesn't call its busy handler where waiting could be a deadlock, as when two processes turn a new file to
    // WAL at once; here it can't be one, since nothing is held between two attempts.
    loop {
        match prepare(&mut connection, path, MIGRATIONS) {
            Err(error) if is_busy(&error) && Instant::now() < deadline => {
                thread::sleep(Duration::from_millis(10));
            }
            Err(error) => return Err(error),
            Ok(()) => return Ok(connection),
        }
    }
}

fn is_busy(error: &StoreError) -> bool {
    let StoreError::Sqlite { cause, .. } = error else { return false };
    matches!(cause.sqlite_error_code(), Some(ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked))
}

fn prepare(connection: &mut Connection, path: &Path, migrations: &[&str]) -> Result<(), StoreError> {
    let sqlite = |cause| StoreError::sqlite("open", path, cause);
    connection.busy_timeout(BUSY_LIMIT).map_err(sqlite)?;
    // Before anything is written: a file that is not ours stays as it is.
    check_version(connection, path, migrations.len())?;
    // FULL: a trial is on disk when `append` returns. A run stores a few records a minute, so its price is nothing.
    // Foreign keys are off for the migration, since a table that is dropped to be made anew would empty its children.
    let pragmas = "PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL; PRAGMA trusted_schema = OFF; PRAGMA foreign_keys = OFF;";
    connection.execute_batch(pragmas).map_err(sqlite)?;
    migrate(connection, path, migrations)?;
    connection.pragma_update(None, "foreign_keys", true).map_err(sqlite)
}

/// The file's version, where it is one that this program knows.
fn check_version(connection: &Connection, path: &Path, known: usize) -> Result<usize, StoreError> {
    // One statement, so that all three come from one state of the file while another process makes it.
    let state = "SELECT (SELECT application_id FROM pragma_application_id), \
                 (SELECT user_version FROM pragma_user_version), (SELECT count(*) FROM sqlite_schema)";
    let (application, found, objects) = connection
        .query_row(state, [], |row| Ok((row.get::<_, i64>(0)?, row.get::<_, i64>(1)?, row.get::<_, i64>(2)?)))
        .map_err(|cause| StoreError::sqlite("open", path, cause))?;
    let is_empty = application == 0 && found == 0 && objects == 0;
    if application != APPLICATION_ID && !is_empty {
        return Err(StoreError::Foreign { path: path.to_owned() });
    }
    let version = usize::try_from(found).ok().filter(|&version| version <= known);
    let known = i64::try_from(known).unwrap_or(i64::MAX);
    version.ok_or_else(|| StoreError::Newer { path: path.to_owned(), found, known })
}

/// All steps that are left, in one transaction: another process sees the old layout or the new one.
fn migrate(connection: &mut Connection, path: &Path, migrations: &[&str]) -> Result<(), StoreError> {
    if check_version(connection, path, migrations.len())? == migrations.len() {
        return Ok(());
    }
    let step = |cause| StoreError::sqlite("bring to the present schema", path, cause);
    let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate).map_err(step)?;
    // Again, now that no other process can be at it.
    let version = check_version(&transaction, path, migrations.len())?;
    for sql in &migrations[version..] {
        transaction.execute_batch(sql).map_err(step)?;
    }
    let target = i64::try_from(migrations.len()).unwrap_or(i64::MAX);
    transaction.pragma_update(None, "application_id", APPLICATION_ID).map_err(step)?;
    transaction.pragma_update(None, "user_version", target).map_err(step)?;
    transaction.commit().map_err(step)
}

#[cfg(test)]
mod tests {
    use super::*;

    const FIRST: &str = "CREATE TABLE t (a TEXT NOT NULL) STRICT; INSERT INTO t VALUES ('kept');";
    const SECOND: &str = "ALTER TABLE t ADD COLUMN b TEXT; UPDATE t SET b = a || '!';";
    const BROKEN: &str = "ALTER TABLE t ADD COLUMN c TEXT; UPDATE missing SET c = 1;";

    fn memory(migrations: &[&str]) -> Connection {
        let mut connection = Connection::open_in_memory().unwrap();
        prepare(&mut connection, Path::new("m"), migrations).unwrap();
        connection
    }

    fn version(connection: &Connection) -> i64 {
        connection.pragma_query_value(None, "user_version", |row| row.get(0)).unwrap()
    }

    #[test]
    fn each_step_is_taken_once_and_data_stay() {
        let mut connection = memory(&[FIRST]);
        assert_eq!(version(&connection), 1);
        for _ in 0..2 {
            prepare(&mut connection, Path::new("m"), &[FIRST, SECOND]).unwrap();
            assert_eq!(version(&connection), 2);
            let b: String = connection.query_row("SELECT b FROM t", [], |row| row.get(0)).unwrap();
            assert_eq!(b, "kept!");
        }
        let from_nothing = memory(&[FIRST, SECOND]);
        assert_eq!(version(&from_nothing), 2);
    }

    #[test]
    fn a_step_that_fails_leaves_the_old_layout() {
        let mut connection = memory(&[FIRST]);
        let error = prepare(&mut connection, Path::new("m"), &[FIRST, SECOND, BROKEN]).unwrap_err();
        assert!(error.to_string().starts_with("bring to the present schema in history m"), "{error}");
        assert_eq!(version(&connection), 1);
        assert!(connection.query_row("SELECT b FROM t", [], |_| Ok(())).is_err());
    }

    #[test]
    fn newer_and_foreign_files_are_refused_untouched() {
        let mut newer = memory(&[FIRST, SECOND]);
        let error = prepare(&mut newer, Path::new("m"), &[FIRST]).unwrap_err();
        assert!(matches!(error, StoreError::Newer { found: 2, known: 1, .. }), "{error}");
        newer.pragma_update(None, "user_version", -1).unwrap();
        assert!(matches!(prepare(&mut newer, Path::new("m"), &[FIRST]), Err(StoreError::Newer { .. })));

        let mut foreign = Connection::open_in_memory().unwrap();
        foreign.execute_batch("CREATE TABLE songs (title TEXT)").unwrap();
        assert!(matches!(prepare(&mut foreign, Path::new("m"), &[FIRST]), Err(StoreError::Foreign { .. })));
        assert_eq!(version(&foreign), 0);
    }

    #[test]
    fn a_history_of_version_1_lives_through_a_table_made_anew() {
        const ANEW: &str = "ALTER TABLE runs RENAME TO old; \
            CREATE TABLE runs (id TEXT PRIMARY KEY NOT NULL, started_ns INTEGER NOT NULL) STRICT; \
            INSERT INTO runs SELECT id, started_ns FROM old; DROP TABLE old;";
        let mut connection = Connection::open_in_memory().unwrap();
        let fixture = include_str!("../tests/store/fixtures/history-v1.sql");
        connection.execute_batch(fixture).unwrap();
        prepare(&mut connection, Path::new("m"), &[MIGRATIONS[0], ANEW]).unwrap();
        let count = "SELECT (SELECT count(*) FROM runs) + (SELECT count(*) FROM records) + (SELECT count(*) FROM tags)";
        assert_eq!(connection.query_row(count, [], |row| row.get(0)), Ok(3));
        let keys: bool = connection.pragma_query_value(None, "foreign_keys", |row| row.get(0)).unwrap();
        assert!(keys);
    }

    #[test]
    fn a_history_of_version_1_takes_qualifications_after_its_step() {
        let mut connection = Connection::open_in_memory().unwrap();
        connection.execute_batch(include_str!("../tests/store/fixtures/history-v1.sql")).unwrap();
        prepare(&mut connection, Path::new("m"), MIGRATIONS).unwrap();
        assert_eq!(version(&connection), 2);
        let count = "SELECT (SELECT count(*) FROM records) + (SELECT count(*) FROM qualifications)";
        assert_eq!(connection.query_row(count, [], |row| row.get(0)), Ok(1));
    }

    #[test]
    fn the_present_version_is_what_is_expected() {
        let connection = memory(MIGRATIONS);
        let tables = "SELECT group_concat(name, ' ') FROM (SELECT name FROM sqlite_schema WHERE type = 'table' ORDER BY 1)";
        let names: String = connection.query_row(tables, [], |row| row.get(0)).unwrap();
        assert_eq!(names, "qualifications records runs tags");
    }
}
