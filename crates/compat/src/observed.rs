//! A run as the project's own record has it: what this end measured, and what the other end told of itself.

use std::net::{IpAddr, SocketAddr};
use std::path::Path;

use linerate_link::{inventory, links};
use linerate_meter::{Meter, Sample, difference};
use linerate_model::Trial;
use linerate_model::counters::{CpuTime, MachineCpu, MeterReading, ThreadReading};
use linerate_model::environment::Environment;
use linerate_model::reading::{Flow, Knowledge, Reading, StreamReading, TcpReading, Window};
use linerate_model::trial::Side;
use linerate_sys::clock;
use nix::sys::resource::{UsageWho, getrusage};
use nix::sys::time::TimeValLike;

/// One run, ready to become a record.
#[derive(Debug, Clone)]
pub struct Observed {
    /// `netperf`, `iperf3`, `uperf` or `ttcp`.
    pub tool: &'static str,
    /// Which node this end is.
    pub side: Side,
    /// When it began, nanoseconds since the epoch.
    pub started_at_ns: u64,
    /// What was asked for.
    pub trial: Trial,
    /// A signal ended it.
    pub interrupted: bool,
    /// This node.
    pub environment: Environment,
    /// What this end measured.
    pub near: Reading,
    /// What the other end told.
    pub far: Reading,
    /// The other end: host and port.
    pub remote: (String, u16),
    /// Both ends are on this machine.
    pub shared_kernel: bool,
}

/// Keeps a run in a file of records; whoever calls a front end says how.
///
/// # Errors
/// Why the file can't be read or written.
pub type Keep = fn(&Path, Observed) -> Result<(), String>;

/// Watches this node while a test runs.
#[derive(Debug)]
pub struct Watch {
    environment: Environment,
    meter: Option<Meter>,
    failure: Option<String>,
    begun: Option<Begun>,
    ended: Option<Sampled>,
    own_address: IpAddr,
}

#[derive(Debug)]
struct Begun {
    at: Sampled,
    realtime_ns: u64,
}

#[derive(Debug)]
struct Sampled {
    at_ns: u64,
    process_cpu_ns: u64,
    meter: Option<Sample>,
}

impl Watch {
    /// Reads what this machine is, and what link it has `local` on. What can't be read is told in the record.
    pub fn open(local: IpAddr) -> Self {
        let own_address = local.to_canonical();
        let name = links::all().ok().and_then(|all| {
            all.into_iter().find(|l| l.addresses.iter().any(|a| a.address == own_address)).map(|l| l.name)
        });
        let mut environment = linerate_meter::environment();
        environment.linerate_version = env!("CARGO_PKG_VERSION").to_owned();
        match name.as_deref().map(inventory::describe).transpose() {
            Ok(link) => environment.link = link,
            Err(error) => environment.unavailable.push(error.to_string()),
        }
        let (meter, failure) = match Meter::open(name.as_deref()) {
            Ok(meter) => (Some(meter), None),
            Err(error) => (None, Some(error.to_string())),
        };
        Self { environment, meter, failure, begun: None, ended: None, own_address }
    }

    /// Samples everything: the window begins. Again: it begins anew.
    pub fn begin(&mut self) {
        let at = self.sample();
        self.begun = Some(Begun { at, realtime_ns: clock::realtime_ns() });
    }

    /// Samples everything: the window ends.
    pub fn end(&mut self) {
        self.ended = Some(self.sample());
    }

    /// Ends the window where it has not ended yet.
    pub fn end_once(&mut self) {
        if self.ended.is_none() {
            self.end();
        }
    }

    fn sample(&mut self) -> Sampled {
        Sampled {
            at_ns: clock::monotonic_ns(),
            process_cpu_ns: process_cpu_ns(),
            meter: self.meter.as_mut().map(Meter::sample),
        }
    }

    /// Whether the other end is on this machine too.
    pub fn is_own(&self, remote: IpAddr) -> bool {
        let remote = remote.to_canonical();
        remote.is_loopback() || remote == self.own_address
    }

    /// When the window began, nanoseconds since the epoch.
    pub fn started_at_ns(&self) -> u64 {
        self.begun.as_ref().map_or_else(clock::realtime_ns, |begun| begun.realtime_ns)
    }

    /// This machine.
    pub fn environment(&self) -> Environment {
        self.environment.clone()
    }

    /// What this end measured. `elapsed_ns` is the tool's own time for the test, where it has one: else the window's.
    pub fn reading(&self, streams: Vec<StreamReading>, elapsed_ns: Option<u64>) -> Reading {
        let (Some(Begun { at: begun, .. }), Some(ended)) = (&self.begun, &self.ended) else {
            return Reading { streams, ..Reading::default() };
        };
        let sampled_ns = ended.at_ns.saturating_sub(begun.at_ns);
        let mut meter = match (&begun.meter, &ended.meter) {
            (Some(before), Some(after)) => difference(before, after),
            _ => MeterReading::default(),
        };
        meter.unavailable.extend(self.failure.clone());
        let process = ThreadReading {
            role: "process".to_owned(),
            tid: std::process::id(),
            on_cpu_ns: ended.process_cpu_ns.saturating_sub(begun.process_cpu_ns),
            ..ThreadReading::default()
        };
        Reading {
            window: Window {
                start_ns: begun.at_ns,
                duration_ns: elapsed_ns.unwrap_or(sampled_ns),
                ..Window::default()
            },
            streams,
            threads: vec![process],
            meter,
            ..Reading::default()
        }
    }
}

fn process_cpu_ns() -> u64 {
    let Ok(usage) = getrusage(UsageWho::RUSAGE_SELF) else { return 0 };
    let us = usage.user_time().num_microseconds() + usage.system_time().num_microseconds();
    us.max(0).unsigned_abs() * 1000
}

/// What another program told of its end: nothing, where it told of no stream.
pub fn told(streams: Vec<StreamReading>, elapsed_ns: u64) -> Reading {
    let knowledge = if streams.is_empty() { Knowledge::Untold } else { Knowledge::Told };
    let window = Window { duration_ns: elapsed_ns, ..Window::default() };
    Reading { knowledge, window, streams, ..Reading::default() }
}

/// CPU time of a machine that told how busy it was: a share of all its CPUs, from 0 to 1.
pub fn machine_told(share: f64, cpus: u32, elapsed_ns: u64, source: &str) -> MachineCpu {
    let busy_ns = (share * f64::from(cpus) * elapsed_ns as f64) as u64;
    MachineCpu {
        window_ns: elapsed_ns,
        total: CpuTime { busy_ns, ..CpuTime::default() },
        source: source.to_owned(),
        ..MachineCpu::default()
    }
}

/// CPU time of a process that told it.
pub fn process_told(percent: f64, elapsed_ns: u64) -> Vec<ThreadReading> {
    let on_cpu_ns = (percent / 100.0 * elapsed_ns as f64) as u64;
    vec![ThreadReading { role: "process".to_owned(), on_cpu_ns, ..ThreadReading::default() }]
}

/// A sender's TCP state of which only this is known.
pub fn tcp_told(retransmits: u64, send_mss_bytes: u32) -> Vec<TcpReading> {
    vec![TcpReading { retransmits, send_mss_bytes, ..TcpReading::default() }]
}

/// A stream with its addresses.
pub fn stream(
    index: usize,
    ends: Option<(SocketAddr, SocketAddr)>,
    sent: Flow,
    received: Flow,
) -> StreamReading {
    StreamReading {
        index: u32::try_from(index).unwrap_or(u32::MAX),
        local: ends.map(|(local, _)| local),
        remote: ends.map(|(_, remote)| remote),
        sent,
        received,
        ..StreamReading::default()
    }
}
