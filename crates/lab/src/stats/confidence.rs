//! A level of confidence as a type.

use serde::{Deserialize, Serialize};

use super::error::StatsError;

/// A confidence level strictly between 0.5 and 1; in JSON a plain number such as 0.95.
#[derive(Debug, Clone, Copy, PartialEq, PartialOrd, Serialize, Deserialize)]
#[serde(try_from = "f64", into = "f64")]
pub struct Confidence(f64);

impl Confidence {
    /// 95 %.
    pub const P95: Self = Self(0.95);

    /// From a share, `0.95`.
    ///
    /// # Errors
    /// [`StatsError::OutOfRange`] unless it lies between 0.5 and 1, both excluded.
    pub fn from_share(share: f64) -> Result<Self, StatsError> {
        if share > 0.5 && share < 1.0 {
            return Ok(Self(share));
        }
        Err(StatsError::OutOfRange { what: "confidence", value: share, allowed: "between 0.5 and 1" })
    }

    /// From percent, `95`.
    ///
    /// # Errors
    /// [`StatsError::OutOfRange`] unless it lies between 50 and 100, both excluded.
    pub fn from_percent(percent: f64) -> Result<Self, StatsError> {
        Self::from_share(percent / 100.0)
    }

    /// The level as a share, 0.95.
    pub fn share(self) -> f64 {
        self.0
    }

    /// The error that is allowed, 0.05.
    pub fn alpha(self) -> f64 {
        1.0 - self.0
    }

    /// The level whose allowed error is this one's divided by `parts` (at least 1).
    pub(super) fn split(self, parts: f64) -> Self {
        Self((1.0 - self.alpha() / parts.max(1.0)).min(1.0 - f64::EPSILON))
    }
}

impl TryFrom<f64> for Confidence {
    type Error = StatsError;

    fn try_from(share: f64) -> Result<Self, StatsError> {
        Self::from_share(share)
    }
}

impl From<Confidence> for f64 {
    fn from(confidence: Confidence) -> Self {
        confidence.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn takes_percent_and_share_and_refuses_the_rest() {
        assert!((Confidence::from_percent(95.0).unwrap().alpha() - 0.05).abs() < 1e-12);
        for bad in [0.0, 0.5, 1.0, 95.0, f64::NAN, f64::INFINITY] {
            assert!(Confidence::from_share(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn json_is_a_number_and_checked() {
        assert_eq!(serde_json::to_string(&Confidence::P95).unwrap(), "0.95");
        assert!(serde_json::from_str::<Confidence>("1.5").is_err());
    }
}
