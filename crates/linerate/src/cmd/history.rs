//! `linerate history`: lists runs.

use linerate_model::exit::ExitCode;
use linerate_store::RunSummary;

use crate::cli::HistoryArgs;
use crate::failure::Failure;
use crate::history;
use crate::output::{print, printable};

pub(crate) fn run(args: HistoryArgs) -> Result<ExitCode, Failure> {
    let store = history::open(args.db.db.as_deref())?;
    let runs = store.runs(&history::filter(&args.filter)?).map_err(Failure::node)?;
    print(&table(&runs))?;
    Ok(ExitCode::Good)
}

/// A line for each run, newest first.
fn table(runs: &[RunSummary]) -> String {
    const HEAD: [&str; 8] = ["run", "begun (UTC)", "ended", "trials", "workloads", "link", "kernel", "tags"];
    if runs.is_empty() {
        return "No runs.\n".to_owned();
    }
    let mut rows = vec![HEAD.map(str::to_owned)];
    rows.extend(runs.iter().map(row));
    let widths: Vec<usize> =
        (0..HEAD.len()).map(|at| rows.iter().map(|r| r[at].chars().count()).max().unwrap_or(0)).collect();
    let line = |row: &[String; 8]| {
        let cells: Vec<String> =
            row.iter().zip(&widths).map(|(cell, width)| format!("{cell:<width$}")).collect();
        cells.join("  ").trim_end().to_owned() + "\n"
    };
    rows.iter().map(line).collect()
}

fn row(run: &RunSummary) -> [String; 8] {
    let ended = run.outcome.map_or("no", |outcome| outcome.name());
    let begun: String = run.info.started_at.replace('T', " ").chars().take(19).collect();
    let list = |words: &[String]| match words {
        [] => "-".to_owned(),
        [one, two, three, _, ..] => format!("{one},{two},{three},..."),
        few => few.join(","),
    };
    [
        run.info.id.chars().take(8).collect(),
        begun,
        ended.to_owned(),
        run.cases.unwrap_or(run.trials).to_string(),
        if run.cases.is_some() { "qualify".to_owned() } else { list(&run.workloads) },
        list(&run.links),
        list(&run.kernels),
        run.tags.join(","),
    ]
    .map(|cell| printable(&cell))
}
