//! Records in, text out: tables, JSON, CSV, live lines, HTML with plots, verdicts and trends. Pure functions; nothing here reads, writes or prints.
//!
//! Every text derives from [`linerate_model::Record`] and shows no figure that the record does not hold or that can't
//! be computed from it alone. What each figure means is told in `docs/record.md`.

mod csv_text;
mod environment;
mod hazards;
mod html;
mod json;
mod left_out;
mod live;
mod metric;
pub mod numbers;
mod pivot;
mod prometheus;
pub mod qualification;
mod table;
mod text;
mod trend;
mod trial_text;
mod verdicts;

pub use csv_text::{CSV_COLUMNS, CsvColumn, csv};
pub use environment::environment_lines;
pub use hazards::hazard_lines;
pub use html::{HtmlOptions, Interval, IntervalOf, Run, html};
pub use json::{ParseRecordsError, json, parse_json};
pub use left_out::{left_out_line, left_out_lines};
pub use live::{IntervalPairs, live_header, live_line};
pub use pivot::{NotVaried, PivotOptions, pivot, pivots, varied_factors};
pub use prometheus::{MetricFamily, MetricKind, prometheus};
pub use table::{TableOptions, table};
pub use trend::{trend_svg, trend_table};
pub use trial_text::trial_text;
pub use verdicts::verdicts_text;
