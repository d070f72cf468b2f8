//! Finding runs and their records again.

use jiff::Timestamp;
use linerate_model::Record;
use linerate_model::workload::WorkloadKind;
use rusqlite::{Connection, OptionalExtension, Row, ToSql, named_params};

use crate::error::StoreError;
use crate::run::{RunInfo, RunOutcome, RunSummary, is_id_prefix};
use crate::store::Store;
use crate::time::bound;

/// What to look for; everything that is given must hold. `link`, `driver`, `kernel` and `machine` are those of the dut,
/// and may have `*`, `?` and `[...]` (SQLite's GLOB): `6.18*`. Upper and lower case differ.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Filter {
    /// A tag of the run.
    pub tag: Option<String>,
    /// Link under test.
    pub link: Option<String>,
    /// Driver of that link.
    pub driver: Option<String>,
    /// Kernel release.
    pub kernel: Option<String>,
    /// Host name.
    pub machine: Option<String>,
    /// Workload.
    pub workload: Option<WorkloadKind>,
    /// Begun then or later: the run, or for a series the trial. See [`crate::parse_time`].
    pub since: Option<Timestamp>,
    /// Begun before then.
    pub until: Option<Timestamp>,
    /// At most so many, the newest.
    pub limit: Option<usize>,
}

/// Holds for a record `c`; see [`Filter::bind`].
pub(crate) const RECORD_MATCHES: &str = "(:link IS NULL OR c.link GLOB :link) \
    AND (:driver IS NULL OR c.driver GLOB :driver) AND (:kernel IS NULL OR c.kernel GLOB :kernel) \
    AND (:machine IS NULL OR c.machine GLOB :machine) AND (:workload IS NULL OR c.workload = :workload)";

impl Filter {
    /// Calls `query` with the parameters of [`RECORD_MATCHES`] and `:tag`, `:since`, `:until`, `:limit`.
    pub(crate) fn bind<T>(&self, query: impl FnOnce(&[(&str, &dyn ToSql)]) -> T) -> T {
        let workload = self.workload.map(WorkloadKind::name);
        let limit = self.limit.map_or(-1, |limit| i64::try_from(limit).unwrap_or(i64::MAX));
        query(named_params! {
            ":tag": self.tag,
            ":link": self.link,
            ":driver": self.driver,
            ":kernel": self.kernel,
            ":machine": self.machine,
            ":workload": workload,
            ":since": self.since.map(bound),
            ":until": self.until.map(bound),
            ":limit": limit,
        })
    }

    /// Whether a record is needed for a run to match.
    fn looks_at_records(&self) -> bool {
        let texts = [&self.link, &self.driver, &self.kernel, &self.machine];
        self.workload.is_some() || texts.iter().any(|text| text.is_some())
    }
}

const RUN_COLUMNS: &str =
    "r.id, r.started_at, r.command, r.linerate_version, r.plan, r.seed, r.ended_at, r.outcome";

impl Store {
    /// The runs of which at least one trial matches, newest first. A run without trials matches where nothing is asked
    /// of trials.
    ///
    /// # Errors
    /// SQLite's refusal, or [`StoreError::Damaged`].
    pub fn runs(&self, filter: &Filter) -> Result<Vec<RunSummary>, StoreError> {
        let trials = if filter.looks_at_records() {
            // A qualification has the same columns, but no workload.
            format!(
                "(EXISTS (SELECT 1 FROM records c WHERE c.run = r.id AND {RECORD_MATCHES}) \
                 OR EXISTS (SELECT 1 FROM (SELECT *, NULL AS workload FROM qualifications) c \
                 WHERE c.run = r.id AND {RECORD_MATCHES}))"
            )
        } else {
            // Names the parameters that are bound in any case.
            "coalesce(:link, :driver, :kernel, :machine, :workload) IS NULL".to_owned()
        };
        let sql = format!(
            "SELECT {RUN_COLUMNS} FROM runs r \
             WHERE (:tag IS NULL OR EXISTS (SELECT 1 FROM tags t WHERE t.run = r.id AND t.name = :tag)) \
             AND (:since IS NULL OR r.started_ns >= :since) AND (:until IS NULL OR r.started_ns < :until) AND {trials} \
             ORDER BY r.started_ns DESC, r.rowid DESC LIMIT :limit"
        );
        let rows = filter
            .bind(|parameters| {
                let mut statement = self.connection.prepare(&sql)?;
                statement.query_map(parameters, RunRow::read)?.collect::<Result<Vec<_>, _>>()
            })
            .map_err(self.failed("list runs"))?;
        rows.into_iter().map(|row| self.summarize(row)).collect()
    }

    /// The run that a reference names; see [`Store::resolve`].
    ///
    /// # Errors
    /// As [`Store::resolve`], or [`StoreError::Damaged`].
    pub fn run(&self, reference: &str) -> Result<RunSummary, StoreError> {
        let id = self.resolve(reference)?;
        let sql = format!("SELECT {RUN_COLUMNS} FROM runs r WHERE r.id = ?1");
        let row = self
            .connection
            .query_row(&sql, [&id], RunRow::read)
            .map_err(self.failed(format!("read run {id}")))?;
        self.summarize(row)
    }

    /// The id of the run that a reference names: `last`, an id, a tag (of several runs, the newest), or the beginning
    /// of an id, four digits or more, that no other run shares.
    ///
    /// # Errors
    /// [`StoreError::NoSuchRun`], [`StoreError::Ambiguous`], [`StoreError::Empty`], or SQLite's refusal.
    pub fn resolve(&self, reference: &str) -> Result<String, StoreError> {
        let ids = |sql: &str, parameters: &[&dyn ToSql]| {
            column(&self.connection, sql, parameters).map_err(self.failed(format!("find run '{reference}'")))
        };
        let newest = "ORDER BY r.started_ns DESC, r.rowid DESC LIMIT 1";
        if reference == "last" {
            let last = ids(&format!("SELECT r.id FROM runs r {newest}"), &[])?.pop();
            return last.ok_or_else(|| StoreError::Empty { path: self.path.clone() });
        }
        let exact = ids("SELECT id FROM runs WHERE id = ?1", &[&reference])?;
        let tagged =
            format!("SELECT r.id FROM tags t JOIN runs r ON r.id = t.run WHERE t.name = ?1 {newest}");
        let named = exact.into_iter().chain(ids(&tagged, &[&reference])?).next();
        if let Some(id) = named {
            return Ok(id);
        }
        if !is_id_prefix(reference) {
            return Err(StoreError::NoSuchRun(reference.to_owned()));
        }
        let prefixed = ids("SELECT id FROM runs WHERE id GLOB ?1 || '*'", &[&reference])?;
        match <[String; 1]>::try_from(prefixed) {
            Ok([id]) => Ok(id),
            Err(none) if none.is_empty() => Err(StoreError::NoSuchRun(reference.to_owned())),
            Err(several) => {
                Err(StoreError::Ambiguous { reference: reference.to_owned(), matches: several.len() })
            }
        }
    }

    /// The trials of the run that a reference names, in the order run.
    ///
    /// # Errors
    /// As [`Store::resolve`], or [`StoreError::Damaged`].
    pub fn records(&self, reference: &str) -> Result<Vec<Record>, StoreError> {
        let run = self.resolve(reference)?;
        let texts =
            column(&self.connection, "SELECT record FROM records WHERE run = ?1 ORDER BY sequence", &[&run])
                .map_err(self.failed(format!("read the trials of run {run}")))?;
        let parse = |text: &String| self.parse(text, || format!("a trial of run {run}"));
        texts.iter().map(parse).collect()
    }

    pub(crate) fn parse<'a, T: serde::Deserialize<'a>>(
        &self,
        text: &'a str,
        object: impl FnOnce() -> String,
    ) -> Result<T, StoreError> {
        let damaged = |cause| StoreError::Damaged { object: object(), path: self.path.clone(), cause };
        serde_json::from_str(text).map_err(damaged)
    }

    fn summarize(&self, row: RunRow) -> Result<RunSummary, StoreError> {
        let id = row.id;
        let command = self.parse(&row.command, || format!("the command of run {id}"))?;
        let seed = self.parse(&row.seed, || format!("the seed of run {id}"))?;
        let read =
            |sql: &str| column(&self.connection, sql, &[&id]).map_err(self.failed(format!("read run {id}")));
        let distinct = |name: &str| {
            read(&format!(
                "SELECT DISTINCT {name} FROM records WHERE run = ?1 AND {name} IS NOT NULL ORDER BY 1"
            ))
        };
        let distinct_in_all = |name: &str| {
            read(&format!(
                "SELECT {name} FROM records WHERE run = ?1 AND {name} IS NOT NULL \
                 UNION SELECT {name} FROM qualifications WHERE run = ?1 AND {name} IS NOT NULL ORDER BY 1"
            ))
        };
        let count = "SELECT count(*) FROM records WHERE run = ?1";
        let trials: i64 = self
            .connection
            .query_row(count, [&id], |row| row.get(0))
            .map_err(self.failed(format!("count the trials of run {id}")))?;
        let cases: Option<i64> = self
            .connection
            .query_row("SELECT cases FROM qualifications WHERE run = ?1", [&id], |row| row.get(0))
            .optional()
            .map_err(self.failed(format!("count the cases of run {id}")))?;
        Ok(RunSummary {
            cases: cases.map(i64::unsigned_abs),
            ended_at: row.ended_at,
            outcome: row.outcome.as_deref().and_then(RunOutcome::from_name),
            tags: read("SELECT name FROM tags WHERE run = ?1 ORDER BY 1")?,
            trials: trials.unsigned_abs(),
            workloads: distinct("workload")?,
            links: distinct_in_all("link")?,
            drivers: distinct_in_all("driver")?,
            kernels: distinct_in_all("kernel")?,
            machines: distinct_in_all("machine")?,
            info: RunInfo {
                id,
                started_at: row.started_at,
                command,
                linerate_version: row.linerate_version,
                plan_json: row.plan,
                seed,
            },
        })
    }
}

/// The first column of every row, as text.
pub(crate) fn column(
    connection: &Connection,
    sql: &str,
    parameters: &[&dyn ToSql],
) -> Result<Vec<String>, rusqlite::Error> {
    connection.prepare_cached(sql)?.query_map(parameters, |row| row.get(0))?.collect()
}

struct RunRow {
    id: String,
    started_at: String,
    command: String,
    linerate_version: String,
    plan: Option<String>,
    seed: String,
    ended_at: Option<String>,
    outcome: Option<String>,
}

impl RunRow {
    /// Reads [`RUN_COLUMNS`].
    fn read(row: &Row<'_>) -> Result<Self, rusqlite::Error> {
        Ok(Self {
            id: row.get(0)?,
            started_at: row.get(1)?,
            command: row.get(2)?,
            linerate_version: row.get(3)?,
            plan: row.get(4)?,
            seed: row.get(5)?,
            ended_at: row.get(6)?,
            outcome: row.get(7)?,
        })
    }
}
