//! What the emulation of a guest costs the machine that does it, over the window of a trial.

use std::time::{Duration, Instant};

use linerate_agent::launch::vm::{Acceleration, Machine};
use linerate_model::guest::{GuestRecord, HostCpu};
use linerate_sys::process_times::ProcessTimes;

use crate::bench::Pair;

/// Longest console that a record keeps, lines.
const CONSOLE_LINES: usize = 50;

/// The guests of a pair, watched during one trial.
#[derive(Debug)]
pub(crate) struct Watch {
    dut: Option<Watched>,
    peer: Option<Watched>,
    opens_at: Option<Instant>,
}

#[derive(Debug)]
struct Watched {
    machine: Machine,
    console_mark: u64,
    start: Option<(Instant, ProcessTimes)>,
    end: Option<(Instant, ProcessTimes)>,
    /// Its QEMU is counted with the other node.
    counted_elsewhere: bool,
}

impl Watch {
    /// Begins with a trial: what its guests say from now on belongs to it.
    pub(crate) fn begin(pair: &Pair) -> Self {
        let watched = |machine: &Machine, counted_elsewhere| Watched {
            machine: machine.clone(),
            console_mark: machine.console_mark(),
            start: None,
            end: None,
            counted_elsewhere,
        };
        let dut = pair.dut.machine();
        let peer = pair.peer.machine();
        let one = dut.zip(peer).is_some_and(|(dut, peer)| dut.pid() == peer.pid());
        Self {
            dut: dut.map(|machine| watched(machine, false)),
            peer: peer.map(|machine| watched(machine, one)),
            opens_at: None,
        }
    }

    /// The window opens at this instant of our own clock.
    pub(crate) fn opens_at(&mut self, at: Instant) {
        self.opens_at = Some(at);
    }

    /// How long it is until the window opens; `None` where nothing waits for that.
    pub(crate) fn opens_in(&self) -> Option<Duration> {
        let watched = self.dut.is_some() || self.peer.is_some();
        self.opens_at.filter(|_| watched).map(|at| at.saturating_duration_since(Instant::now()))
    }

    /// To be called when the window opens, and as often as one likes: samples once it is open.
    pub(crate) fn look(&mut self) {
        if self.opens_at.is_some_and(|at| Instant::now() >= at) {
            self.opens_at = None;
            self.each(|guest| guest.start = guest.sample());
        }
    }

    /// The window has closed.
    pub(crate) fn close(&mut self) {
        self.each(|guest| guest.end = guest.sample());
    }

    /// What is to be kept of the dut's guest and of the peer's.
    pub(crate) fn records(self) -> [Option<GuestRecord>; 2] {
        [self.dut, self.peer].map(|guest| guest.map(Watched::record))
    }

    fn each(&mut self, act: impl Fn(&mut Watched)) {
        self.dut.iter_mut().chain(self.peer.iter_mut()).for_each(act);
    }
}

impl Watched {
    fn sample(&self) -> Option<(Instant, ProcessTimes)> {
        Some((Instant::now(), self.machine.host_cpu().ok()?))
    }

    fn record(self) -> GuestRecord {
        let facts = self.machine.facts();
        let cpu = self.start.zip(self.end).filter(|_| !self.counted_elsewhere);
        let mut console = self.machine.console_since(self.console_mark);
        let console = console.split_off(console.len().saturating_sub(CONSOLE_LINES));
        GuestRecord {
            profile: facts.profile.clone(),
            emulator: format!("QEMU {}", facts.qemu),
            emulated: facts.acceleration == Acceleration::Software,
            why_emulated: facts.why_software.clone(),
            host_cpu: cpu.map(|((from, before), (to, after))| {
                let used = after.since(before);
                HostCpu {
                    window_ns: u64::try_from(to.duration_since(from).as_nanos()).unwrap_or(u64::MAX),
                    user_ns: used.user_ns,
                    system_ns: used.system_ns,
                }
            }),
            console,
        }
    }
}
