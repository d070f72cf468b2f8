//! What a statistic refuses to compute, and why.

/// Why a figure cannot be given.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum StatsError {
    /// Fewer values than the method can work with.
    #[error("{what}: {have} values, at least {need} are needed")]
    TooFew {
        /// The figure asked for.
        what: &'static str,
        /// Values given.
        have: usize,
        /// Values the method needs.
        need: usize,
    },
    /// More values than the method's time or memory allows.
    #[error("{what}: {have} values, at most {limit} can be treated")]
    TooMany {
        /// The figure asked for.
        what: &'static str,
        /// Values given.
        have: usize,
        /// Values the method treats at most.
        limit: usize,
    },
    /// A value is NaN or infinite.
    #[error("{what}: value {index} is {value}, not a finite number")]
    NotFinite {
        /// The figure asked for.
        what: &'static str,
        /// Position of the value, from 0.
        index: usize,
        /// The value.
        value: f64,
    },
    /// A value is zero or below where a ratio is asked for.
    #[error("{what}: value {index} is {value}, and a ratio needs values above zero")]
    NotPositive {
        /// The figure asked for.
        what: &'static str,
        /// Position of the value, from 0.
        index: usize,
        /// The value.
        value: f64,
    },
    /// All values are equal, so the figure has no meaning.
    #[error("{what}: all values are equal")]
    Constant {
        /// The figure asked for.
        what: &'static str,
    },
    /// So few values differ that the bootstrap's tail has no end.
    #[error("{what}: too few of the values differ for a bootstrap interval")]
    Unbounded {
        /// The figure asked for.
        what: &'static str,
    },
    /// A parameter lies outside what is allowed.
    #[error("{what} is {value}, allowed is {allowed}")]
    OutOfRange {
        /// The parameter.
        what: &'static str,
        /// What was given.
        value: f64,
        /// What is allowed, in words.
        allowed: &'static str,
    },
    /// Values to be paired by block do not match in number.
    #[error("pair by block: {base} base values and {new} new values")]
    UnequalPairs {
        /// Number of base values.
        base: usize,
        /// Number of new values.
        new: usize,
    },
}

/// Checks that there are at least `need` values and that all are finite.
pub(super) fn check(what: &'static str, values: &[f64], need: usize) -> Result<(), StatsError> {
    if values.len() < need {
        return Err(StatsError::TooFew { what, have: values.len(), need });
    }
    match values.iter().position(|value| !value.is_finite()) {
        Some(index) => Err(StatsError::NotFinite { what, index, value: values[index] }),
        None => Ok(()),
    }
}

/// Natural logarithms of values that must all be finite and above zero.
pub(super) fn logarithms(what: &'static str, values: &[f64], need: usize) -> Result<Vec<f64>, StatsError> {
    check(what, values, need)?;
    match values.iter().position(|value| *value <= 0.0) {
        Some(index) => Err(StatsError::NotPositive { what, index, value: values[index] }),
        None => Ok(values.iter().map(|value| value.ln()).collect()),
    }
}
