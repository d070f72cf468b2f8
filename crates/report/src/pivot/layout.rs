//! Which factors are rows and columns, and the tables that come of it.

use linerate_model::Record;
use linerate_model::factor;
use linerate_model::hazard::HazardKind;
use linerate_model::record::Outcome;

use super::cells::{Figure, figures, spread_percent};
use super::{PivotOptions, heading};
use crate::table::TableOptions;
use crate::text::printable;

/// One kind of records, laid out.
pub(super) struct Layout<'a> {
    records: Vec<&'a Record>,
    /// Factors that stand above the tables: a table for each combination of their levels.
    above: Vec<String>,
    rows: Vec<String>,
    cols: Option<String>,
}

/// Figures in a grid's cell, and in each further grid.
const IN_A_CELL: usize = 2;
/// Between columns.
const GAP: &str = "  ";

impl<'a> Layout<'a> {
    /// As asked for; else, of the factors that vary, the last but one is the rows, the last the columns, and those before
    /// stand above. A single one is the rows. Where most combinations did not run, all are rows.
    pub(super) fn new(records: &[&'a Record], pivot: &PivotOptions) -> Self {
        let varied: Vec<String> = varied(records);
        if pivot == &PivotOptions::default() && is_sparse(records, &varied) {
            return Self { records: records.to_vec(), above: Vec::new(), rows: varied, cols: None };
        }
        let asked = |name: &String| pivot.rows.contains(name) || pivot.cols.as_ref() == Some(name);
        let mut free: Vec<String> = varied.iter().filter(|name| !asked(name)).cloned().collect();
        let mut rows: Vec<String> = pivot.rows.iter().filter(|n| varied.contains(n)).cloned().collect();
        let mut cols = pivot.cols.clone().filter(|name| varied.contains(name));
        // Few levels make narrow columns; rows may be many.
        if cols.is_none() && (rows.is_empty() && free.len() >= 2 || !rows.is_empty() && free.len() == 1) {
            let level_count = |name: &String| levels_of(records.iter().copied(), name).len();
            let fewest = free.iter().enumerate().rev().min_by_key(|(_, n)| (is_heading(n), level_count(n)));
            cols = fewest.map(|(at, _)| at).map(|at| free.remove(at));
        }
        if rows.is_empty() {
            let most = free.iter().enumerate().rev().find(|(_, n)| !is_heading(n)).map(|(at, _)| at);
            rows.extend(most.or_else(|| free.len().checked_sub(1)).map(|at| free.remove(at)));
        }
        Self { records: records.to_vec(), above: free, rows, cols }
    }

    /// The lines of each table.
    pub(super) fn sections(&self, options: &TableOptions) -> Vec<Vec<String>> {
        let mut sections = Vec::new();
        for values in combinations(&self.records, &self.above) {
            let of = with_levels(&self.records, &self.above, &values);
            let title = title(&of, &self.above, &values);
            let mut lines = heading(&title, options);
            match &self.cols {
                None => lines.extend(self.rows_table(&of, options.width)),
                Some(cols) => lines.extend(self.grids(&of, cols, options.width)),
            }
            sections.push(lines);
        }
        sections
    }

    /// A row for each level, a column for each figure.
    fn rows_table(&self, records: &[&Record], width: usize) -> Vec<String> {
        let figures = figures(records);
        let mut head: Vec<[String; 2]> =
            self.rows.iter().map(|name| [String::new(), printable(name)]).collect();
        head.extend(figures.iter().map(|f| f.head.clone()));
        head.push(["".to_owned(), "repeats".to_owned()]);
        head.push(["spread".to_owned(), "%".to_owned()]);
        let mut rows = Vec::new();
        let together = self.in_words(records, width);
        if together {
            head.splice(..self.rows.len(), [[String::new(), "trial".to_owned()]]);
        }
        for values in combinations(records, &self.rows) {
            let repeats = complete(&with_levels(records, &self.rows, &values));
            let mut row: Vec<String> = values.iter().map(|v| printable(v)).collect();
            if together {
                row = vec![words(&self.rows, &values)];
            }
            row.extend(figures.iter().map(|f| f.cell(&repeats)));
            row.push(format!("{}{}", repeats.len(), mark(&repeats)));
            row.push(spread_percent(&repeats).map(|s| format!("±{s:.1}")).unwrap_or_default());
            rows.push(row);
        }
        let left = if together { 1 } else { self.rows.len() };
        lines(&head, rows, left, width)
    }

    /// Whether the columns of the levels would take more than half of the width: then one with words stands for them.
    fn in_words(&self, records: &[&Record], width: usize) -> bool {
        let of = |name: &String| {
            let levels = levels_of(records.iter().copied(), name);
            levels.iter().chain([name]).map(|text| text.chars().count()).max().unwrap_or(0) + 2
        };
        self.rows.len() > 1 && self.rows.iter().map(of).sum::<usize>() > width / 2
    }

    /// A grid for work with CPU, and one for each further figure.
    fn grids(&self, records: &[&Record], cols: &str, width: usize) -> Vec<String> {
        let figures = figures(records);
        let has = |f: &&Figure| records.iter().any(|r| !f.cell(&[r]).is_empty());
        let figures: Vec<&Figure> = figures.iter().filter(has).collect();
        let (main, rest) = figures.split_at(figures.len().min(IN_A_CELL));
        let mut lines = self.grid(records, cols, main, width);
        for figure in rest {
            lines.push(String::new());
            lines.extend(self.grid(records, cols, &[figure], width));
        }
        lines
    }

    fn grid(&self, records: &[&Record], cols: &str, figures: &[&Figure], width: usize) -> Vec<String> {
        let columns = levels_of(records.iter().copied(), cols);
        let names: Vec<String> = figures.iter().map(|f| f.name()).collect();
        let mut head: Vec<[String; 2]> =
            self.rows.iter().map(|name| [String::new(), printable(name)]).collect();
        head.extend(columns.iter().enumerate().map(|(at, level)| {
            let above = if at == 0 { printable(cols) } else { String::new() };
            [above, printable(level)]
        }));
        let mut rows = Vec::new();
        for values in combinations(records, &self.rows) {
            let of_row = with_levels(records, &self.rows, &values);
            let mut row: Vec<String> = values.iter().map(|v| printable(v)).collect();
            for level in &columns {
                let repeats =
                    complete(&with_levels(&of_row, &[cols.to_owned()], std::slice::from_ref(level)));
                let cells: Vec<String> = figures.iter().map(|f| f.cell(&repeats)).collect();
                let nothing = cells.iter().all(String::is_empty);
                row.push(if nothing { "-".to_owned() } else { cells.join("  ") + mark(&repeats) });
            }
            rows.push(row);
        }
        let mut all = vec![format!("{}:", names.join(", "))];
        all.extend(lines(&head, rows, self.rows.len(), width));
        all
    }
}

/// A row's levels in words, but for those that its trials leave as they were: `peers 4, dut.gro on`.
fn words(names: &[String], values: &[String]) -> String {
    let spoken = names.iter().zip(values).filter(|(_, value)| *value != "-");
    let words = spoken.map(|(name, value)| match name.as_str() {
        "workload" => value.clone(),
        "family" => format!("IPv{value}"),
        _ => format!("{name} {value}"),
    });
    printable(&words.collect::<Vec<_>>().join(", "))
}

/// Whether so many combinations of levels did not run that tables of them would be mostly empty.
fn is_sparse(records: &[&Record], varied: &[String]) -> bool {
    let count = |name: &String| combinations(records, std::slice::from_ref(name)).len();
    let product: usize = varied.iter().map(count).product();
    product > 2 * combinations(records, varied).len()
}

/// What tells workloads apart stands above rather than beside.
fn is_heading(name: &str) -> bool {
    matches!(name, "workload" | "family")
}

/// A mark for figures that the stop rule did not get narrow.
fn mark(repeats: &[&Record]) -> &'static str {
    let wide = |r: &&Record| r.hazards.iter().any(|h| h.kind == HazardKind::TooWide);
    if repeats.iter().any(wide) { " !" } else { "" }
}

fn complete<'a>(records: &[&'a Record]) -> Vec<&'a Record> {
    records.iter().filter(|r| r.outcome == Outcome::Complete).copied().collect()
}

fn varied(records: &[&Record]) -> Vec<String> {
    let mut names: Vec<String> = Vec::new();
    for level in records.iter().flat_map(|r| factor::levels(&r.trial)) {
        if !names.contains(&level.factor) && varies(records.iter().copied(), &level.factor) {
            names.push(level.factor);
        }
    }
    names
}

/// Whether a factor takes several levels. A setting that some trials leave as it was is varied too.
pub(super) fn varies<'a>(records: impl Iterator<Item = &'a Record> + Clone, name: &str) -> bool {
    let lacking = || records.clone().any(|r| factor::level(&r.trial, name).is_none());
    levels_of(records.clone(), name).len() > 1 || (name.contains('.') && lacking())
}

/// The levels of a factor in the order of the records; a workload that does not know it has none.
pub(super) fn levels_of<'a>(records: impl Iterator<Item = &'a Record>, name: &str) -> Vec<String> {
    let mut levels: Vec<String> = Vec::new();
    for record in records {
        if let Some(level) = factor::level(&record.trial, name).filter(|l| !levels.contains(l)) {
            levels.push(level);
        }
    }
    levels
}

/// The combinations of levels that occur, in the order of the records.
fn combinations(records: &[&Record], names: &[String]) -> Vec<Vec<String>> {
    let mut all: Vec<Vec<String>> = Vec::new();
    for record in records {
        let values = values(record, names);
        if !all.contains(&values) {
            all.push(values);
        }
    }
    all
}

fn values(record: &Record, names: &[String]) -> Vec<String> {
    names.iter().map(|name| factor::level(&record.trial, name).unwrap_or_else(|| "-".to_owned())).collect()
}

fn with_levels<'a>(records: &[&'a Record], names: &[String], levels: &[String]) -> Vec<&'a Record> {
    records.iter().filter(|r| values(r, names) == levels).copied().collect()
}

/// Workload, IP version and the levels above; then what is the same in all trials and not at its default.
fn title(records: &[&Record], above: &[String], values: &[String]) -> Vec<String> {
    let mut words = Vec::new();
    let all = levels_of(records.iter().copied(), "workload");
    words.push(all.join(" "));
    for (name, value) in above.iter().zip(values).filter(|(n, _)| *n != "workload") {
        words.push(if name == "family" { format!("IPv{value}") } else { format!("{name} {value}") });
    }
    for level in factor::levels(&records[0].trial) {
        let (name, value) = (level.factor.as_str(), level.value.as_str());
        let silent = name == "workload" || above.iter().any(|a| a == name);
        if silent || factor::is_plain(name, value) || varies(records.iter().copied(), name) {
            continue;
        }
        words.push(match (name, value) {
            ("family", value) => format!("IPv{value}"),
            (name, "true") => name.to_owned(),
            _ => format!("{name} {value}"),
        });
    }
    words
}

/// Columns as wide as their widest cell, the first `left` to the left; empty columns are left out. What does not fit beside
/// the others stands in a table of its own below, behind the first columns again.
fn lines(head: &[[String; 2]], rows: Vec<Vec<String>>, left: usize, width: usize) -> Vec<String> {
    let shown: Vec<usize> = (0..head.len()).filter(|&at| rows.iter().any(|r| !r[at].is_empty())).collect();
    let mut all: Vec<Vec<String>> =
        (0..2).map(|line| head.iter().map(|h| h[line].clone()).collect()).collect();
    all.extend(rows);
    let of = |at: usize| all.iter().map(|r| r[at].chars().count()).max().unwrap_or(0);
    let widths: Vec<usize> = (0..head.len()).map(of).collect();
    let (fixed, figures): (Vec<usize>, Vec<usize>) = shown.into_iter().partition(|&at| at < left);
    let taken: usize = fixed.iter().map(|&at| widths[at] + GAP.len()).sum();
    let mut tables: Vec<Vec<usize>> = Vec::new();
    let mut room = 0;
    for at in figures {
        let wanted = widths[at] + GAP.len();
        match tables.last_mut().filter(|_| wanted <= room) {
            Some(table) => table.push(at),
            None => {
                tables.push(fixed.iter().copied().chain([at]).collect());
                room = (width + GAP.len()).saturating_sub(taken);
            }
        }
        room = room.saturating_sub(wanted);
    }
    if tables.is_empty() {
        tables.push(fixed);
    }
    let mut lines: Vec<String> = Vec::new();
    for table in tables {
        if !lines.is_empty() {
            lines.push(String::new());
        }
        let cell = |row: &Vec<String>, at: usize| {
            let width = widths[at];
            if at < left { format!("{:<width$}", row[at]) } else { format!("{:>width$}", row[at]) }
        };
        let line = |row: &Vec<String>| {
            let cells: Vec<String> = table.iter().map(|&at| cell(row, at)).collect();
            cells.join(GAP).trim_end().to_owned()
        };
        lines.extend(
            all.iter()
                .map(line)
                .enumerate()
                .filter(|(at, text)| *at > 0 || !text.is_empty())
                .map(|(_, text)| text),
        );
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_wider_than_the_terminal_goes_on_below() {
        let head: Vec<[String; 2]> = (0..12).map(|at| [String::new(), format!("column {at}")]).collect();
        let rows = vec![(0..12).map(|at| format!("figure {at}")).collect::<Vec<_>>(); 2];
        let folded = lines(&head, rows.clone(), 1, 40);
        assert!(folded.iter().all(|line| line.chars().count() <= 40), "{folded:#?}");
        let told = folded.join("\n");
        assert!((1..12).all(|at| told.matches(&format!("figure {at}")).count() >= 2), "{told}");
        assert_eq!(folded.iter().filter(|line| line.starts_with("column 0")).count(), 4);
        assert_eq!(lines(&head, rows, 1, 200).len(), 3);
    }
}
