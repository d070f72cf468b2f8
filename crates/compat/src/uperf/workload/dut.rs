//! The dut's side: a master whose first transaction with payload waits for the trial's start.

use std::net::IpAddr;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use linerate_model::profile::Profile;
use linerate_model::reading::StreamReading;
use linerate_sys::clock;
use linerate_sys::tcp_info::TcpInfo;
use linerate_traffic::{Mover, Phase, Result, SideResult, Snapshot, ThreadInfo, TrialSide};

use super::{Gates, failed, first_payload, payload_ends};
use crate::uperf::master::MasterOptions;
use crate::uperf::master::conduct::HEADWAY;
use crate::uperf::master::controls::Entry;
use crate::uperf::master::run::{Led, run_led};
use crate::uperf::wire::Layout;

/// How long connections and what sets up may take.
const READY_LIMIT: Duration = Duration::from_secs(10);
/// How long what takes down may take.
const END_LIMIT: Duration = Duration::from_secs(3);
/// How often the end is looked for.
const STEP: Duration = Duration::from_millis(2);
/// How often a waiting master looks whether it is to end.
const LOOK: Duration = Duration::from_millis(50);

#[derive(Debug)]
pub(super) struct Dut {
    streams: u32,
    shared: Arc<Shared>,
    gates: Gates,
    /// Behind which transaction each group moves no payload any more.
    ends: Vec<u32>,
    thread: Option<JoinHandle<Vec<StreamReading>>>,
}

#[derive(Debug, Default)]
struct Shared {
    progress: Mutex<Progress>,
    changed: Condvar,
    interrupted: AtomicBool,
}

#[derive(Debug, Default)]
struct Progress {
    /// All that sets up is done: the master waits for the start.
    holds: bool,
    start_ns: Option<u64>,
    over: bool,
    failures: Vec<String>,
}

impl Shared {
    fn progress(&self) -> MutexGuard<'_, Progress> {
        self.progress.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn note(&self, change: impl FnOnce(&mut Progress)) {
        change(&mut self.progress());
        self.changed.notify_all();
    }

    /// Waits until `reached` or the limit; gives the progress then.
    fn wait(&self, limit: Duration, reached: impl Fn(&Progress) -> bool) -> MutexGuard<'_, Progress> {
        let deadline = Instant::now() + limit;
        let mut progress = self.progress();
        while !reached(&progress) {
            let left = deadline.saturating_duration_since(Instant::now());
            if left.is_zero() {
                break;
            }
            progress = self.changed.wait_timeout(progress, left).unwrap_or_else(PoisonError::into_inner).0;
        }
        progress
    }

    /// The master's wait before the first transaction with payload.
    fn hold(&self) {
        self.note(|p| p.holds = true);
        while !self.interrupted.load(Relaxed) {
            let start_ns = self.wait(LOOK, |p| p.start_ns.is_some()).start_ns;
            if let Some(start_ns) = start_ns {
                // Slaves hear of a transaction that much before it begins.
                return clock::sleep_until(start_ns.saturating_sub(HEADWAY.as_nanos() as u64));
            }
        }
    }
}

impl Dut {
    /// Connects, and does all that comes before the first payload.
    pub(super) fn open(side: &TrialSide, profile: &Profile, peer: IpAddr, port: u16) -> Result<Self> {
        let ends = payload_ends(profile);
        let first = first_payload(profile).ok_or_else(|| failed("no transaction moves payload"))?;
        let profile = towards(profile, peer);
        let entry = Entry { from: side.local.ip(), token: side.token.bytes().to_vec() };
        let (shared, gates) = (Arc::new(Shared::default()), Gates::default());
        let (its, its_gates) = (shared.clone(), gates.clone());
        let work = move || {
            let readings = lead(&profile, port, entry, first, &its, &its_gates);
            its.note(|p| p.over = true);
            readings
        };
        let thread = thread::Builder::new().name("lr-master".to_owned()).spawn(work);
        let thread = thread.map_err(|e| failed(format!("start thread lr-master: {e}")))?;
        let dut = Self { streams: side.trial.streams, shared, gates, ends, thread: Some(thread) };
        let progress = dut.shared.wait(READY_LIMIT, |p| p.holds || p.over);
        if !progress.holds {
            let why = progress.failures.first().cloned();
            drop(progress);
            return Err(failed(
                why.unwrap_or_else(|| "the profile did not get ready within 10 s".to_owned()),
            ));
        }
        drop(progress);
        Ok(dut)
    }
}

impl Dut {
    fn done_ns(&self) -> Option<u64> {
        // Strands that failed are over too.
        if !self.shared.progress().failures.is_empty()
            || self.gates.all().iter().any(|g| g.failure().is_some())
        {
            return None;
        }
        self.gates.payload_ended_ns(&self.ends)
    }
}

/// Every host of the profile is the peer.
fn towards(profile: &Profile, peer: IpAddr) -> Profile {
    let mut profile = profile.clone();
    for group in &mut profile.groups {
        let flowops = group.transactions.iter_mut().flat_map(|t| &mut t.flowops);
        for flowop in flowops.filter(|f| !f.remote_host.is_empty()) {
            flowop.remote_host = peer.to_string();
        }
        // Here a strand is a thread, whatever it is elsewhere.
        group.processes = false;
    }
    profile
}

fn lead(
    profile: &Profile,
    port: u16,
    entry: Entry,
    first: u32,
    shared: &Shared,
    gates: &Gates,
) -> Vec<StreamReading> {
    let options = MasterOptions {
        control_port: port,
        interval: Duration::from_secs(3600),
        layout: Some(Layout::F),
        history: None,
        goodbyes: true,
        latencies: true,
    };
    let watch = |all: &[Arc<_>]| all.iter().for_each(|gate| gates.add(gate));
    let hold = || shared.hold();
    let led = Led { entry, watch: &watch, hold: (first, &hold) };
    let outcome = run_led(profile, &options, &shared.interrupted, &mut |_| {}, Some(&led));
    let (failures, readings) = match outcome {
        Ok(outcome) => {
            let mut failures = outcome.errors;
            if outcome.slave_aborted {
                failures.extend(outcome.hosts.into_iter().filter_map(|h| h.goodbye.ok()).map(|g| g.text));
                failures.push("the peer ended the profile".to_owned());
            }
            (failures, outcome.readings)
        }
        Err(error) => (vec![error.to_string()], Vec::new()),
    };
    shared.note(|p| p.failures.extend(failures));
    readings
}

impl Mover for Dut {
    fn ports(&self) -> Vec<u16> {
        Vec::new()
    }

    fn wait_ready(&mut self, _timeout: Duration) -> Result<()> {
        Ok(())
    }

    fn start(&mut self, at_ns: u64) {
        self.shared.note(|p| p.start_ns = Some(at_ns));
    }

    fn enter_phase(&self, _phase: Phase) {}

    fn snapshot(&self) -> Snapshot {
        self.gates.snapshot(self.streams)
    }

    fn threads(&self) -> Vec<ThreadInfo> {
        self.gates.infos()
    }

    fn tcp_info(&self) -> Result<Vec<Vec<TcpInfo>>> {
        Ok(vec![Vec::new(); self.streams as usize])
    }

    fn failures(&self) -> Vec<(u32, String)> {
        // What goes wrong later is no matter of the window.
        if self.done_ns().is_some() {
            return Vec::new();
        }
        self.shared.progress().failures.iter().map(|text| (0, text.clone())).collect()
    }

    fn has_authority(&self) -> bool {
        true
    }

    fn wait_done(&self, timeout: Duration) -> Result<Option<u64>> {
        let deadline = Instant::now() + timeout;
        loop {
            let done_ns = self.done_ns();
            if done_ns.is_some() || Instant::now() >= deadline {
                return Ok(done_ns);
            }
            drop(self.shared.wait(STEP, |p| p.over));
        }
    }

    fn stop(&self) {
        if self.done_ns().is_none() {
            self.shared.interrupted.store(true, Relaxed);
        }
    }

    fn finish(mut self: Box<Self>, _expect_sent: Option<&[u64]>) -> SideResult {
        drop(self.shared.wait(END_LIMIT, |p| p.over));
        self.shared.interrupted.store(true, Relaxed);
        let readings = self.thread.take().and_then(|t| t.join().ok()).unwrap_or_default();
        let mut streams = self.gates.results(self.streams);
        for (stream, reading) in streams.iter_mut().zip(readings) {
            stream.latency = reading.latency;
            stream.error = reading.error;
        }
        SideResult { streams, threads: self.gates.threads(), strays: 0 }
    }
}

impl Drop for Dut {
    fn drop(&mut self) {
        self.shared.interrupted.store(true, Relaxed);
        if let Some(thread) = self.thread.take() {
            // Whoever drops a side does not want its result.
            let _result = thread.join();
        }
    }
}
