//! One thread of traffic: where it runs, what it reports, and what it hands back at its end.

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::thread::{self, JoinHandle};

use linerate_model::latency::LatencyHistogram;
use linerate_model::reading::{UdpReading, VerifyReading, ZeroCopyReading};
use linerate_sys::{SysError, affinity, clock};
use nix::errno::Errno;

use crate::control::{Control, Counters};
use crate::error::{Result, TrafficError};

/// What a traffic thread does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Role {
    /// Sends a stream.
    Send,
    /// Receives a stream.
    Receive,
    /// Sends requests and waits for the responses.
    Request,
    /// Answers requests.
    Respond,
    /// Does what a profile says.
    Strand,
}

impl Role {
    /// The word for it, as records have it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Send => "send",
            Self::Receive => "receive",
            Self::Request => "request",
            Self::Respond => "respond",
            Self::Strand => "strand",
        }
    }

    /// Whether it moves by itself rather than in answer to the other end.
    pub(crate) fn is_active(self) -> bool {
        matches!(self, Self::Send | Self::Request)
    }
}

/// What a thread found, beside its counters.
#[derive(Debug, Default)]
pub(crate) struct Outcome {
    pub(crate) udp: Option<UdpReading>,
    pub(crate) latency: Option<LatencyHistogram>,
    pub(crate) verify: Option<VerifyReading>,
    pub(crate) zerocopy: Option<ZeroCopyReading>,
    /// When the last datagram came, nanoseconds of CLOCK_MONOTONIC; only where a count ends the trial.
    pub(crate) last_received_ns: Option<u64>,
}

/// The work of a thread: prepares its buffers, calls [`LaneContext::ready`], then moves bytes until it is done or stopped.
pub(crate) type Work = Box<dyn FnOnce(&LaneContext) -> Result<Outcome> + Send>;

/// A thread to be started.
pub(crate) struct LanePlan {
    pub(crate) stream: u32,
    pub(crate) role: Role,
    pub(crate) remote: SocketAddr,
    pub(crate) work: Work,
}

/// A started thread.
#[derive(Debug)]
pub(crate) struct Lane {
    pub(crate) stream: u32,
    pub(crate) role: Role,
    pub(crate) cpu: Option<u32>,
    pub(crate) counters: Arc<Counters>,
    pub(crate) thread: JoinHandle<(Result<Outcome>, u64)>,
}

/// What a thread's work has at hand.
pub(crate) struct LaneContext {
    pub(crate) stream: u32,
    pub(crate) role: Role,
    pub(crate) remote: SocketAddr,
    pub(crate) control: Arc<Control>,
    pub(crate) counters: Arc<Counters>,
}

impl Lane {
    /// Starts the thread, pinned to `cpu`.
    pub(crate) fn spawn(plan: LanePlan, cpu: Option<u32>, control: Arc<Control>) -> Result<Self> {
        let LanePlan { stream, role, remote, work } = plan;
        let counters = Arc::new(Counters::default());
        let context = LaneContext { stream, role, remote, control, counters: counters.clone() };
        let name = format!("lr-{}-{stream}", role.name());
        let thread = thread::Builder::new()
            .name(name.clone())
            .spawn(move || run(&context, cpu, work))
            .map_err(|e| SysError::new("start thread", name, e))?;
        Ok(Self { stream, role, cpu, counters, thread })
    }
}

/// Counts a thread as ended even if it panics.
struct EndGuard<'a>(&'a Control);

impl Drop for EndGuard<'_> {
    fn drop(&mut self) {
        self.0.note(|p| p.ended += 1);
    }
}

/// Returns the outcome and the thread's CPU time, nanoseconds.
fn run(context: &LaneContext, cpu: Option<u32>, work: Work) -> (Result<Outcome>, u64) {
    let _ended = EndGuard(&context.control);
    context.counters.set_tid(affinity::thread_id());
    let result = settle(cpu).and_then(|()| work(context));
    if let Err(e) = &result
        && !matches!(e, TrafficError::Stopped)
    {
        context.control.note(|p| p.failures.push((context.stream, e.to_string())));
    }
    (result, clock::thread_cpu_ns())
}

fn settle(cpu: Option<u32>) -> Result<()> {
    if let Some(cpu) = cpu {
        affinity::pin_thread(&[cpu as usize])?;
    }
    clock::set_timer_slack(1)?;
    Ok(())
}

impl LaneContext {
    /// Reports that this thread is prepared; returns the instant from which it may move bytes.
    pub(crate) fn ready(&self) -> Result<u64> {
        self.control.ready(self.role.is_active()).ok_or(TrafficError::Stopped)
    }

    /// The error of a failed `operation`.
    pub(crate) fn failed(&self, operation: &'static str, cause: Errno) -> TrafficError {
        let source = io::Error::from(cause);
        TrafficError::Stream { stream: self.stream, remote: self.remote, operation, source }
    }

    /// The end of a thread whose call failed: fine once the trial is stopped, since then the sockets are shut down.
    pub(crate) fn failed_unless_stopped(&self, operation: &'static str, cause: Errno) -> Result<()> {
        if self.control.stopped() { Ok(()) } else { Err(self.failed(operation, cause)) }
    }

    /// The other end closed after `bytes` came: fine after the window, else the stream ended too early.
    pub(crate) fn closed(&self, bytes: u64) -> Result<()> {
        use crate::control::Phase;
        match self.control.phase() {
            Some(Phase::Warmup | Phase::Window) => {
                Err(TrafficError::PeerClosed { stream: self.stream, remote: self.remote, bytes })
            }
            Some(Phase::Tail) | None => Ok(()),
        }
    }
}
