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
use super::results::{CpuPercent, Results};
use super::{outcome, sockets};

/// How long a sender in a call may take to notice the stop.
const STOP_LIMIT: Duration = Duration::from_millis(500);

/// Time without progress after which unsent bytes are given up, nanoseconds.
const DRAIN_STALL_NS: u64 = 1_000_000_000;

/// Time without an arrival after which bytes under way are given up while their number is not known, nanoseconds.
const QUIET_NS: u64 = 200_000_000;

/// The same while it is known that more were sent, nanoseconds: a lost segment may be sent again late.
const TAIL_QUIET_NS: u64 = 1_000_000_000;

/// The same for datagrams, which nobody sends again, nanoseconds.
const DATAGRAM_QUIET_NS: u64 = 100_000_000;

/// Longest wait for the tail, nanoseconds: less than the 10 s that the far side waits for results.
const TAIL_LIMIT_NS: u64 = 7_000_000_000;

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

    /// Stops senders and takes final counts. Receivers go on; over TCP what still comes counts only where all that was sent
    /// does (see [`Traffic::read_tail`]).
    pub(super) fn finish(&mut self) -> Option<Interval> {
        if self.end_ns.is_some() {
            return None;
        }
        self.stop_senders();
        let end_ns = self.own_end_ns().unwrap_or_else(clock::monotonic_ns);
        self.close(end_ns)
    }

    /// As [`Traffic::finish`] for a test that failed: waits for nothing that is under way.
    pub(super) fn cut(&mut self) -> Option<Interval> {
        if self.end_ns.is_some() {
            return None;
        }
        self.stop_senders();
        self.close(clock::monotonic_ns())
    }

    fn stop_senders(&self) {
        self.shared.stop();
        let waited = clock::monotonic_ns();
        while !self.shared.senders_left() && clock::monotonic_ns() - waited < STOP_LIMIT.as_nanos() as u64 {
            thread::sleep(Duration::from_micros(200));
        }
    }

    fn close(&mut self, end_ns: u64) -> Option<Interval> {
        self.end_ns = Some(end_ns);
        let interval = self.progress.as_mut().and_then(|p| p.finish(end_ns));
        if self.server && self.params.transport == Transport::Tcp {
            // A client up to 3.15 may be waiting for the rest of a block, and would never send its results; and a client
            // that takes all that was sent waits for its end.
            for stream in self.senders() {
                // The client may have closed it already.
                let _closed = stream.socket.shutdown(std::net::Shutdown::Write);
            }
        }
        interval
    }

    /// Whether all that was sent counts, not just what came in time: a number of bytes or blocks, or a file.
    fn whole(&self) -> bool {
        self.params.target_bytes().is_some() || self.file.is_some()
    }

    /// A server's clock stops when the last byte came of a number that was asked for, or of a file: the client's word that the
    /// test is over can overtake them.
    fn own_end_ns(&self) -> Option<u64> {
        if !self.server || !self.whole() || self.receivers().next().is_none() {
            return None;
        }
        let counted = self.params.target_bytes().is_some() && self.senders().next().is_none();
        let here = || if counted { self.shared.all_received() } else { self.nothing_unread() };
        Some(self.read_until(here, QUIET_NS))
    }

    /// Reads what the far side sent before the end and what is still under way, or waits in the socket for a thread that is
    /// late; `far` is what the far side says that it sent, where that is known yet. Bounded in time.
    pub(super) fn read_tail(&mut self, far: Option<&Results>) {
        match self.params.transport {
            Transport::Udp => {
                self.read_until(|| self.nothing_unread() && self.datagrams_are_here(far), DATAGRAM_QUIET_NS);
            }
            Transport::Tcp if self.whole() => {
                let last_ns =
                    self.read_until(|| self.nothing_unread() && self.bytes_are_here(far), TAIL_QUIET_NS);
                if let Some(progress) = &mut self.progress {
                    progress.count_tail(last_ns);
                }
            }
            // What is still under way does not count, and nobody wants it.
            Transport::Tcp => {}
        }
    }

    /// Waits for `here`, for the end of all receivers, or until nothing came for `quiet_ns` with nothing left to read.
    /// Returns when the last bytes came.
    fn read_until(&self, here: impl Fn() -> bool, quiet_ns: u64) -> u64 {
        let begin_ns = clock::monotonic_ns();
        let mut silence = Silence::default();
        loop {
            let now_ns = clock::monotonic_ns();
            let silent_ns = silence.note(self.received(), now_ns);
            let given_up = silent_ns > quiet_ns && self.nothing_unread();
            if here() || self.receivers_left() || given_up || now_ns - begin_ns > TAIL_LIMIT_NS {
                return now_ns - silent_ns;
            }
            thread::sleep(Duration::from_micros(500));
        }
    }

    fn nothing_unread(&self) -> bool {
        // Where the kernel does not tell, what comes or not decides.
        self.receivers().all(|s| sockopt::unread_bytes(&*s.socket).unwrap_or(0) == 0)
    }

    /// Whether as many bytes came as the far side sent. Until that is known (a client's results go first), only the end of the
    /// connections tells, which a server makes when it stops.
    fn bytes_are_here(&self, far: Option<&Results>) -> bool {
        let Some(far) = far else { return self.shared.all_received() };
        self.streams.iter().enumerate().filter(|(_, s)| !s.sends).all(|(index, stream)| {
            let omitted = self.progress.as_ref().map_or(0, |p| p.totals(index).omitted.bytes);
            let sent = far.stream(index).map_or(0, |f| f.bytes.saturating_add(omitted));
            stream.counters.bytes.load(Relaxed) >= sent
        })
    }

    /// Whether the last datagram that the far side sent is here.
    fn datagrams_are_here(&self, far: Option<&Results>) -> bool {
        self.streams.iter().enumerate().filter(|(_, s)| !s.sends).all(|(index, stream)| {
            let sent = far.and_then(|f| f.stream(index)).map_or(0, |f| f.packets);
            stream.counters.packets.load(Relaxed) >= u64::try_from(sent).unwrap_or(0)
        })
    }

    /// Whether no thread receives any more: connections are at their end.
    fn receivers_left(&self) -> bool {
        self.shared.receivers_left()
    }

    fn received(&self) -> u64 {
        self.receivers().map(|s| s.counters.bytes.load(Relaxed)).sum()
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

    fn receivers(&self) -> impl Iterator<Item = &Stream> {
        self.streams.iter().filter(|s| !s.sends)
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
