//! The readings of all nodes and what is around them into a record.

use linerate_model::reading::Reading;
use linerate_model::record::{ClockSync, NodeRecord, Outcome, RECORD_SCHEMA, Record, StandIn};
use linerate_model::summary::summarize;
use linerate_model::trial::Trial;

use crate::{hazard, limit, together};

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
    /// The node under test, with its reading of the first peer.
    pub dut: NodeRecord,
    /// Its readings of further peers.
    pub dut_further: Vec<Reading>,
    /// Its partners, at least one, and how well their windows coincide with the dut's.
    pub peers: Vec<(NodeRecord, ClockSync)>,
    /// All nodes run on one kernel.
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
        dut_further,
        peers,
        shared_kernel,
        stand_in,
    } = joined;
    let clock = peers.iter().map(|(_, clock)| *clock).max_by_key(|c| c.uncertainty_ns).unwrap_or_default();
    let (dut, peer, peers) =
        ends(dut, dut_further, peers.into_iter().map(|(peer, _)| peer).collect(), trial.streams);
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
        peers,
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

/// The dut, the peer or all peers together, and each of several peers.
fn ends(
    mut dut: NodeRecord,
    further: Vec<Reading>,
    mut peers: Vec<NodeRecord>,
    streams: u32,
) -> (NodeRecord, NodeRecord, Vec<NodeRecord>) {
    if peers.len() == 1
        && let Some(peer) = peers.pop()
    {
        return (dut, peer, Vec::new());
    }
    let first_stream = (0_u32..).map(|pair| pair * streams);
    let of_dut: Vec<Reading> = std::iter::once(dut.reading.clone())
        .chain(further)
        .zip(first_stream.clone())
        .map(|(reading, by)| together::renumbered(reading, by))
        .collect();
    for (peer, by) in peers.iter_mut().zip(first_stream) {
        peer.reading = together::renumbered(peer.reading.clone(), by);
    }
    let place = together::Place::of(&dut.node, &dut.environment);
    dut.reading = together::reading(&of_dut.iter().map(|r| (place.clone(), r)).collect::<Vec<_>>());
    let parts: Vec<_> =
        peers.iter().map(|p| (together::Place::of(&p.node, &p.environment), &p.reading)).collect();
    let all = together::reading(&parts);
    // Invariant: there is at least one peer.
    let peer = NodeRecord { reading: all, ..peers[0].clone() };
    (dut, peer, peers)
}
