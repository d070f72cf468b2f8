//! Records to stdout and to files.

use std::io::{IsTerminal, Write};
use std::path::Path;

use linerate_model::Record;
use linerate_model::experiment::LeftOut;
use linerate_report::{PivotOptions, TableOptions};

use crate::cli::OutputArgs;
use crate::failure::Failure;

/// Shows records as the options ask, in the order of the plan; `as_experiment` prefers a pivot table.
pub(crate) fn show(
    records: &[Record],
    left_out: &[LeftOut],
    output: &OutputArgs,
    as_experiment: bool,
) -> Result<(), Failure> {
    let mut records = records.to_vec();
    records.sort_by_key(|r| (r.combination, r.block, r.sequence));
    if let Some(path) = &output.output {
        write_file(path, &linerate_report::json(&records))?;
    }
    if records.is_empty() && !output.json {
        return Ok(());
    }
    let mut text = text(&records, output, as_experiment)?;
    if !output.json && !output.csv && !left_out.is_empty() {
        let options = table_options(false);
        let lines = linerate_report::left_out_lines(left_out, options.width, options.color);
        text = format!("{text}\n{}\n", lines.join("\n"));
    }
    print(&text)
}

fn text(records: &[Record], output: &OutputArgs, as_experiment: bool) -> Result<String, Failure> {
    if output.json {
        return Ok(linerate_report::json(records));
    }
    if output.csv {
        return Ok(linerate_report::csv(records));
    }
    let options = table_options(output.explain);
    let asked = !output.rows.is_empty() || output.cols.is_some();
    // Evidence is told trial by trial.
    if asked || (!output.explain && (as_experiment || linerate_report::pivots(records))) {
        let pivot = PivotOptions { rows: output.rows.clone(), cols: output.cols.clone() };
        return linerate_report::pivot(records, &pivot, &options).map_err(Failure::usage);
    }
    Ok(linerate_report::table(records, &options))
}

/// Writes a result to stdout.
pub(crate) fn print(text: &str) -> Result<(), Failure> {
    let mut stdout = std::io::stdout().lock();
    let written = stdout.write_all(text.as_bytes()).and_then(|()| stdout.flush());
    match written {
        // Whoever reads has enough (`linerate run | head`).
        Err(error) if error.kind() == std::io::ErrorKind::BrokenPipe => Ok(()),
        other => other.map_err(|e| Failure::node(format!("write to stdout: {e}"))),
    }
}

/// How tables are to look on this terminal.
pub(crate) fn table_options(evidence: bool) -> TableOptions {
    let terminal = std::io::stdout().is_terminal();
    let width =
        if terminal { terminal_size::terminal_size().map(|(width, _)| usize::from(width.0)) } else { None };
    TableOptions { width: width.unwrap_or(80), color: false, evidence }
}

/// Writes a file.
pub(crate) fn write_file(path: &Path, text: &str) -> Result<(), Failure> {
    std::fs::write(path, text).map_err(|e| Failure::node(format!("write {}: {e}", path.display())))
}

/// A text of the history, which may come from a stranger, without characters that could steer a terminal.
pub(crate) fn printable(text: &str) -> String {
    text.chars().map(|c| if c.is_control() { ' ' } else { c }).collect()
}
