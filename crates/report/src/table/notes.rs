//! Lines below a row: what has no column, or no room in one.

use linerate_model::Record;
use linerate_model::record::Outcome;
use linerate_model::summary::LossSummary;
use linerate_model::trial::Amount;
use linerate_model::units::total;

use super::rows::{Row, spread};
use crate::numbers;
use crate::text::{Style, printable};

/// A line below a row.
pub(super) struct Note {
    pub(super) text: String,
    pub(super) style: Style,
}

/// The lines below a row, most serious first; `given_way` holds the columns that did not fit.
pub(super) fn notes(row: &Row<'_>, given_way: &[String], evidence: bool) -> Vec<Note> {
    let mut notes = Vec::new();
    match row {
        Row::Trial(record) => {
            notes.extend(interrupted(record).map(|text| Note { text, style: Style::Red }));
            notes.extend(bad_bytes(record).map(|text| Note { text, style: Style::Red }));
            notes.extend(
                record
                    .summary
                    .loss
                    .as_ref()
                    .and_then(|l| loss(l, evidence))
                    .map(|text| Note { text, style: Style::Yellow }),
            );
        }
        Row::Direction(_) => {}
        Row::Median(records) => {
            notes.extend(range(records).map(|text| Note { text, style: Style::Dim }));
        }
    }
    if !given_way.is_empty() {
        notes.push(Note { text: given_way.join(", "), style: Style::Dim });
    }
    if let (Row::Trial(record), true) = (row, evidence) {
        let text =
            format!("limited by {}: {}", record.limit.limiter.name(), printable(&record.limit.evidence));
        notes.push(Note { text, style: Style::Dim });
    }
    notes
}

/// Bytes that `--verify` compared at both ends.
pub(super) fn checked_bytes(record: &Record) -> u64 {
    let readings = [&record.dut.reading, &record.peer.reading];
    let checks = readings.into_iter().flat_map(|r| &r.streams).filter_map(|s| s.verify);
    total(checks.map(|v| v.checked_bytes))
}

fn interrupted(record: &Record) -> Option<String> {
    if record.outcome == Outcome::Complete {
        return None;
    }
    let after = numbers::time(record.dut.reading.window.duration_ns);
    Some(match record.trial.amount {
        Amount::DurationNs(asked) => format!("! interrupted after {after} of {}", numbers::time(asked)),
        Amount::Bytes(_) | Amount::Transactions(_) | Amount::Whole => format!("! interrupted after {after}"),
    })
}

fn bad_bytes(record: &Record) -> Option<String> {
    let bad = record.summary.bad_bytes.filter(|&n| n > 0)?;
    let ends = [("the dut", &record.dut.reading), ("the peer", &record.peer.reading)];
    let firsts = ends.into_iter().flat_map(|(end, reading)| {
        reading.streams.iter().filter_map(move |s| Some((end, s.index, s.verify?.first_bad_offset?)))
    });
    let places: Vec<String> = firsts
        .map(|(end, stream, offset)| format!("at {end} in stream {stream} at offset {offset}"))
        .collect();
    Some(format!("! {bad} bad bytes; first {}", places.join("; ")))
}

/// How many were lost, and where as far as counters tell; with the counters' names where evidence is wanted.
fn loss(loss: &LossSummary, evidence: bool) -> Option<String> {
    if loss.lost == 0 {
        return None;
    }
    let mut parts: Vec<String> = Vec::new();
    for p in &loss.places {
        let source = if evidence { format!(" [{}]", printable(&p.source)) } else { String::new() };
        parts.push(format!("{} at the {}{source}", p.packets, p.place.name()));
    }
    // Link counters see other traffic too: a rest says that much was lost unseen, none does not say that all was seen.
    let unseen = loss.lost.saturating_sub(total(loss.places.iter().map(|p| p.packets)));
    if unseen > 0 {
        parts.push(format!("{unseen} seen by no counter"));
    }
    Some(format!("lost {} of {}: {}", loss.lost, loss.sent, parts.join(", ")))
}

/// Least and most of what the table is about, over repeats.
fn range(records: &[&Record]) -> Option<String> {
    let count = records.len();
    if let Some(s) = spread(records.iter().filter_map(|r| r.summary.transactions_per_second)) {
        let [least, most] = [s.least, s.most].map(numbers::count);
        return Some(format!("{least}..{most} transactions/s (least..most of {count})"));
    }
    let s = spread(records.iter().map(|r| r.summary.goodput_bits_per_second))?;
    let unit = numbers::column_unit(&numbers::BIT_RATES, [s.least, s.most].into_iter());
    let [least, most] = [s.least, s.most].map(|v| unit.show(v));
    Some(format!("{least}..{most} {} (least..most of {count})", unit.name))
}
