//! `linerate lab`: labs that are up.

use linerate_link::{LinkError, PrivateLab, lab};
use linerate_model::exit::ExitCode;

use crate::cli::{LabAction, LabArgs};
use crate::failure::Failure;

pub(crate) fn run(args: LabArgs) -> Result<ExitCode, Failure> {
    match args.action.unwrap_or(LabAction::List) {
        LabAction::List => list()?,
        LabAction::Remove { id } => lab::remove(&id).map_err(failure)?,
        LabAction::Hold => return hold(),
    }
    Ok(ExitCode::Good)
}

fn list() -> Result<(), Failure> {
    let labs = lab::list().map_err(failure)?;
    if labs.is_empty() {
        println!("no labs are up");
    }
    for lab in labs {
        let state = match (lab.owned, lab.kept) {
            (true, _) => "in use",
            (false, true) => "kept; remove with: linerate lab remove ",
            (false, false) => "left behind; the next run removes it, or: linerate lab remove ",
        };
        let id = if lab.owned { "" } else { lab.id.as_str() };
        println!("{}  {state}{id}", lab.id);
    }
    Ok(())
}

/// Waits for a signal: the namespaces of an ordinary user's lab live as long as a process is in them.
fn hold() -> Result<ExitCode, Failure> {
    let mut signals =
        signal_hook::iterator::Signals::new([signal_hook::consts::SIGTERM, signal_hook::consts::SIGINT])
            .map_err(|e| Failure::node(format!("handle signals: {e}")))?;
    signals.forever().next();
    PrivateLab::sweep_stale().map_err(failure)?;
    Ok(ExitCode::Good)
}

fn failure(error: LinkError) -> Failure {
    if error.is_forbidden() { Failure::permission(error) } else { Failure::node(error) }
}
