//! A metric over the history, with the places where it changed.

use serde::{Deserialize, Serialize};

use crate::verdict::Better;

/// One metric of one trial over the history.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Trend {
    /// The trial in words.
    pub trial: String,
    /// The metric's name.
    pub metric: String,
    /// Unit of its values, as in [`crate::verdict::VerdictRow::unit`].
    pub unit: String,
    /// Which way it should go, where that is known.
    pub better: Option<Better>,
    /// The values, by rising time.
    pub points: Vec<TrendPoint>,
    /// Where they changed, by rising position.
    pub changes: Vec<TrendChange>,
}

/// One value.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct TrendPoint {
    /// When it was measured, UTC, RFC 3339.
    pub at: String,
    /// Id of its run.
    pub run: String,
    /// The value, in the trend's unit.
    pub value: f64,
}

/// A place where the values changed.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct TrendChange {
    /// Position of the first value after the change, from 0.
    pub index: usize,
    /// Median from the previous change (or the start) to here.
    pub before: f64,
    /// Median from here to the next change (or the end).
    pub after: f64,
    /// The difference, percent of before; `None` when that is zero.
    pub effect_percent: Option<f64>,
    /// Chance of so clear a change in a series that has none.
    pub p: f64,
}
