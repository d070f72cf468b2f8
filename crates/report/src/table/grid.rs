//! Lays out a table so that it fits the width, and draws it.

use comfy_table::{Cell, CellAlignment, ContentArrangement, Table, presets};
use linerate_model::Record;

use super::columns::{Column, Content, columns};
use super::notes::notes;
use super::rows::Row;
use super::{TableKind, TableOptions};
use crate::text::{Style, paint, wrap};

/// How a table is squeezed.
#[derive(Debug, Clone, Copy)]
pub(super) struct Layout {
    /// Spaces between columns.
    gap: u16,
    /// Size and streams in one column.
    pub(super) merged_streams: bool,
    /// Limits with shorter names.
    pub(super) short_limits: bool,
    /// Columns up to this rank go to the lines below the rows.
    given_way: u8,
}

/// From roomy to tight: the first that fits is taken, or the last.
pub(super) const LAYOUTS: [Layout; 8] = [
    Layout { gap: 2, merged_streams: false, short_limits: false, given_way: 0 },
    Layout { gap: 1, merged_streams: false, short_limits: false, given_way: 0 },
    Layout { gap: 1, merged_streams: true, short_limits: false, given_way: 0 },
    Layout { gap: 1, merged_streams: true, short_limits: true, given_way: 0 },
    Layout { gap: 1, merged_streams: true, short_limits: true, given_way: 1 },
    Layout { gap: 1, merged_streams: true, short_limits: false, given_way: 2 },
    Layout { gap: 1, merged_streams: true, short_limits: false, given_way: 3 },
    Layout { gap: 1, merged_streams: true, short_limits: false, given_way: 4 },
];

/// The lines of a table: head, rows, and below each row what did not fit or needs words.
pub(super) fn grid(
    kind: TableKind,
    records: &[&Record],
    rows: &[Row<'_>],
    options: &TableOptions,
) -> Vec<String> {
    let mut drawn = Drawn::default();
    for layout in LAYOUTS {
        drawn = draw(columns(kind, records, layout, options.evidence), rows, layout);
        if drawn.width() <= options.width {
            break;
        }
    }
    let mut lines: Vec<String> =
        drawn.head.iter().map(|line| paint(line, Style::Bold, options.color)).collect();
    let mut below: Vec<String> = Vec::new();
    for ((row, line), given_way) in rows.iter().zip(&drawn.rows).zip(&drawn.given_way) {
        // The directions of a trial stand right below it; its notes come after them.
        if !matches!(row, Row::Direction(_)) {
            lines.append(&mut below);
        }
        lines.push(line.clone());
        for note in notes(row, given_way, options.evidence) {
            let wrapped = wrap("    ", 6, &note.text, options.width);
            below.extend(wrapped.into_iter().map(|l| paint(&l, note.style, options.color)));
        }
    }
    lines.append(&mut below);
    if !drawn.common.is_empty() {
        let text = format!("All: {}.", drawn.common.join(", "));
        lines.extend(
            wrap("", 2, &text, options.width).into_iter().map(|l| paint(&l, Style::Dim, options.color)),
        );
    }
    lines
}

#[derive(Default)]
struct Drawn {
    head: Vec<String>,
    rows: Vec<String>,
    /// For each row: the columns that gave way, as words.
    given_way: Vec<Vec<String>>,
    /// What those columns say of all rows alike.
    common: Vec<String>,
}

impl Drawn {
    fn width(&self) -> usize {
        self.head.iter().chain(&self.rows).map(|l| l.chars().count()).max().unwrap_or_default()
    }
}

fn draw(columns: Vec<Column<'_>>, rows: &[Row<'_>], layout: Layout) -> Drawn {
    let (gone, stays): (Vec<_>, Vec<_>) = columns
        .into_iter()
        .filter(|c| rows.iter().any(|row| !c.cell(row).is_empty()))
        .partition(|c| c.gives_way > 0 && c.gives_way <= layout.given_way);
    let (same, differ): (Vec<_>, Vec<_>) = gone.into_iter().partition(|c| common_note(c, rows).is_some());
    let common = same.iter().filter_map(|c| common_note(c, rows)).collect();
    let given_way = rows.iter().map(|row| differ.iter().filter_map(|c| c.note(row)).collect()).collect();
    let mut lines = text_lines(&stays, rows, layout.gap);
    let body = lines.split_off(lines.len().min(2));
    Drawn { head: lines, rows: body, given_way, common }
}

/// The words that a column would say below each row, where they are the same for all trials and there is more than one.
fn common_note(column: &Column<'_>, rows: &[Row<'_>]) -> Option<String> {
    if !matches!(column.content, Content::Text(_)) {
        return None;
    }
    let mut notes = rows.iter().filter(|row| matches!(row, Row::Trial(_))).map(|row| column.note(row));
    let first = notes.next()??;
    let rest: Vec<_> = notes.collect();
    (!rest.is_empty() && rest.iter().all(|note| note.as_ref() == Some(&first))).then_some(first)
}

/// Two head lines, then one line a row: no cell is ever broken.
fn text_lines(columns: &[Column<'_>], rows: &[Row<'_>], gap: u16) -> Vec<String> {
    let mut table = Table::new();
    table.load_style(presets::NOTHING).set_content_arrangement(ContentArrangement::Disabled);
    table.set_header(columns.iter().map(|c| Cell::new(format!("{}\n{}", c.head[0], c.head[1]))));
    for row in rows {
        table.add_row(columns.iter().map(|c| Cell::new(c.cell(row))));
    }
    for (index, (drawn, column)) in table.column_iter_mut().zip(columns).enumerate() {
        drawn.set_padding((if index == 0 { 0 } else { gap }, 0));
        drawn.set_cell_alignment(if column.is_left() { CellAlignment::Left } else { CellAlignment::Right });
    }
    table.to_string().lines().map(|line| line.trim_end().to_owned()).collect()
}
