//! One figure over the history, for a trend.

use std::fmt;
use std::str::FromStr;

use jiff::Timestamp;
use linerate_model::Trial;
use serde_json::Value;

use crate::error::StoreError;
use crate::find::{Filter, RECORD_MATCHES};
use crate::store::Store;

/// A figure of a record's summary: one of the names, or a path of its fields (`latency.max_ns`, `loss.lost`).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Metric {
    name: String,
    /// The first that a summary has is taken.
    paths: Vec<String>,
}

/// A text that is no metric.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "'{given}' is no metric; there are {}, and every path in a record's summary, such as latency.max_ns",
    names()
)]
pub struct UnknownMetric {
    /// What was given.
    given: String,
}

/// Names with their paths. A machine's cost is that of the shared machine where both nodes run on one.
const NAMED: [(&str, &[&str]); 15] = [
    ("goodput", &["goodput_bits_per_second"]),
    ("packets", &["packets_per_second"]),
    ("transactions", &["transactions_per_second"]),
    ("cpu-dut", &["cpu.dut.busy_percent", "cpu.shared.busy_percent"]),
    ("cpu-peer", &["cpu.peer.busy_percent", "cpu.shared.busy_percent"]),
    ("service-demand-dut", &["cpu.dut.service_demand_us_per_kib", "cpu.shared.service_demand_us_per_kib"]),
    ("service-demand-peer", &["cpu.peer.service_demand_us_per_kib", "cpu.shared.service_demand_us_per_kib"]),
    (
        "transaction-demand-dut",
        &["cpu.dut.service_demand_us_per_transaction", "cpu.shared.service_demand_us_per_transaction"],
    ),
    (
        "transaction-demand-peer",
        &["cpu.peer.service_demand_us_per_transaction", "cpu.shared.service_demand_us_per_transaction"],
    ),
    ("p50", &["latency.p50_ns"]),
    ("p90", &["latency.p90_ns"]),
    ("p99", &["latency.p99_ns"]),
    ("p999", &["latency.p999_ns"]),
    ("retransmits", &["retransmits"]),
    ("loss", &["loss.lost_percent"]),
];

/// Ends of a field's name with the unit they stand for, longest first.
const UNITS: [(&str, &str); 9] = [
    ("_bits_per_second", "bit/s"),
    ("packets_per_second", "packets/s"),
    ("transactions_per_second", "transactions/s"),
    ("_us_per_kib", "us/KiB"),
    ("_us_per_transaction", "us/transaction"),
    ("_percent", "%"),
    ("_bytes", "bytes"),
    ("_ns", "ns"),
    ("_us", "us"),
];

fn names() -> String {
    NAMED.map(|(name, _)| name).join(", ")
}

impl Metric {
    /// Every name, in the order of the documentation.
    pub fn names() -> impl Iterator<Item = &'static str> {
        NAMED.iter().map(|&(name, _)| name)
    }

    /// The unit of its values; empty for a count.
    pub fn unit(&self) -> &'static str {
        let path = &self.paths[0];
        UNITS.iter().find(|(end, _)| path.ends_with(end)).map_or("", |&(_, unit)| unit)
    }

    fn of(&self, summary: &Value) -> Option<f64> {
        let at = |path: &String| path.split('.').try_fold(summary, |value, field| value.get(field))?.as_f64();
        self.paths.iter().find_map(at)
    }
}

impl FromStr for Metric {
    type Err = UnknownMetric;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        if let Some((name, paths)) = NAMED.iter().find(|(name, _)| *name == text) {
            let paths = paths.iter().map(|&path| path.to_owned()).collect();
            return Ok(Self { name: (*name).to_owned(), paths });
        }
        let is_field = |field: &str| {
            !field.is_empty()
                && field.bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'_')
        };
        // A single word must be a name or have the shape of a field, so that a slip of a name is told at once.
        let is_path = text.contains(['.', '_']) && text.len() <= 200 && text.split('.').all(is_field);
        if !is_path {
            return Err(UnknownMetric { given: text.to_owned() });
        }
        Ok(Self { name: text.to_owned(), paths: vec![text.to_owned()] })
    }
}

impl fmt::Display for Metric {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&self.name)
    }
}

/// One value of a series.
#[derive(Debug, Clone, PartialEq)]
pub struct Point {
    /// When the trial began.
    pub at: Timestamp,
    /// Id of its run.
    pub run: String,
    /// Its number within the run.
    pub sequence: u32,
    /// What was asked for: values of unlike trials (size, streams ...) don't belong on one line.
    pub trial: Trial,
    /// The value, in [`Metric::unit`].
    pub value: f64,
}

impl Store {
    /// A figure of every matching trial that has it, by rising time.
    ///
    /// # Errors
    /// [`StoreError::NoSuchFigure`] where trials match but none has it; SQLite's refusal, or [`StoreError::Damaged`].
    pub fn series(&self, filter: &Filter, metric: &Metric) -> Result<Vec<Point>, StoreError> {
        let sql = format!(
            "SELECT c.started_ns, c.run, c.sequence, c.trial, c.summary FROM records c \
             WHERE (:tag IS NULL OR EXISTS (SELECT 1 FROM tags t WHERE t.run = c.run AND t.name = :tag)) \
             AND (:since IS NULL OR c.started_ns >= :since) AND (:until IS NULL OR c.started_ns < :until) \
             AND {RECORD_MATCHES} ORDER BY c.started_ns DESC, c.run DESC, c.sequence DESC LIMIT :limit"
        );
        type Row = (i64, String, u32, String, String);
        let rows: Vec<Row> = filter
            .bind(|parameters| {
                let mut statement = self.connection.prepare(&sql)?;
                let read = |row: &rusqlite::Row<'_>| {
                    Ok((row.get(0)?, row.get(1)?, row.get(2)?, row.get(3)?, row.get(4)?))
                };
                statement.query_map(parameters, read)?.collect::<Result<_, rusqlite::Error>>()
            })
            .map_err(self.failed("read a series"))?;
        let mut points = Vec::new();
        for (started_ns, run, sequence, trial, summary) in rows.iter().rev() {
            let object = || format!("trial {sequence} of run {run}");
            let summary: Value = self.parse(summary, object)?;
            let Some(value) = metric.of(&summary) else { continue };
            let trial = self.parse(trial, object)?;
            // Any 64-bit number of nanoseconds is within jiff's range.
            let at = Timestamp::from_nanosecond(i128::from(*started_ns)).unwrap_or_default();
            points.push(Point { at, run: run.clone(), sequence: *sequence, trial, value });
        }
        if points.is_empty() && !rows.is_empty() {
            return Err(StoreError::NoSuchFigure { metric: metric.to_string(), records: rows.len() });
        }
        Ok(points)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn metric(text: &str) -> Metric {
        text.parse().unwrap()
    }

    #[test]
    fn names_and_paths_find_their_figure() {
        let summary = serde_json::json!({
            "goodput_bits_per_second": 5.5, "latency": {"p99_ns": 7, "max_ns": 9},
            "cpu": {"dut": null, "shared": {"busy_percent": 80.0}},
        });
        assert_eq!(metric("goodput").of(&summary), Some(5.5));
        assert_eq!(metric("p99").of(&summary), Some(7.0));
        assert_eq!(metric("latency.max_ns").of(&summary), Some(9.0));
        assert_eq!(metric("cpu-dut").of(&summary), Some(80.0));
        assert_eq!(metric("loss").of(&summary), None);
        assert_eq!(metric("latency.p99_ns.x").of(&summary), None);
    }

    #[test]
    fn units_follow_from_the_fields() {
        for (name, unit) in [
            ("goodput", "bit/s"),
            ("packets", "packets/s"),
            ("transactions", "transactions/s"),
            ("cpu-dut", "%"),
            ("service-demand-peer", "us/KiB"),
            ("transaction-demand-dut", "us/transaction"),
            ("p999", "ns"),
            ("retransmits", ""),
            ("loss", "%"),
            ("goodput_bytes", "bytes"),
        ] {
            assert_eq!(metric(name).unit(), unit, "{name}");
        }
    }

    #[test]
    fn slips_are_told_with_the_names() {
        for wrong in ["", "godput", "latency..x", ".", "a.B", "a b_c", "$.x"] {
            let error = wrong.parse::<Metric>().unwrap_err().to_string();
            assert!(error.contains("there are goodput, packets"), "{error}");
        }
    }
}
