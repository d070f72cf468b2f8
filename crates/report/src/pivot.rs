//! Experiments as tables that pivot by themselves: one factor is a column of rows, two are a grid, more are grouped.

mod cells;
mod layout;

use linerate_model::Record;
use linerate_model::factor;
use linerate_model::record::Outcome;

use self::layout::Layout;
use crate::environment::environment_lines;
use crate::hazards::hazard_lines;
use crate::table::TableOptions;
use crate::text::{Style, paint, printable, wrap};

/// What the rows and columns of a pivot table are to be; empty is as it fits.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct PivotOptions {
    /// Factors whose levels are the rows.
    pub rows: Vec<String>,
    /// Factor whose levels are the columns.
    pub cols: Option<String>,
}

/// A factor that the records do not vary.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("--rows, --cols: the run does not vary {factor}; it varies {}", if .varied.is_empty() { "nothing".to_owned() } else { .varied.join(", ") })]
pub struct NotVaried {
    /// What was asked for.
    pub factor: String,
    /// What there is.
    pub varied: Vec<String>,
}

/// The factors that take more than one level in these records, in the order of the help text. A factor that a workload
/// has no use for does not count as varied by it.
pub fn varied_factors(records: &[Record]) -> Vec<String> {
    let mut names: Vec<String> = Vec::new();
    for level in records.iter().flat_map(|r| factor::levels(&r.trial)) {
        if !names.contains(&level.factor) && layout::varies(records.iter(), &level.factor) {
            names.push(level.factor);
        }
    }
    names
}

/// Whether records read better as a pivot table than as a row for each trial: two factors or more beside workload and
/// IP version, or many repeats.
pub fn pivots(records: &[Record]) -> bool {
    let varied = varied_factors(records);
    let options = varied.iter().filter(|name| !matches!(name.as_str(), "workload" | "family")).count();
    let repeats = records.iter().filter_map(|r| r.block).max().unwrap_or_default() + 1;
    options >= 2 || repeats > 3
}

/// Records as pivot tables, with environment and hazards below. Each figure is the median of its complete repeats.
/// Ends with a newline; empty for no records.
///
/// # Errors
/// [`NotVaried`] where the options name a factor that takes one level only.
pub fn pivot(records: &[Record], pivot: &PivotOptions, options: &TableOptions) -> Result<String, NotVaried> {
    let varied = varied_factors(records);
    if let Some(unknown) = pivot.rows.iter().chain(&pivot.cols).find(|name| !varied.contains(name)) {
        return Err(NotVaried { factor: unknown.clone(), varied });
    }
    if records.is_empty() {
        return Ok(String::new());
    }
    let mut sections: Vec<Vec<String>> = Vec::new();
    for group in groups(records) {
        sections.extend(layout_of(&group, pivot).sections(options));
    }
    let interrupted = records.iter().filter(|r| r.outcome != Outcome::Complete).count();
    let mut words = "Each figure is the median of its repeats".to_owned();
    if interrupted > 0 {
        words += &format_count(interrupted);
    }
    sections.push(
        wrap("", 0, &(words + "."), options.width)
            .into_iter()
            .map(|line| paint(&line, Style::Dim, options.color))
            .collect(),
    );
    sections.push(environment_lines(records, options.width, options.color));
    sections.push(hazard_lines(records, options.width, options.color));
    sections.retain(|lines| !lines.is_empty());
    let text = sections.iter().map(|lines| lines.join("\n")).collect::<Vec<_>>().join("\n\n");
    Ok(text + "\n")
}

fn format_count(interrupted: usize) -> String {
    let trials = if interrupted == 1 { "trial is" } else { "trials are" };
    format!("; {interrupted} interrupted {trials} left out")
}

/// Records whose figures are of one kind: streams of TCP, of UDP, request/response; each kind of CPU columns by itself.
fn groups(records: &[Record]) -> Vec<Vec<&Record>> {
    let mut groups: Vec<((u8, bool), Vec<&Record>)> = Vec::new();
    for record in records {
        let kind = record.trial.workload.kind();
        let of = match (kind.is_transactional(), kind.is_udp()) {
            (true, _) => 2,
            (false, true) => 1,
            (false, false) => 0,
        };
        let key = (of, record.summary.cpu.shared.is_some());
        match groups.iter_mut().find(|(known, _)| *known == key) {
            Some((_, group)) => group.push(record),
            None => groups.push((key, vec![record])),
        }
    }
    groups.into_iter().map(|(_, group)| group).collect()
}

fn layout_of<'a>(records: &[&'a Record], pivot: &PivotOptions) -> Layout<'a> {
    Layout::new(records, pivot)
}

/// A line above a table.
fn heading(words: &[String], options: &TableOptions) -> Vec<String> {
    wrap("", 2, &printable(&words.join(", ")), options.width)
        .into_iter()
        .map(|line| paint(&line, Style::Bold, options.color))
        .collect()
}
