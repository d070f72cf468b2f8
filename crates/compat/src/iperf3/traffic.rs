//! The data part of a test, which is the same on both sides: streams, their threads, their samples.

use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::thread::{self, JoinHandle};
use std::time::Duration;

use linerate_sys::{clock, sockopt};
use nix::sys::resource::UsageWho;
use socket2::Socket;

use super::error::TestError;
use super::lane::{self, Counters, CpuTime, Shared, SharedFile, Stream};
use super::params::{Params, Transport};
use super::progress::{Progress, descriptor};
use super::report::{Interval, Started, StreamEnds};
use super::results::CpuPercent;
use super::{outcome, sockets};

/// How long a sender in a call may take to notice the stop.
const STOP_LIMIT: Duration = Duration::from_millis(500);

/// Time without progress after which unsent bytes are given up, nanoseconds.
const DRAIN_STALL_NS: u64 = 1_000_000_000;

/// All streams of a test.
pub(super) struct Traffic {
    params: Params,
    interval_s: f64,
    server: bool,
    streams: Vec<Stream>,
    pub(super) shared: Arc<Shared>,
    threads: Vec<JoinHandle<()>>,
    progress: Option<Progress>,
    file: SharedFile,
    end_ns: Option<u64>,
    silence: Silence,
    drain: Silence,
}

/// When something last changed.
#[derive(Debug, Default)]
struct Silence {
    value: u64,
    since_ns: u64,
}

impl Silence {
    /// How long `value` has been the same, nanoseconds.
    fn note(&mut self, value: u64, now_ns: u64) -> u64 {
        if value != self.value || self.since_ns == 0 {
            (self.value, self.since_ns) = (value, now_ns);
        }
        now_ns - self.since_ns
    }
}

impl Traffic {
    pub(super) fn new(
        params: &Params,
        interval_s: f64,
        server: bool,
        file: SharedFile,
    ) -> Result<Self, TestError> {
        // A client that sends a file ends with it.
        let limited = params.target_bytes().is_some() || (file.is_some() && !server && !params.reverse);
        Ok(Self {
            params: params.clone(),
            interval_s,
            server,
            streams: Vec::new(),
            shared: Arc::new(Shared::new(limited)?),
            threads: Vec::new(),
            progress: None,
            file,
            end_ns: None,
            silence: Silence::default(),
            drain: Silence::default(),
        })
    }

    /// Adds the next stream in order of creation; a receiver begins at once.
    pub(super) fn add(&mut self, socket: Socket) -> Result<(), TestError> {
        lane::prepare(&socket, &self.params)?;
        let (local, remote) = sockets::ends(&socket)?;
        let index = self.streams.len() as u32;
        let sends = self.params.client_sends(index) != self.server;
        let stream = Stream {
            sends,
            socket: Arc::new(socket),
            local,
            remote,
            counters: Arc::new(Counters::default()),
        };
        if !sends {
            self.spawn(&stream)?;
        }
        self.streams.push(stream);
        Ok(())
    }

    pub(super) fn len(&self) -> usize {
        self.streams.len()
    }

    /// What is told of the streams when they are complete.
    pub(super) fn started(&self) -> Started {
        let ends = |s: &Stream| StreamEnds { socket: descriptor(s), local: s.local, remote: s.remote };
        let first = self.streams.first();
        let buffers = first.map_or((0, 0), |s| {
            let of = |bytes: linerate_sys::Result<u32>| bytes.unwrap_or(0);
            (of(sockopt::send_buffer(&*s.socket)), of(sockopt::receive_buffer(&*s.socket)))
        });
        let tcp = self.params.transport == Transport::Tcp;
        let mss = first.filter(|_| tcp).and_then(|s| sockopt::mss(&*s.socket).ok());
        Started {
            streams: self.streams.iter().map(ends).collect(),
            buffers,
            mss,
            interval_s: self.interval_s,
        }
    }

    /// The clocks start.
    pub(super) fn start(&mut self, now_ns: u64) {
        let progress =
            Progress::new(self.streams.clone(), &self.params, self.interval_s, now_ns, self.server);
        if !progress.omitting() {
            self.set_target();
        }
        self.progress = Some(progress);
    }

    /// Senders start.
    pub(super) fn run(&mut self) -> Result<(), TestError> {
        for stream in self.streams.clone().iter().filter(|s| s.sends) {
            self.spawn(stream)?;
        }
        Ok(())
    }

    /// When [`Traffic::tick`] has something to do.
    pub(super) fn next_ns(&self) -> u64 {
        self.progress.as_ref().filter(|_| self.end_ns.is_none()).map_or(u64::MAX, Progress::next_ns)
    }

    /// The interval that is over.
    pub(super) fn tick(&mut self, now_ns: u64) -> Option<Interval> {
        if self.end_ns.is_some() {
            return None;
        }
        let progress = self.progress.as_mut()?;
        let omitting = progress.omitting();
        let interval = progress.tick(now_ns)?;
        if omitting && !progress.omitting() {
            self.set_target();
        }
        Some(interval)
    }

    /// Whether the numbers of bytes that were asked for are moved: sent ones must have left the socket too.
    pub(super) fn target_reached(&mut self, now_ns: u64) -> bool {
        let receives = self.streams.iter().any(|s| !s.sends);
        if receives && self.shared.all_received() {
            return true;
        }
        if !self.sending_is_done() {
            return false;
        }
        let unsent: u64 =
            self.senders().map(|s| u64::from(sockopt::unsent_bytes(&*s.socket).unwrap_or(0))).sum();
        unsent == 0 || self.drain.note(unsent, now_ns) > DRAIN_STALL_NS
    }

    /// Whether senders have handed over all that was asked; the rest is to wait for the kernel.
    pub(super) fn sending_is_done(&self) -> bool {
        self.streams.iter().any(|s| s.sends) && self.progress.is_some() && self.shared.all_sent()
    }

    /// Why a stream failed.
    pub(super) fn take_failure(&self) -> Option<TestError> {
        self.shared.take_failure()
    }

    /// How long nothing has come, if this side receives.
    pub(super) fn silence(&mut self, now_ns: u64) -> Duration {
        let receives = self.streams.iter().any(|s| !s.sends);
        let Some(progress) = self.progress.as_ref().filter(|_| receives && self.end_ns.is_none()) else {
            return Duration::ZERO;
        };
        Duration::from_nanos(self.silence.note(progress.bytes_so_far(true), now_ns))
    }

    /// Bytes so far, both ways.
    pub(super) fn bytes_so_far(&self) -> u64 {
        self.progress.as_ref().map_or(0, |p| p.bytes_so_far(false))
    }

    /// Whether the time that counts, and what is omitted before it, is over.
    pub(super) fn finished(&self) -> bool {
        self.end_ns.is_some()
    }

    /// Stops senders and takes final counts. Receivers go on, uncounted for TCP.
    pub(super) fn finish(&mut self) -> Option<Interval> {
        if self.end_ns.is_some() {
            return None;
        }
        self.shared.stop();
        let waited = clock::monotonic_ns();
        while !self.shared.senders_left() && clock::monotonic_ns() - waited < STOP_LIMIT.as_nanos() as u64 {
            thread::sleep(Duration::from_micros(200));
        }
        let end_ns = self.target_end_ns().unwrap_or_else(clock::monotonic_ns);
        self.end_ns = Some(end_ns);
        let interval = self.progress.as_mut().and_then(|p| p.finish(end_ns));
        if self.server && self.params.transport == Transport::Tcp {
            // A client up to 3.15 may be waiting for the rest of a block, and would never send its results.
            for stream in self.senders() {
                // The client may have closed it already.
                let _closed = stream.socket.shutdown(std::net::Shutdown::Write);
            }
        }
        interval
    }

    /// A receiver of a set number of bytes is given time for those under way; returns when the last came.
    fn target_end_ns(&self) -> Option<u64> {
        let sends = self.streams.iter().any(|s| s.sends);
        if sends || !self.server || self.params.target_bytes().is_none() {
            return None;
        }
        let mut silence = Silence::default();
        loop {
            let now_ns = clock::monotonic_ns();
            let bytes = self.bytes_so_far();
            let quiet_ns = silence.note(bytes, now_ns);
            if self.shared.all_received() || quiet_ns > 200_000_000 {
                return Some(now_ns - quiet_ns.min(200_000_000));
            }
            thread::sleep(Duration::from_micros(500));
        }
    }

    /// Ends all threads and closes nothing yet. Counts are final afterwards.
    pub(super) fn leave(&mut self) {
        self.shared.stop();
        self.shared.leave();
        for thread in self.threads.drain(..) {
            // A thread that panicked has been reported by the panic itself.
            let _ended = thread.join();
        }
    }

    /// CPU percent of this test's threads and the calling one, `before` being the latter's at the start.
    pub(super) fn cpu_of_threads(&self, before: CpuTime, start_ns: u64) -> CpuPercent {
        let mut used = CpuTime::of(UsageWho::RUSAGE_THREAD).since(before);
        used.add(self.shared.cpu());
        outcome::cpu_percent(used, self.end_ns.unwrap_or_else(clock::monotonic_ns).saturating_sub(start_ns))
    }

    /// The samples, once started.
    pub(super) fn progress(&self) -> Option<&Progress> {
        self.progress.as_ref()
    }

    fn senders(&self) -> impl Iterator<Item = &Stream> {
        self.streams.iter().filter(|s| s.sends)
    }

    fn set_target(&self) {
        if let Some(bytes) = self.params.target_bytes() {
            let already: u64 = self.streams.iter().map(|s| s.counters.bytes.load(Relaxed)).sum();
            let already =
                if self.params.omit_s == 0 && self.streams.iter().all(|s| !s.sends) { already } else { 0 };
            self.shared.set_target(bytes.saturating_sub(already));
        }
    }

    fn spawn(&mut self, stream: &Stream) -> Result<(), TestError> {
        self.threads.push(lane::spawn(stream, &self.params, &self.shared, self.file.clone())?);
        Ok(())
    }
}

impl Drop for Traffic {
    fn drop(&mut self) {
        self.leave();
    }
}
