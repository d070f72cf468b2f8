//! How the two nodes' monotonic clocks relate, estimated over the control connections.
//!
//! Each clock is read several times; the reading with the shortest round trip bounds the offset best, since the node's
//! clock was read somewhere within that round trip (Cristian's algorithm).

use std::time::Instant;

use linerate_agent::node::{Node, NodeError};
use linerate_model::record::ClockSync;

/// Readings of each clock.
const READINGS: usize = 16;

/// Estimates the offset between the nodes' clocks. On one kernel there is one clock, and nothing to estimate.
///
/// # Errors
/// Where a node fails.
pub fn synchronize(dut: &mut Node, peer: &mut Node, shared_kernel: bool) -> Result<ClockSync, NodeError> {
    if shared_kernel {
        return Ok(ClockSync::default());
    }
    let origin = Instant::now();
    let dut = best_reading(dut, origin)?;
    let peer = best_reading(peer, origin)?;
    Ok(ClockSync {
        peer_minus_dut_ns: peer.offset_ns - dut.offset_ns,
        uncertainty_ns: peer.uncertainty_ns + dut.uncertainty_ns,
    })
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Offset {
    /// Node's clock minus ours.
    offset_ns: i64,
    /// Half the round trip.
    uncertainty_ns: u64,
}

fn best_reading(node: &mut Node, origin: Instant) -> Result<Offset, NodeError> {
    let mut best: Option<Offset> = None;
    for _ in 0..READINGS {
        let asked_ns = elapsed_ns(origin);
        let node_ns = node.clock_ns()?;
        let offset = offset(asked_ns, node_ns, elapsed_ns(origin));
        if best.is_none_or(|b| offset.uncertainty_ns < b.uncertainty_ns) {
            best = Some(offset);
        }
    }
    Ok(best.unwrap_or(Offset { offset_ns: 0, uncertainty_ns: u64::MAX / 4 }))
}

fn elapsed_ns(origin: Instant) -> u64 {
    u64::try_from(origin.elapsed().as_nanos()).unwrap_or(u64::MAX)
}

fn offset(asked_ns: u64, node_ns: u64, answered_ns: u64) -> Offset {
    let round_trip = answered_ns.saturating_sub(asked_ns);
    let middle = asked_ns + round_trip / 2;
    Offset { offset_ns: node_ns.wrapping_sub(middle).cast_signed(), uncertainty_ns: round_trip.div_ceil(2) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_true_offset_lies_within_the_uncertainty() {
        // A clock 1000 ahead, read 30 into a round trip of 100, and one 500 behind.
        let ahead = offset(5_000, 5_030 + 1_000, 5_100);
        assert!(ahead.offset_ns.abs_diff(1_000) <= ahead.uncertainty_ns);
        let behind = offset(5_000, 5_090 - 500, 5_100);
        assert!(behind.offset_ns.abs_diff(-500) <= behind.uncertainty_ns);
        assert_eq!(behind.uncertainty_ns, 50);
    }
}
