//! A report as one page of HTML that needs nothing else: no network and no JavaScript.
//!
//! Everything on it derives from the records. What comes from them is escaped: names of hosts and links are strangers'
//! bytes.

mod again;
mod answer;
mod asked;
mod by_factor;
pub(crate) mod chart;
mod cores;
mod environment;
mod factors;
mod latency;
mod lines;
mod over_time;
mod page;
pub(crate) mod paint;
mod sides;
pub(crate) mod theme;

use linerate_model::Record;
use linerate_model::experiment::LeftOut;
use linerate_model::trend::Trend;
use linerate_model::verdict::VerdictTable;

pub(crate) use crate::table::TableKind as Kind;

/// The records of a run, with the name that the report calls it by.
#[derive(Debug, Clone)]
pub struct Run<'a> {
    /// Its name: a tag, an id, a file. Names should differ.
    pub name: String,
    /// Its records, in the order run.
    pub records: &'a [Record],
    /// The command line that made it; made up from the records where it is `None`.
    pub command: Option<String>,
    /// What it left out.
    pub left_out: &'a [LeftOut],
}

/// What a report is to hold beside the records.
#[derive(Default)]
pub struct HtmlOptions<'a> {
    /// The page's title; made from the workloads where it is `None`.
    pub title: Option<String>,
    /// Verdicts to show.
    pub verdicts: Option<&'a VerdictTable>,
    /// Trends to show.
    pub trends: &'a [Trend],
    /// The interval that whiskers show; least to most of the repeats where it is `None`.
    pub interval: Option<Interval<'a>>,
}

/// A way to tell how far repeats leave a figure open.
pub struct Interval<'a> {
    /// What it is, as in `95 % confidence interval of the median`.
    pub name: &'a str,
    /// Its ends for the values of the repeats; `None` where they are too few.
    pub of: &'a IntervalOf,
}

/// From values to the ends of their interval; `None` for too few.
pub type IntervalOf = dyn Fn(&[f64]) -> Option<(f64, f64)>;

/// The report of runs, side by side where there are several, as one page of HTML.
pub fn html(runs: &[Run<'_>], options: &HtmlOptions<'_>) -> String {
    page::page(runs, options)
}
