//! Why a case did not come to its end.

use linerate_agent::node::{NodeError, NodeFailure};
use linerate_model::qualification::ReasonCode;

/// Why a case did not come to its end.
#[derive(Debug, thiserror::Error)]
pub enum Trouble {
    /// It cannot be judged here.
    #[error("{1}")]
    Skip(ReasonCode, String),
    /// A node refused what the case needs.
    #[error("{0}")]
    Refused(NodeError),
    /// A node is gone.
    #[error("{0}")]
    Lost(NodeError),
    /// The time for the case is over.
    #[error("it did not come to its end in time")]
    Late,
    /// The run is to stop.
    #[error("interrupted")]
    Stopped,
    /// The suite itself is at fault.
    #[error("{0}")]
    Harness(String),
}

impl Trouble {
    /// Skip: the driver does not have the feature.
    pub fn no_feature(why: impl Into<String>) -> Self {
        Self::Skip(ReasonCode::NoFeature, why.into())
    }

    /// Skip: the medium or the environment cannot show it.
    pub fn not_shown(why: impl Into<String>) -> Self {
        Self::Skip(ReasonCode::NotShown, why.into())
    }

    /// Skip: a permission is missing.
    pub fn no_permission(why: impl Into<String>) -> Self {
        Self::Skip(ReasonCode::NoPermission, why.into())
    }

    /// Skip: it cannot be judged at this speed.
    pub fn too_slow(why: impl Into<String>) -> Self {
        Self::Skip(ReasonCode::TooSlow, why.into())
    }

    /// The suite itself is at fault.
    pub fn harness(why: impl Into<String>) -> Self {
        Self::Harness(why.into())
    }
}

impl From<NodeError> for Trouble {
    fn from(error: NodeError) -> Self {
        match error.cause {
            NodeFailure::Refused { .. } => Self::Refused(error),
            NodeFailure::Unexpected(_) => Self::Harness(error.to_string()),
            _ => Self::Lost(error),
        }
    }
}
