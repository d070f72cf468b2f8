//! What limited a trial.

use serde::{Deserialize, Serialize};

/// What held a trial back.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum Limiter {
    /// The sender's CPU.
    SenderCpu,
    /// The receiver's CPU.
    ReceiverCpu,
    /// The receiver's window.
    ReceiveWindow,
    /// The send buffer.
    SendBuffer,
    /// The congestion window.
    CongestionWindow,
    /// The rate asked for.
    Pace,
    /// The link's speed.
    LinkSpeed,
    /// Round trips: each request waits for its answer.
    RoundTrip,
    /// The evidence does not decide.
    Unclear,
}

impl Limiter {
    /// Words for a table.
    pub fn name(self) -> &'static str {
        match self {
            Self::SenderCpu => "sender CPU",
            Self::ReceiverCpu => "receiver CPU",
            Self::ReceiveWindow => "receive window",
            Self::SendBuffer => "send buffer",
            Self::CongestionWindow => "congestion window",
            Self::Pace => "pace asked for",
            Self::LinkSpeed => "link speed",
            Self::RoundTrip => "round trip",
            Self::Unclear => "unclear",
        }
    }
}

/// What held a trial back, and what says so.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Limit {
    /// What.
    pub limiter: Limiter,
    /// The numbers that say so.
    pub evidence: String,
}
