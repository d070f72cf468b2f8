//! Threads that move a stream's bytes, and the counters that their owner reads.

use std::fs::File;
use std::io::{self, Read, Write};
use std::net::SocketAddr;
use std::os::fd::{AsRawFd, OwnedFd};
use std::path::Path;
use std::sync::atomic::{
    AtomicBool, AtomicI64, AtomicU8, AtomicU64, AtomicUsize, Ordering, Ordering::Relaxed,
};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use linerate_sys::{SysError, clock, memfd, sockopt};
use nix::errno::Errno;
use nix::sys::eventfd::{EfdFlags, EventFd};
use nix::sys::resource::{UsageWho, getrusage};
use nix::sys::socket::{self, MsgFlags};
use socket2::Socket;

use super::error::TestError;
use super::params::{Params, Transport};
use super::{lane_udp, pace::Pace};

/// How long a blocked call may sleep before it looks at the state.
pub(super) const CALL_LIMIT: Duration = Duration::from_millis(20);

const RUN: u8 = 0;
const STOP: u8 = 1;
const LEAVE: u8 = 2;

/// A stream's counts, on cache lines of their own. Written by its thread only.
#[derive(Debug, Default)]
#[repr(align(128))]
pub(super) struct Counters {
    pub(super) bytes: AtomicU64,
    /// Datagrams sent, or the highest number received.
    pub(super) packets: AtomicU64,
    pub(super) lost: AtomicU64,
    pub(super) out_of_order: AtomicU64,
    pub(super) duplicates: AtomicU64,
    /// Seconds, as the bits of an f64.
    pub(super) jitter: AtomicU64,
    /// Set by the owner: the omitted time is over.
    pub(super) restart_jitter: AtomicBool,
    /// Instant of the last arrival, nanoseconds.
    pub(super) last_ns: AtomicU64,
}

/// A stream that stands.
#[derive(Debug, Clone)]
pub(super) struct Stream {
    /// This side sends on it.
    pub(super) sends: bool,
    pub(super) socket: Arc<Socket>,
    pub(super) local: SocketAddr,
    pub(super) remote: SocketAddr,
    pub(super) counters: Arc<Counters>,
}

/// CPU time, nanoseconds.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct CpuTime {
    pub(super) user_ns: u64,
    pub(super) system_ns: u64,
}

impl CpuTime {
    pub(super) fn of(who: UsageWho) -> Self {
        let Ok(usage) = getrusage(who) else { return Self::default() };
        let ns = |t: nix::sys::time::TimeVal| t.tv_sec() as u64 * 1_000_000_000 + t.tv_usec() as u64 * 1000;
        Self { user_ns: ns(usage.user_time()), system_ns: ns(usage.system_time()) }
    }

    pub(super) fn add(&mut self, other: Self) {
        self.user_ns += other.user_ns;
        self.system_ns += other.system_ns;
    }

    pub(super) fn since(self, earlier: Self) -> Self {
        Self {
            user_ns: self.user_ns.saturating_sub(earlier.user_ns),
            system_ns: self.system_ns.saturating_sub(earlier.system_ns),
        }
    }
}

/// What a test's threads share.
#[derive(Debug)]
pub(super) struct Shared {
    state: AtomicU8,
    /// Bytes that senders may still claim.
    to_send: AtomicI64,
    /// Bytes that receivers still wait for.
    to_receive: AtomicI64,
    /// Senders whose work is not done.
    sending: AtomicUsize,
    /// Receivers whose connection is not at its end.
    receiving: AtomicUsize,
    limited: bool,
    /// Readable when the owner should look.
    pub(super) wake: EventFd,
    failure: Mutex<Option<TestError>>,
    cpu: Mutex<CpuTime>,
}

impl Shared {
    /// `limited`: a number of bytes ends the test.
    pub(super) fn new(limited: bool) -> Result<Self, TestError> {
        let wake = EventFd::from_flags(EfdFlags::EFD_NONBLOCK)
            .map_err(|e| SysError::new("make eventfd", "test", e.into()))?;
        Ok(Self {
            state: AtomicU8::new(RUN),
            to_send: AtomicI64::new(i64::MAX),
            to_receive: AtomicI64::new(i64::MAX),
            sending: AtomicUsize::new(0),
            receiving: AtomicUsize::new(0),
            limited,
            wake,
            failure: Mutex::default(),
            cpu: Mutex::default(),
        })
    }

    /// From now on `bytes` a direction are left to move.
    pub(super) fn set_target(&self, bytes: u64) {
        let bytes = i64::try_from(bytes).unwrap_or(i64::MAX);
        self.to_send.store(bytes, Relaxed);
        self.to_receive.store(bytes, Relaxed);
    }

    /// Takes up to `want` bytes of what is left to send.
    pub(super) fn claim(&self, want: usize) -> usize {
        if !self.limited {
            return want;
        }
        let before = self.to_send.fetch_sub(want as i64, Relaxed);
        usize::try_from(before).unwrap_or(0).min(want)
    }

    /// Bytes came; wakes the owner when they were the last.
    pub(super) fn came(&self, bytes: usize) {
        if !self.limited {
            return;
        }
        let before = self.to_receive.fetch_sub(bytes as i64, Relaxed);
        if before > 0 && before <= bytes as i64 {
            self.wake();
        }
    }

    /// Everything that was to be received is there.
    pub(super) fn all_received(&self) -> bool {
        self.limited && self.to_receive.load(Relaxed) <= 0
    }

    /// Everything that was to be sent is handed to the kernel.
    pub(super) fn all_sent(&self) -> bool {
        self.limited && self.sending.load(Relaxed) == 0 && self.to_send.load(Relaxed) <= 0
    }

    /// No sender is in a call any more.
    pub(super) fn senders_left(&self) -> bool {
        self.sending.load(Relaxed) == 0
    }

    /// No receiver will take anything any more.
    pub(super) fn receivers_left(&self) -> bool {
        self.receiving.load(Ordering::Acquire) == 0
    }

    fn threads_of(&self, stream: &Stream) -> &AtomicUsize {
        if stream.sends { &self.sending } else { &self.receiving }
    }

    /// Senders stop. Receivers go on, so that the peer is never blocked.
    pub(super) fn stop(&self) {
        self.state.fetch_max(STOP, Relaxed);
    }

    /// Every thread leaves.
    pub(super) fn leave(&self) {
        self.state.fetch_max(LEAVE, Relaxed);
    }

    pub(super) fn running(&self) -> bool {
        self.state.load(Relaxed) == RUN
    }

    pub(super) fn leaving(&self) -> bool {
        self.state.load(Relaxed) == LEAVE
    }

    /// Why a stream failed, once.
    pub(super) fn take_failure(&self) -> Option<TestError> {
        self.failure.lock().unwrap_or_else(PoisonError::into_inner).take()
    }

    /// CPU time of threads that are over.
    pub(super) fn cpu(&self) -> CpuTime {
        *self.cpu.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A stream's end is no failure once the test is over.
    fn fail(&self, error: TestError) {
        if self.running() {
            self.fail_at_any_time(error);
        }
    }

    fn fail_at_any_time(&self, error: TestError) {
        self.failure.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert(error);
        self.wake();
    }

    /// The owner looks now.
    pub(super) fn quiet(&self) {
        // Nothing to read is as good.
        let _count = self.wake.read();
    }

    fn wake(&self) {
        // The counter cannot overflow: it would take 2^64 writes.
        let _written = self.wake.write(1);
    }
}

/// Where a sender's bytes come from, or a receiver's go to, instead of memory.
pub(super) type SharedFile = Option<Arc<Mutex<File>>>;

/// Opens a file to send from, or (`write`) to receive into.
pub(super) fn open_file(path: &Path, write: bool) -> Result<SharedFile, TestError> {
    let opened = if write { File::create(path) } else { File::open(path) };
    let file = opened.map_err(|e| SysError::new("open", path.display().to_string(), e))?;
    Ok(Some(Arc::new(Mutex::new(file))))
}

/// Starts the thread of a stream. Senders begin at once.
pub(super) fn spawn(
    stream: &Stream,
    params: &Params,
    shared: &Arc<Shared>,
    file: SharedFile,
) -> Result<JoinHandle<()>, TestError> {
    let (stream, params, shared) = (stream.clone(), params.clone(), shared.clone());
    shared.threads_of(&stream).fetch_add(1, Relaxed);
    let name = if stream.sends { "iperf3-send" } else { "iperf3-recv" };
    let work = move || {
        // Due times are kept to the microsecond; the default slack is 50.
        let _slack = clock::set_timer_slack(1);
        let outcome = match (params.transport, stream.sends) {
            (Transport::Tcp, true) => send_tcp(&stream, &params, &shared, &file),
            (Transport::Tcp, false) => receive_tcp(&stream, &params, &shared, &file),
            (Transport::Udp, true) => lane_udp::send(&stream, &params, &shared),
            (Transport::Udp, false) => lane_udp::receive(&stream, &params, &shared),
        };
        let used = CpuTime::of(UsageWho::RUSAGE_THREAD);
        shared.cpu.lock().unwrap_or_else(PoisonError::into_inner).add(used);
        // Whoever sees that it left sees its counts too.
        shared.threads_of(&stream).fetch_sub(1, Ordering::Release);
        match outcome {
            Ok(()) => shared.wake(),
            Err(error) => shared.fail(error),
        }
    };
    let spawned = thread::Builder::new().name(name.into()).spawn(work);
    Ok(spawned.map_err(|e| SysError::new("start thread", name, e))?)
}

/// One block that is sent again and again.
pub(super) fn payload(len: usize, repeating: bool) -> Vec<u8> {
    if repeating {
        return (0..len).map(|i| b'0' + (i % 10) as u8).collect();
    }
    let mut block = vec![0; len];
    // Any content will do where the kernel has no random bytes.
    let _random = getrandom::fill(&mut block);
    block
}

fn send_tcp(stream: &Stream, params: &Params, shared: &Shared, file: &SharedFile) -> Result<(), TestError> {
    let len = params.len as usize;
    let mut block = payload(len, params.repeating_payload);
    let zerocopy = match (params.zerocopy, file) {
        (true, None) => Some(memfd::memfd_with("iperf3-payload", &block)?),
        _ => None,
    };
    let mut pace = Pace::new(params, len);
    while shared.running() {
        let mut length = shared.claim(len);
        if let Some(file) = file {
            length = read_block(file, &mut block[..length]).map_err(|e| failed(stream, "read file", e))?;
        }
        if length == 0 {
            break;
        }
        if !send_block(stream, shared, &block[..length], zerocopy.as_ref(), &mut pace)? {
            break;
        }
    }
    if file.is_some() && shared.running() {
        shared.to_send.store(0, Relaxed);
    }
    Ok(())
}

/// Hands a block to the kernel, in the pieces that pacing asks for. False once stopped.
fn send_block(
    stream: &Stream,
    shared: &Shared,
    block: &[u8],
    zerocopy: Option<&OwnedFd>,
    pace: &mut Pace,
) -> Result<bool, TestError> {
    let mut at = 0;
    let mut paced = 0;
    while at < block.len() {
        if paced == at {
            paced = (at + pace.piece()).min(block.len());
            if !pace.wait(paced - at, || shared.running()) {
                return Ok(false);
            }
        }
        let sent = match zerocopy {
            None => socket::send(stream.socket.as_raw_fd(), &block[at..paced], MsgFlags::MSG_NOSIGNAL),
            Some(file) => memfd::send_file(&*stream.socket, file, at as u64, paced - at)
                .map_err(|e| e.raw_os_error().map_or(Errno::EIO, Errno::from_raw)),
        };
        match sent {
            Ok(count) => {
                at += count;
                stream.counters.bytes.fetch_add(count as u64, Relaxed);
            }
            // Versions up to 3.15 do nothing else until a block is complete, so it is left unfinished only where it stalls.
            Err(Errno::EINTR | Errno::EAGAIN) if !shared.running() => return Ok(false),
            Err(Errno::EINTR | Errno::EAGAIN) => {}
            Err(error) => return Err(failed(stream, "send", error.into())),
        }
    }
    Ok(shared.running())
}

fn receive_tcp(
    stream: &Stream,
    params: &Params,
    shared: &Shared,
    file: &SharedFile,
) -> Result<(), TestError> {
    let mut buffer = vec![0; params.len as usize];
    let drop_bytes = params.skip_rx_copy && file.is_none();
    let flags = if drop_bytes { MsgFlags::MSG_TRUNC } else { MsgFlags::empty() };
    while !shared.leaving() {
        match socket::recv(stream.socket.as_raw_fd(), &mut buffer, flags) {
            Ok(0) if shared.running() && !shared.all_received() => {
                return Err(TestError::StreamClosed { remote: stream.remote });
            }
            Ok(0) => break,
            Ok(count) => {
                stream.counters.bytes.fetch_add(count as u64, Relaxed);
                shared.came(count);
                if let Some(file) = file {
                    let mut file = file.lock().unwrap_or_else(PoisonError::into_inner);
                    if let Err(error) = file.write_all(&buffer[..count]) {
                        shared.fail_at_any_time(failed(stream, "write file", error));
                        return Ok(());
                    }
                }
            }
            Err(Errno::EINTR | Errno::EAGAIN) => {}
            Err(error) => return Err(failed(stream, "receive", error.into())),
        }
    }
    Ok(())
}

fn read_block(file: &Mutex<File>, block: &mut [u8]) -> io::Result<usize> {
    let mut file = file.lock().unwrap_or_else(PoisonError::into_inner);
    let mut at = 0;
    while at < block.len() {
        match file.read(&mut block[at..])? {
            0 => break,
            count => at += count,
        }
    }
    Ok(at)
}

pub(super) fn failed(stream: &Stream, operation: &'static str, source: io::Error) -> TestError {
    TestError::Stream { operation, remote: stream.remote, source }
}

/// Prepares a stream's socket: calls return within [`CALL_LIMIT`].
pub(super) fn prepare(socket: &Socket, params: &Params) -> Result<(), TestError> {
    let describe = |e| SysError::new("set SO_SNDTIMEO and SO_RCVTIMEO", "stream", e);
    socket.set_write_timeout(Some(CALL_LIMIT)).map_err(describe)?;
    socket.set_read_timeout(Some(CALL_LIMIT)).map_err(describe)?;
    if params.fqrate > 0 {
        sockopt::set_max_pacing_rate(socket, params.fqrate / 8)?;
    }
    Ok(())
}
