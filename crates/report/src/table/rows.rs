//! Rows of a table: trials with their repeats together, the directions of a bidirectional trial, and medians.

use linerate_model::Record;
use linerate_model::record::Outcome;
use linerate_model::summary::Direction;
use linerate_model::trial::Trial;
use linerate_model::workload::WorkloadKind;

/// A row.
pub(super) enum Row<'a> {
    /// A trial.
    Trial(&'a Record),
    /// One direction of the trial above.
    Direction(&'a Direction),
    /// The median of the complete repeats above.
    Median(Vec<&'a Record>),
}

/// The rows of records: trials that differ in nothing but the repeat stand together, at the place of the first.
pub(super) fn rows<'a>(records: &[&'a Record]) -> Vec<Row<'a>> {
    let mut groups: Vec<(Trial, Vec<&Record>)> = Vec::new();
    for record in records {
        let key = Trial { repeat: 0, ..record.trial.clone() };
        match groups.iter_mut().find(|(known, _)| *known == key) {
            Some((_, group)) => group.push(record),
            None => groups.push((key, vec![record])),
        }
    }
    let mut rows = Vec::new();
    for (_, mut group) in groups {
        group.sort_by_key(|r| r.trial.repeat);
        for record in &group {
            rows.push(Row::Trial(record));
            if record.trial.workload.kind() == WorkloadKind::TcpBidir {
                rows.extend(record.summary.directions.iter().map(Row::Direction));
            }
        }
        group.retain(|r| r.outcome == Outcome::Complete);
        if group.len() > 1 {
            rows.push(Row::Median(group));
        }
    }
    rows
}

/// Median, least and most of values; `None` for none.
pub(crate) fn spread(values: impl Iterator<Item = f64>) -> Option<Spread> {
    let mut values: Vec<f64> = values.collect();
    values.sort_by(f64::total_cmp);
    let (least, most) = (*values.first()?, *values.last()?);
    let middle = values.len() / 2;
    let median = if values.len().is_multiple_of(2) {
        f64::midpoint(values[middle - 1], values[middle])
    } else {
        values[middle]
    };
    Some(Spread { median, least, most })
}

/// Where values lie.
#[derive(Debug, PartialEq)]
pub(crate) struct Spread {
    pub(crate) median: f64,
    pub(crate) least: f64,
    pub(crate) most: f64,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_median_is_the_middle_or_between_the_two() {
        let s = |v: &[f64]| spread(v.iter().copied());
        assert_eq!(s(&[]), None);
        assert_eq!(s(&[3.0, 1.0, 2.0]), Some(Spread { median: 2.0, least: 1.0, most: 3.0 }));
        assert_eq!(s(&[4.0, 1.0, 2.0, 3.0]).map(|s| s.median), Some(2.5));
    }
}
