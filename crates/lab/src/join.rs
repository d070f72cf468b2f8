//! Two readings and what is around them into a record.

use linerate_model::record::{ClockSync, NodeRecord, Outcome, RECORD_SCHEMA, Record, StandIn};
use linerate_model::summary::summarize;
use linerate_model::trial::Trial;

use crate::{hazard, limit};

/// What a record is joined from.
#[derive(Debug)]
pub struct Joined {
    /// Id of the run.
    pub run: String,
    /// Number of the trial within it.
    pub sequence: u32,
    /// Where the trial stands in the plan.
    pub place: Place,
    /// When it started, RFC 3339.
    pub started_at: String,
    /// What was asked for.
    pub trial: Trial,
    /// How it ended.
    pub outcome: Outcome,
    /// The node under test.
    pub dut: NodeRecord,
    /// Its partner.
    pub peer: NodeRecord,
    /// How well the windows coincide.
    pub clock: ClockSync,
    /// Both nodes run on one kernel.
    pub shared_kernel: bool,
    /// Which tool linerate stood in for.
    pub stand_in: Option<StandIn>,
}

/// Where a trial stands in its run's plan.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Place {
    /// Seed of the order.
    pub seed: u64,
    /// The block, from 0.
    pub block: u32,
    /// The combination, from 0.
    pub combination: u32,
}

/// Joins a record.
pub fn record(joined: Joined) -> Record {
    let Joined {
        run,
        sequence,
        place,
        started_at,
        trial,
        outcome,
        dut,
        peer,
        clock,
        shared_kernel,
        stand_in,
    } = joined;
    let summary = summarize(&trial, &dut.reading, &peer.reading, shared_kernel);
    let mut record = Record {
        schema: RECORD_SCHEMA.to_owned(),
        run,
        sequence,
        seed: Some(place.seed),
        block: Some(place.block),
        combination: Some(place.combination),
        started_at,
        trial,
        outcome,
        dut,
        peer,
        clock,
        shared_kernel,
        summary,
        limit: limit::undecided(),
        hazards: Vec::new(),
        stand_in,
    };
    record.limit = limit::of(&record);
    record.hazards = hazard::all(&record);
    record
}
