//! `linerate restore`: puts back what dead linerates left changed.

use clap::Args;
use linerate_agent::protocol::StaleOptions;
use linerate_link::restore::{Outcome, Restored};
use linerate_model::NodeUrl;
use linerate_model::exit::ExitCode;

use crate::failure::Failure;
use crate::layout::wrapped;
use crate::reach::{ReachArgs, print, print_json};

#[derive(Debug, Args)]
pub(crate) struct RestoreArgs {
    /// On which machine.
    #[arg(default_value = "local")]
    node: NodeUrl,
    /// Forget what can't be put back: remove the journals and change nothing.
    #[arg(long)]
    forget: bool,
    /// Print what was done as JSON.
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    reach: ReachArgs,
}

pub(crate) fn run(args: RestoreArgs) -> Result<ExitCode, Failure> {
    let mut node = args.reach.connect(&args.node)?;
    let restored = node.restore_stale(StaleOptions { forget: args.forget, wait: true })?;
    if args.json {
        print_json(&restored)?;
    } else {
        print(&text(&restored))?;
    }
    let complete = restored.iter().all(is_complete);
    Ok(if complete { ExitCode::Good } else { ExitCode::Node })
}

fn is_complete(restored: &Restored) -> bool {
    match &restored.outcome {
        Outcome::Done(report) => report.is_complete(),
        Outcome::Moot(_) | Outcome::InUse => true,
        Outcome::Failed(_) => false,
    }
}

fn text(all: &[Restored]) -> String {
    if all.is_empty() {
        return "nothing to put back\n".to_owned();
    }
    all.iter().flat_map(lines).map(|line| wrapped("", &line)).collect()
}

/// What became of a journal, a line each.
pub(crate) fn lines(restored: &Restored) -> Vec<String> {
    let netns = restored.netns.as_ref().map(|name| format!(" in netns {name}")).unwrap_or_default();
    let whose = format!("linerate with process id {} ({}{netns})", restored.owner, restored.links.join(", "));
    match &restored.outcome {
        Outcome::InUse => vec![format!("{whose}: still runs, left alone")],
        Outcome::Moot(why) => vec![format!("{whose}: nothing to put back, {why}")],
        Outcome::Failed(why) => vec![format!("{}: {why}", restored.journal)],
        Outcome::Done(report) if report.is_complete() && report.put_back.is_empty() => {
            vec![format!("{whose}: everything was as before")]
        }
        Outcome::Done(report) => {
            let back = report.put_back.iter().map(|one| {
                let value = |text: &str| if text.is_empty() { "there".to_owned() } else { text.to_owned() };
                format!("{whose}: {} was {}, is {} again", one.setting, value(&one.found), value(&one.before))
            });
            let not_back = report.not_back.iter().map(|one| format!("{whose}: NOT put back: {one}"));
            back.chain(not_back).collect()
        }
    }
}
