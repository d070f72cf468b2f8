//! Records in, text out: tables, JSON, CSV and live lines. Pure functions; nothing here reads, writes or prints.
//!
//! Every text derives from [`linerate_model::Record`] and shows no figure that the record does not hold or that can't
//! be computed from it alone. What each figure means is told in `docs/record.md`.

mod csv_text;
mod environment;
mod hazards;
mod json;
mod live;
pub mod numbers;
mod prometheus;
mod table;
mod text;
mod trial_text;

pub use csv_text::{CSV_COLUMNS, CsvColumn, csv};
pub use environment::environment_lines;
pub use hazards::hazard_lines;
pub use json::{ParseRecordsError, json, parse_json};
pub use live::{IntervalPairs, live_header, live_line};
pub use prometheus::{MetricFamily, MetricKind, prometheus};
pub use table::{TableOptions, table};
pub use trial_text::trial_text;
