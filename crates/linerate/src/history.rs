//! The history of runs, as commands use it.

use std::path::{Path, PathBuf};

use jiff::Timestamp;
use linerate_lab::plan::Plan;
use linerate_model::Record;
use linerate_model::experiment::LeftOut;
use linerate_store::{Filter, RunInfo, RunOutcome, Store, parse_time};
use serde::{Deserialize, Serialize};

use crate::asked::NodesAsked;
use crate::cli::{FilterArgs, StoreArgs};
use crate::failure::Failure;

/// What a run can go on with: who is asked to do what.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct StoredPlan {
    pub(crate) nodes: NodesAsked,
    pub(crate) plan: Plan,
}

/// Where a run is kept while it goes on.
pub(crate) struct Keeper {
    store: Option<Store>,
    /// The first record that could not be stored, with the reason.
    failure: Option<String>,
}

/// Opens the history that a command names, or the user's own.
pub(crate) fn open(db: Option<&Path>) -> Result<Store, Failure> {
    let path = path(db)?;
    Store::open(&path).map_err(Failure::node)
}

fn path(db: Option<&Path>) -> Result<PathBuf, Failure> {
    match db {
        Some(path) => Ok(path.to_owned()),
        None => linerate_store::default_path().map_err(Failure::node),
    }
}

/// The filter that options ask for.
pub(crate) fn filter(args: &FilterArgs) -> Result<Filter, Failure> {
    let now = Timestamp::now();
    let time = |text: &Option<String>| {
        text.as_deref().map(|t| parse_time(t, now)).transpose().map_err(Failure::usage)
    };
    Ok(Filter {
        tag: args.tag.clone(),
        link: args.link.clone(),
        driver: args.driver.clone(),
        kernel: args.kernel.clone(),
        machine: args.machine.clone(),
        workload: args.workload.as_deref().map(str::parse).transpose().map_err(Failure::usage)?,
        since: time(&args.since)?,
        until: time(&args.until)?,
        limit: args.limit,
    })
}

impl Keeper {
    /// Opens the history before the run, so that a run of hours does not end without a place to be. Where it was not asked
    /// for by name and there is no room for one (a user without a home), the run goes on without, and says so.
    pub(crate) fn open(args: &StoreArgs) -> Result<Self, Failure> {
        if args.no_store {
            return Ok(Self { store: None, failure: None });
        }
        match open(args.db.as_deref()) {
            Ok(store) => Ok(Self { store: Some(store), failure: None }),
            Err(error) if args.db.is_none() && args.tag.is_empty() => {
                eprintln!("linerate: the run is not kept: {error}");
                Ok(Self { store: None, failure: None })
            }
            Err(error) => Err(error),
        }
    }

    /// Enters a new run with its tags.
    pub(crate) fn begin(
        &self,
        run: &str,
        nodes: &NodesAsked,
        plan: &Plan,
        tags: &[String],
    ) -> Result<(), Failure> {
        let Some(store) = &self.store else { return Ok(()) };
        let plan_json = plan_json(nodes, plan)?;
        let info = RunInfo {
            id: run.to_owned(),
            started_at: Timestamp::now().to_string(),
            command: std::env::args_os().map(|word| word.to_string_lossy().into_owned()).collect(),
            linerate_version: env!("CARGO_PKG_VERSION").to_owned(),
            plan_json: Some(plan_json),
            seed: plan.seed,
        };
        store.begin_run(&info).map_err(Failure::node)?;
        tags.iter().try_for_each(|tag| store.tag(run, tag).map(drop)).map_err(Failure::usage)
    }

    /// Notes a plan that became known better, as [`Self::append`] notes a record.
    pub(crate) fn set_plan(&mut self, run: &str, nodes: &NodesAsked, plan: &Plan) {
        let Some(store) = &self.store else { return };
        let set = plan_json(nodes, plan)
            .and_then(|plan_json| store.set_plan(run, &plan_json).map_err(Failure::node));
        if let Err(error) = set {
            self.failure.get_or_insert_with(|| error.to_string());
        }
    }

    /// The plan of a run that is to go on, with what it has.
    pub(crate) fn resume(&self, reference: &str) -> Result<(String, StoredPlan, Vec<Record>), Failure> {
        let Some(store) = &self.store else { return Err(Failure::usage("--resume needs the history")) };
        let run = store.run(reference).map_err(Failure::usage)?;
        let id = run.info.id;
        let text = run
            .info
            .plan_json
            .ok_or_else(|| Failure::usage(format!("run {id} has no plan to go on with")))?;
        let plan = serde_json::from_str(&text)
            .map_err(|e| Failure::node(format!("the plan of run {id} can't be read: {e}")))?;
        let records = store.records(&id).map_err(Failure::node)?;
        Ok((id, plan, records))
    }

    /// Keeps a record. What can't be kept is told at the end; the run goes on, for its result can still be shown.
    pub(crate) fn append(&mut self, record: &Record) {
        let Some(store) = &self.store else { return };
        if let Err(error) = store.append(record) {
            self.failure.get_or_insert_with(|| error.to_string());
        }
    }

    /// Notes how the run ended; tells what could not be kept.
    pub(crate) fn end(&mut self, run: &str, outcome: RunOutcome) -> Result<(), Failure> {
        let Some(store) = &self.store else { return Ok(()) };
        if let Err(error) = store.end_run(run, outcome) {
            self.failure.get_or_insert_with(|| error.to_string());
        }
        self.failure
            .take()
            .map_or(Ok(()), |failure| Err(Failure::node(format!("the history lacks this: {failure}"))))
    }

    /// Whether runs are kept at all.
    pub(crate) fn keeps(&self) -> bool {
        self.store.is_some()
    }
}

/// What a run left out, as far as its plan tells.
pub(crate) fn left_out(run: &RunInfo) -> Vec<LeftOut> {
    let plan = run.plan_json.as_deref().and_then(|text| serde_json::from_str::<StoredPlan>(text).ok());
    plan.map(|stored| stored.plan.left_out).unwrap_or_default()
}

fn plan_json(nodes: &NodesAsked, plan: &Plan) -> Result<String, Failure> {
    let stored = StoredPlan { nodes: nodes.clone(), plan: plan.clone() };
    serde_json::to_string(&stored).map_err(|e| Failure::node(format!("store the plan: {e}")))
}
