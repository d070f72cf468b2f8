//! A profile as a workload of linerate's own: the dut is its master, the peer its slave.
//!
//! What sets up and takes down (transactions before the first that moves payload, and after the last) is not in the window:
//! connections stand before it opens. The control connections prove themselves with the trial's token.

mod dut;
mod peer;

use std::net::SocketAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use linerate_model::profile::{Group, Profile, Transaction};
use linerate_model::trial::Side;
use linerate_model::workload::Workload;
use linerate_sys::clock;
use linerate_traffic::{
    Mover, Result, Role, Snapshot, StreamCount, StreamResult, ThreadInfo, ThreadResult, TrafficError,
    TrialSide,
};

use crate::uperf::strand::{Gate, not_offered};

/// Opens a side of a profile's trial; see [`linerate_traffic::OpenProfile`].
///
/// # Errors
/// The profile needs what is not offered, the peer can't be reached, or it refuses.
pub fn open(side: &TrialSide, end: Side, remote: Option<(SocketAddr, &[u16])>) -> Result<Box<dyn Mover>> {
    let Workload::Profile(run) = &side.trial.workload else {
        return Err(failed("no profile in this trial"));
    };
    check(&run.profile)?;
    Ok(match (end, remote) {
        (Side::Dut, Some((address, [port]))) => {
            Box::new(dut::Dut::open(side, &run.profile, address.ip(), *port)?)
        }
        (Side::Dut, _) => return Err(failed("a profile needs one port of the peer")),
        (Side::Peer, _) => Box::new(peer::Peer::open(side, &run.profile)?),
    })
}

fn check(profile: &Profile) -> Result<()> {
    let protocols = profile.groups.iter().flat_map(|g| g.protocols());
    if let Some(protocol) = { protocols }.find(|p| !p.is_offered()) {
        return Err(failed(not_offered(protocol)));
    }
    match first_payload(profile) {
        Some(_) => Ok(()),
        None => Err(failed(format!("profile {}: no transaction moves payload", profile.name))),
    }
}

fn failed(text: impl Into<String>) -> TrafficError {
    TrafficError::Failed(text.into())
}

/// The first transaction, by index, in which any group moves payload.
fn first_payload(profile: &Profile) -> Option<u32> {
    let moving = profile.groups.iter().flat_map(|group| {
        (0..).zip(&group.transactions).filter(|(_, t)| t.moves_payload()).map(|(index, _)| index)
    });
    moving.min()
}

/// Behind which transaction each group moves no payload any more, by index.
fn payload_ends(profile: &Profile) -> Vec<u32> {
    let end = |group: &Group| {
        let last = group.transactions.iter().rposition(Transaction::moves_payload);
        last.map_or(0, |index| u32::try_from(index).unwrap_or(u32::MAX).saturating_add(1))
    };
    profile.groups.iter().map(end).collect()
}

/// The gates of a trial's strands, in the order of the groups, once they are there.
#[derive(Debug, Clone, Default)]
struct Gates(Arc<Mutex<Vec<Arc<Gate>>>>);

impl Gates {
    fn all(&self) -> MutexGuard<'_, Vec<Arc<Gate>>> {
        // A thread that panicked while holding it left only a list behind, and that is whole.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn add(&self, gate: &Arc<Gate>) {
        self.all().push(gate.clone());
    }

    fn counts(&self) -> Vec<StreamCount> {
        self.all().iter().flat_map(|g| g.counters.iter().map(|c| c.moved()).collect::<Vec<_>>()).collect()
    }

    fn snapshot(&self, streams: u32) -> Snapshot {
        let at_ns = clock::monotonic_ns();
        let mut counts = self.counts();
        counts.resize(streams as usize, StreamCount::default());
        Snapshot { at_ns, streams: counts }
    }

    fn threads(&self) -> Vec<ThreadResult> {
        let gates = self.all();
        let counters = gates.iter().flat_map(|g| &g.counters);
        (0..)
            .zip(counters)
            .filter(|(_, c)| c.tid() > 0)
            .map(|(stream, c)| ThreadResult {
                info: ThreadInfo { tid: c.tid(), stream, role: Role::Strand, pinned_cpu: None },
                cpu_ns: c.cpu_ns(),
            })
            .collect()
    }

    fn infos(&self) -> Vec<ThreadInfo> {
        self.threads().into_iter().map(|t| t.info).collect()
    }

    fn results(&self, streams: u32) -> Vec<StreamResult> {
        let counts = self.snapshot(streams).streams;
        (0..)
            .zip(counts)
            .map(|(index, total)| StreamResult { index, total, ..StreamResult::default() })
            .collect()
    }

    /// When all groups had moved their payload; none before.
    fn payload_ended_ns(&self, ends: &[u32]) -> Option<u64> {
        let gates = self.all();
        let ended = gates.len() == ends.len() && gates.iter().zip(ends).all(|(gate, end)| gate.all_at(*end));
        if ended { gates.iter().map(|g| g.payload_ended_ns()).max() } else { None }
    }

    fn all_over(&self) -> bool {
        self.all().iter().all(|g| g.all_over())
    }
}

#[cfg(test)]
mod tests;
