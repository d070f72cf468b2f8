//! Qualifications in the history: a run each, without records.

use linerate_model::qualification::{Ended, QUALIFICATION_SCHEMA, Qualification};
use rusqlite::{Connection, OptionalExtension, params};

use crate::error::StoreError;
use crate::run::{RunInfo, RunOutcome, check_info};
use crate::store::{Store, insert_run};
use crate::time::nanoseconds;

impl Store {
    /// Enters a qualification as a run of its own, whole and ended.
    ///
    /// # Errors
    /// [`StoreError::RunExists`], [`StoreError::Invalid`] where it would not read back as it is, or SQLite's refusal.
    pub fn add_qualification(&mut self, qualification: &Qualification) -> Result<(), StoreError> {
        let object = || format!("qualification {}", qualification.run);
        let invalid = |reason| StoreError::Invalid { object: object(), reason };
        let text = serde_json::to_string(qualification).map_err(|cause| invalid(cause.to_string()))?;
        let row = Row::new(qualification, &text).map_err(invalid)?;
        let info = info(qualification);
        let started_ns = check_info(&info).map_err(invalid)?;
        if self.qualification_text(&info.id)?.is_some() {
            return Err(StoreError::RunExists(info.id));
        }
        let failed = self.failed(format!("store {}", object()));
        let transaction = self.write("store a qualification")?;
        let entered = insert_run(&transaction, &info, started_ns)
            .and_then(|()| row.insert(&transaction))
            .and_then(|()| {
                let ended = "UPDATE runs SET ended_at = ?2, outcome = ?3 WHERE id = ?1";
                let ended_at = jiff::Timestamp::now().to_string();
                transaction.execute(ended, params![info.id, ended_at, outcome(&qualification.ended).name()])
            })
            .and_then(|_| transaction.commit());
        entered.map_err(failed)
    }

    /// The qualification of the run that a reference names (see [`Store::resolve`]); `None` where that is a run of trials.
    ///
    /// # Errors
    /// As [`Store::resolve`], or [`StoreError::Damaged`].
    pub fn qualification(&self, reference: &str) -> Result<Option<Qualification>, StoreError> {
        let run = self.resolve(reference)?;
        let Some(text) = self.qualification_text(&run)? else { return Ok(None) };
        self.parse(&text, || format!("the qualification of run {run}")).map(Some)
    }

    pub(crate) fn qualification_text(&self, run: &str) -> Result<Option<String>, StoreError> {
        stored(&self.connection, run).map_err(self.failed(format!("read the qualification of run {run}")))
    }
}

/// The text of a run's qualification.
pub(crate) fn stored(connection: &Connection, run: &str) -> Result<Option<String>, rusqlite::Error> {
    let sql = "SELECT qualification FROM qualifications WHERE run = ?1";
    connection.query_row(sql, [run], |row| row.get(0)).optional()
}

/// What the history keeps of the run that it was.
pub(crate) fn info(qualification: &Qualification) -> RunInfo {
    RunInfo {
        id: qualification.run.clone(),
        started_at: qualification.started_at.clone(),
        command: qualification.command.clone(),
        linerate_version: qualification.dut.environment.linerate_version.clone(),
        plan_json: None,
        seed: qualification.seed,
    }
}

fn outcome(ended: &Ended) -> RunOutcome {
    match ended {
        Ended::Complete | Ended::StoppedOnFail => RunOutcome::Complete,
        Ended::Interrupted => RunOutcome::Interrupted,
        Ended::Lost(_) => RunOutcome::Failed,
    }
}

/// A row of `qualifications`.
pub(crate) struct Row<'a> {
    qualification: &'a Qualification,
    text: &'a str,
}

impl<'a> Row<'a> {
    /// # Errors
    /// Says why the text can't stand for the qualification.
    pub(crate) fn new(qualification: &'a Qualification, text: &'a str) -> Result<Self, String> {
        if qualification.schema != QUALIFICATION_SCHEMA {
            return Err(format!("its schema is '{:.64}'", qualification.schema));
        }
        if nanoseconds(&qualification.started_at).is_none() {
            return Err(format!("'{:.64}' is no RFC 3339 time", qualification.started_at));
        }
        let read_back: Option<Qualification> = serde_json::from_str(text).ok();
        if read_back.as_ref() != Some(qualification) {
            return Err("it would not read back as it is: a figure is no number".to_owned());
        }
        Ok(Self { qualification, text })
    }

    pub(crate) fn insert(&self, connection: &Connection) -> Result<(), rusqlite::Error> {
        let dut = &self.qualification.dut;
        let link = dut.environment.link.as_ref();
        let driver = link.and_then(|link| link.driver.as_ref());
        let cases = i64::try_from(self.qualification.cases.len()).unwrap_or(i64::MAX);
        let sql = "INSERT INTO qualifications (run, link, driver, kernel, machine, cases, qualification) \
                   VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)";
        let environment = &dut.environment;
        let row = params![
            self.qualification.run,
            dut.link,
            driver,
            environment.kernel,
            environment.host,
            cases,
            self.text
        ];
        connection.execute(sql, row).map(drop)
    }
}
