//! Records as tables for a terminal: one table for each kind of workload, then environment and hazards.

pub(crate) mod columns;
mod factors;
mod grid;
pub(crate) mod model;
mod notes;
pub(crate) mod rows;

use linerate_model::Record;
use linerate_model::units::total;
use linerate_model::workload::{Workload, WorkloadKind};

pub(crate) use self::columns::copied_percent;
use self::factors::{FactorUse, use_of};
use crate::environment::environment_lines;
use crate::hazards::hazard_lines;
use crate::numbers;
use crate::text::{Style, paint, wrap};
use crate::trial_text::{FACTORS, family_text};

/// How a table is to look.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TableOptions {
    /// Characters in a line. Tables are made for 80 and more; numbers are never broken to fit.
    pub width: usize,
    /// With escape sequences for colour.
    pub color: bool,
    /// Below each row: the evidence for what limited it.
    pub evidence: bool,
}

impl Default for TableOptions {
    fn default() -> Self {
        Self { width: 80, color: false, evidence: false }
    }
}

/// Records as text for a terminal: a row for each trial, in a table for each kind of workload (TCP streams, UDP streams,
/// request/response); the environment; the hazards. Ends with a newline; empty for no records.
///
/// Columns that are empty in all rows of a table are left out; columns that do not fit the width go to lines below the
/// rows.
pub fn table(records: &[Record], options: &TableOptions) -> String {
    if records.is_empty() {
        return String::new();
    }
    let mut sections = Vec::new();
    for kind in TableKind::ALL {
        // A shared kernel has other columns for CPU: such records get their own table.
        for shared in [true, false] {
            let of_kind: Vec<&Record> = records
                .iter()
                .filter(|r| TableKind::of(r) == kind && r.summary.cpu.shared.is_some() == shared)
                .collect();
            if !of_kind.is_empty() {
                sections.push(section(kind, &of_kind, options));
            }
        }
    }
    sections.push(environment_lines(records, options.width, options.color));
    sections.push(hazard_lines(records, options.width, options.color));
    sections.retain(|lines| !lines.is_empty());
    let mut text = sections.iter().map(|lines| lines.join("\n")).collect::<Vec<_>>().join("\n\n");
    text.push('\n');
    text
}

/// Which columns apply.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum TableKind {
    TcpStreams,
    UdpStreams,
    Transactions,
}

impl TableKind {
    /// Every kind, in the order shown.
    pub(crate) const ALL: [Self; 3] = [Self::TcpStreams, Self::UdpStreams, Self::Transactions];

    pub(crate) fn of(record: &Record) -> Self {
        match record.trial.workload.kind() {
            WorkloadKind::TcpStream | WorkloadKind::TcpReverse | WorkloadKind::TcpBidir => Self::TcpStreams,
            WorkloadKind::UdpStream => Self::UdpStreams,
            WorkloadKind::TcpRr | WorkloadKind::TcpCrr | WorkloadKind::UdpRr | WorkloadKind::Profile => {
                Self::Transactions
            }
        }
    }

    pub(crate) fn title(self) -> &'static str {
        match self {
            Self::TcpStreams => "TCP streams",
            Self::UdpStreams => "UDP streams",
            Self::Transactions => "request/response",
        }
    }
}

fn section(kind: TableKind, records: &[&Record], options: &TableOptions) -> Vec<String> {
    let rows = rows::rows(records);
    let mut lines = title(kind, records, options);
    lines.extend(grid::grid(kind, records, &rows, options));
    lines.extend(legend(kind, records, options));
    lines
}

fn title(kind: TableKind, records: &[&Record], options: &TableOptions) -> Vec<String> {
    wrap("", 2, &title_text(kind, records), options.width)
        .into_iter()
        .map(|line| paint(&line, Style::Bold, options.color))
        .collect()
}

/// The kind, with every factor that is the same in all rows and has no column of its own.
fn title_text(kind: TableKind, records: &[&Record]) -> String {
    let mut words = vec![kind.title().to_owned()];
    let family = records[0].trial.family;
    if records.iter().all(|r| r.trial.family == family) {
        words.push(family_text(family).to_owned());
    }
    for factor in FACTORS {
        let FactorUse::Constant { value, workloads } = use_of(factor, records) else { continue };
        let phrase = factor.phrase(&value);
        let names: Vec<&str> = workloads.iter().map(|kind| kind.name()).collect();
        let all = records.iter().all(|r| workloads.contains(&r.trial.workload.kind()));
        words.push(if all { phrase } else { format!("{phrase} ({})", names.join(" ")) });
    }
    words.join(", ")
}

fn legend(kind: TableKind, records: &[&Record], options: &TableOptions) -> Vec<String> {
    let text = legend_text(kind, records);
    if text.is_empty() {
        return Vec::new();
    }
    wrap("", 0, &text, options.width)
        .into_iter()
        .map(|line| paint(&line, Style::Dim, options.color))
        .collect()
}

/// What has to be said below a table; empty for nothing.
fn legend_text(kind: TableKind, records: &[&Record]) -> String {
    let mut sentences = Vec::new();
    if records[0].summary.cpu.shared.is_some() {
        sentences.push("both: the shared machine, counted once; dut*, peer*: traffic threads alone.");
    }
    let open_loop = |r: &&Record| match &r.trial.workload {
        Workload::TcpRr(w) => w.rate.is_some(),
        Workload::TcpCrr(w) => w.rate.is_some(),
        Workload::UdpRr(w) => w.rate.is_some(),
        _ => false,
    };
    if kind == TableKind::Transactions && records.iter().any(open_loop) {
        sentences.push("With a rate asked for, latency counts from when a request was due.");
    }
    let mut text = sentences.join(" ");
    let checked = |r: &&Record| r.summary.bad_bytes.is_some();
    if records.iter().any(checked) {
        let bad = total(records.iter().filter_map(|r| r.summary.bad_bytes));
        let bytes = total(records.iter().map(|r| notes::checked_bytes(r)));
        let verdict = format!(" verify: {bad} bad of {} bytes checked.", numbers::bytes(bytes));
        text += &verdict;
    }
    text
}
