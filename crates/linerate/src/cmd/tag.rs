//! `linerate tag`: names runs.

use linerate_model::exit::ExitCode;

use crate::cli::TagArgs;
use crate::failure::Failure;
use crate::history;

pub(crate) fn run(args: TagArgs) -> Result<ExitCode, Failure> {
    let store = history::open(args.db.db.as_deref())?;
    let done = if args.remove { store.untag(&args.run, &args.tag) } else { store.tag(&args.run, &args.tag) };
    done.map_err(Failure::usage)?;
    Ok(ExitCode::Good)
}
