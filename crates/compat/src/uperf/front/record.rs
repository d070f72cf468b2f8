//! What `--linerate-json` keeps of a master's run.

use std::net::{IpAddr, ToSocketAddrs, UdpSocket};

use linerate_model::Trial;
use linerate_model::profile::Profile;
use linerate_model::reading::{Flow, Knowledge, Reading, StreamReading};
use linerate_model::trial::{Amount, Family, Pinning, Side};
use linerate_model::units::total;
use linerate_model::workload::{ProfileRun, Workload};

use crate::observed::{Observed, Watch, told};
use crate::uperf::master::Outcome;

/// Watches a master's run for its record.
#[derive(Debug)]
pub(crate) struct ProfileWatch {
    watch: Watch,
    host: String,
    port: u16,
    remote: Option<IpAddr>,
}

impl ProfileWatch {
    /// Of the first slave that the profile names.
    pub(crate) fn open(profile: &Profile, port: u16) -> Self {
        let host = profile.groups.iter().flat_map(|g| g.hosts()).next().unwrap_or_default();
        let remote = (host.as_str(), port).to_socket_addrs().ok().and_then(|mut all| all.next());
        let local = remote.and_then(|remote| {
            let any = if remote.is_ipv4() { "0.0.0.0" } else { "::" };
            let socket = UdpSocket::bind((any, 0)).ok()?;
            socket.connect(remote).ok()?;
            socket.local_addr().ok()
        });
        let local = local.map_or_else(|| IpAddr::from([0, 0, 0, 0]), |address| address.ip());
        Self { watch: Watch::open(local), host, port, remote: remote.map(|r| r.ip().to_canonical()) }
    }

    pub(crate) fn begin(&mut self) {
        self.watch.begin();
    }

    pub(crate) fn end(&mut self) {
        self.watch.end();
    }

    pub(crate) fn observed(&self, profile: &Profile, outcome: &Outcome) -> Observed {
        let near = self.watch.reading(outcome.readings.clone(), None);
        let far = far(&near, outcome);
        let is_v6 = self.remote.is_some_and(|r| r.is_ipv6());
        Observed {
            tool: "uperf",
            side: Side::Dut,
            started_at_ns: self.watch.started_at_ns(),
            trial: Trial {
                workload: Workload::Profile(ProfileRun { profile: profile.clone() }),
                family: if is_v6 { Family::V6 } else { Family::V4 },
                peers: 1,
                streams: profile.strands(),
                amount: Amount::Whole,
                warmup_ns: 0,
                interval_ns: None,
                verify_seed: None,
                pin: Pinning::default(),
                repeat: 0,
                settings: Vec::new(),
            },
            interrupted: outcome.interrupted,
            environment: self.watch.environment(),
            near,
            far,
            remote: (self.host.clone(), self.port),
            shared_kernel: self.remote.is_some_and(|remote| self.watch.is_own(remote)),
        }
    }
}

/// A slave tells its bytes of both ways together: what came from it is known here, the rest is what it received.
fn far(near: &Reading, outcome: &Outcome) -> Reading {
    let window_ns = near.window.duration_ns;
    let told_by_all: Option<Vec<u64>> =
        outcome.hosts.iter().map(|h| h.goodbye.as_ref().ok().map(|g| g.bytes)).collect();
    let Some(bytes) = told_by_all.filter(|all| !all.is_empty()).map(total) else {
        return told(Vec::new(), window_ns);
    };
    let came = total(near.streams.iter().map(|s| s.received.bytes));
    let flow = |bytes| Flow { bytes, messages: 0 };
    let stream = StreamReading {
        sent: flow(came),
        received: flow(bytes.saturating_sub(came)),
        ..StreamReading::default()
    };
    Reading { knowledge: Knowledge::Told, ..told(vec![stream], window_ns) }
}
