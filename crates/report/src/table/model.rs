//! A table as data, for forms other than a terminal's: the same rows, columns and notes, with room for all of them.

use linerate_model::Record;

use super::columns::{Column, Content, columns};
use super::grid::LAYOUTS;
use super::notes::notes;
use super::rows::{Row, rows};
use super::{TableKind, legend_text, title_text};
use crate::trial_text::{FACTORS, default_word};

/// A table of one kind of workload.
pub(crate) struct TableModel {
    /// The kind, and what is the same in all rows.
    pub(crate) title: String,
    /// The columns.
    pub(crate) columns: Vec<ColumnModel>,
    /// The rows.
    pub(crate) rows: Vec<RowModel>,
    /// What has to be said below it; empty for nothing.
    pub(crate) legend: String,
}

/// A column.
pub(crate) struct ColumnModel {
    /// Its head in one line.
    pub(crate) head: String,
    /// Whether its cells stand to the left.
    pub(crate) is_left: bool,
}

/// A row.
pub(crate) struct RowModel {
    /// A median of the rows above, rather than a trial.
    pub(crate) is_median: bool,
    /// A part of the row above.
    pub(crate) is_direction: bool,
    /// A cell for each column.
    pub(crate) cells: Vec<String>,
    /// What has no column.
    pub(crate) notes: Vec<String>,
}

/// The tables of records, in the order of the terminal's.
pub(crate) fn tables(records: &[Record]) -> Vec<TableModel> {
    let mut tables = Vec::new();
    for kind in TableKind::ALL {
        for shared in [true, false] {
            let of_kind: Vec<&Record> = records
                .iter()
                .filter(|r| TableKind::of(r) == kind && r.summary.cpu.shared.is_some() == shared)
                .collect();
            if !of_kind.is_empty() {
                tables.push(table(kind, &of_kind));
            }
        }
    }
    tables
}

fn table(kind: TableKind, records: &[&Record]) -> TableModel {
    let rows = rows(records);
    let mut title = vec![title_text(kind, records)];
    let mut columns = columns(kind, records, LAYOUTS[0], false);
    columns.retain(|c| rows.iter().any(|row| !c.cell(row).is_empty()));
    columns.retain(|column| match constant(column, &rows) {
        Some(value) => {
            title.push(format!("{} {value}", column.head[1]));
            false
        }
        None => true,
    });
    let rows = rows.iter().map(|row| RowModel {
        is_median: matches!(row, Row::Median(_)),
        is_direction: matches!(row, Row::Direction(_)),
        cells: columns.iter().map(|c| cell(c, row)).collect(),
        notes: notes(row, &[], false).into_iter().map(|note| note.text).collect(),
    });
    TableModel {
        title: title.join(", "),
        rows: rows.collect(),
        columns: columns.iter().map(|c| ColumnModel { head: head(&c.head), is_left: c.is_left() }).collect(),
        legend: legend_text(kind, records).trim().to_owned(),
    }
}

/// The value of a column of words that says the same of several trials: it belongs in the title.
fn constant(column: &Column<'_>, rows: &[Row<'_>]) -> Option<String> {
    if !matches!(column.content, Content::Text(_)) || column.is_left() {
        return None;
    }
    let mut cells = rows.iter().filter(|row| matches!(row, Row::Trial(_))).map(|row| column.cell(row));
    let first = cells.next()?;
    let rest: Vec<String> = cells.collect();
    (!rest.is_empty() && rest.iter().all(|cell| *cell == first)).then_some(first)
}

/// A cell, with the word for a factor's default.
fn cell(column: &Column<'_>, row: &Row<'_>) -> String {
    let cell = column.cell(row);
    let is_factor = FACTORS.iter().any(|f| f.name == column.head[1]);
    if cell.is_empty() && is_factor && matches!(row, Row::Trial(_)) {
        return default_word(&column.head[1]).to_owned();
    }
    cell.trim().to_owned()
}

/// Two lines as one; a word broken over both is joined.
fn head(lines: &[String; 2]) -> String {
    match lines[0].strip_suffix('-') {
        Some(start) => format!("{start}{}", lines[1]),
        None if lines[1].starts_with('/') => lines.concat(),
        None => lines.join(" ").trim().to_owned(),
    }
}
