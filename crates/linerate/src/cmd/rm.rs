//! `linerate rm`: removes runs from the history.

use linerate_model::exit::ExitCode;

use crate::cli::RmArgs;
use crate::failure::Failure;
use crate::history;
use crate::output::print;

pub(crate) fn run(args: RmArgs) -> Result<ExitCode, Failure> {
    let mut store = history::open(args.db.db.as_deref())?;
    // All are looked up first: a slip in one name removes nothing.
    let ids: Vec<String> =
        args.runs.iter().map(|run| store.resolve(run)).collect::<Result<_, _>>().map_err(Failure::usage)?;
    for id in ids {
        let (run, trials) = store.remove(&id).map_err(Failure::node)?;
        print(&format!("removed run {run} with {trials} trials\n"))?;
    }
    store.vacuum().map_err(Failure::node)?;
    Ok(ExitCode::Good)
}
