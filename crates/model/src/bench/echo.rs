//! ICMP echoes (RFC 792, RFC 4443) with place-dependent content.

use std::net::IpAddr;

use serde::{Deserialize, Serialize};

/// Echo requests to send, one after the other.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct EchoSpec {
    /// To whom.
    pub to: IpAddr,
    /// From which link; needed for link-local addresses.
    pub link: Option<String>,
    /// Payload bytes of each, in turn.
    pub payloads_bytes: Vec<u32>,
    /// How often the whole list is sent.
    pub rounds: u32,
    /// At most so many without an answer yet; 1 is lock-step.
    pub in_flight: u32,
    /// Pause between two, nanoseconds; 0 is none.
    pub gap_ns: u64,
    /// Counted as lost after so long, nanoseconds.
    pub timeout_ns: u64,
    /// Never fragments.
    pub dont_fragment: bool,
    /// Seed of the content.
    pub seed: u64,
}

/// What came of echo requests.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct EchoReport {
    /// Sent.
    pub sent: u64,
    /// Answered with the same bytes.
    pub answered: u64,
    /// Answered with other bytes, or another length.
    pub wrong: u64,
    /// Answered twice.
    pub duplicates: u64,
    /// Payload lengths not answered in time, the first few.
    pub lost_bytes: Vec<u32>,
    /// How many were not answered in time.
    pub lost: u64,
    /// Payload lengths that could not be sent, with the errno, the first few.
    pub refused: Vec<(u32, i32)>,
    /// Payload length and place of the first wrong byte.
    pub first_wrong: Option<(u32, u32)>,
    /// Round trip: smallest, median, largest, nanoseconds.
    pub round_trip_ns: Option<[u64; 3]>,
}
