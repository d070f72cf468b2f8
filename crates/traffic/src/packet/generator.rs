//! Probe frames by the million, on a thread of their own.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{self, Receiver};
use std::thread::JoinHandle;
use std::time::Duration;

use linerate_model::bench::probe::{self, ETHER_TYPE, ProbeId};
use linerate_model::bench::{GenerateReport, GenerateSpec};
use linerate_sys::{SysError, clock};

use super::port::Port;
use super::{PacketError, Result};

/// Frames in one system call.
const BATCH: usize = 64;
/// Longest sleep before the stop flag is looked at again.
const LONGEST_SLEEP_NS: u64 = 20_000_000;
/// Pause after the kernel had no room, and after another refusal.
const NO_ROOM_PAUSE_NS: u64 = 20_000;
const REFUSED_PAUSE_NS: u64 = 1_000_000;
const NS_PER_SECOND: u128 = 1_000_000_000;
const ADDRESSES_BYTES: usize = 12;

/// A generator at work. Dropping it stops it.
pub struct Generator {
    stop: Arc<AtomicBool>,
    report: Receiver<GenerateReport>,
    thread: Option<JoinHandle<()>>,
}

impl Generator {
    /// Opens its port and starts to send.
    ///
    /// # Errors
    /// No such link, no permission; frames that are too short for their headers, or too long.
    pub fn start(spec: GenerateSpec) -> Result<Self> {
        let frames = Frames::new(&spec)?;
        let mut options = spec.port.clone();
        options.send_only = true;
        let port = Port::open(&options)?;
        let stop = Arc::new(AtomicBool::new(false));
        let (sender, report) = mpsc::channel();
        let stopped = Arc::clone(&stop);
        let work = move || {
            let _ = sender.send(generate(port, frames, &spec, &stopped));
        };
        let thread = std::thread::Builder::new()
            .name("generator".to_owned())
            .spawn(work)
            .map_err(|cause| SysError::new("start a thread", "generator", cause))?;
        Ok(Self { stop, report, thread: Some(thread) })
    }

    /// Waits so long for its own end, or until it is told to give up, then stops it.
    ///
    /// # Errors
    /// A bug in its thread.
    pub fn finish(self, wait_ns: u64, give_up: &AtomicBool) -> Result<GenerateReport> {
        let end_ns = clock::monotonic_ns().saturating_add(wait_ns);
        while !give_up.load(Ordering::Relaxed) {
            let left_ns = end_ns.saturating_sub(clock::monotonic_ns());
            if let Ok(report) = self.report.recv_timeout(Duration::from_nanos(left_ns.min(LONGEST_SLEEP_NS)))
            {
                return Ok(report);
            }
            if left_ns == 0 {
                break;
            }
        }
        self.stop.store(true, Ordering::Relaxed);
        self.report.recv().map_err(|_| PacketError::Broken("generator"))
    }
}

impl Drop for Generator {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

/// Makes the frames of a generator, in order.
struct Frames {
    head: Vec<u8>,
    lengths: Vec<usize>,
    id: ProbeId,
    turn: usize,
    timed: bool,
}

impl Frames {
    fn new(spec: &GenerateSpec) -> Result<Self> {
        const LONGEST: usize = 65_550;
        let invalid = |why: String| PacketError::invalid(format!("generate on {}", spec.port.link), why);
        let mut head = [spec.to, spec.from].concat();
        match spec.header.is_empty() {
            true => head.extend(ETHER_TYPE.to_be_bytes()),
            false => head.extend_from_slice(&spec.header),
        }
        debug_assert!(head.len() >= ADDRESSES_BYTES);
        if spec.lengths_bytes.is_empty() {
            return Err(invalid("no frame lengths".to_owned()));
        }
        let lengths: Vec<usize> = spec.lengths_bytes.iter().map(|length| *length as usize).collect();
        if let Some(length) = lengths.iter().find(|length| **length < head.len() || **length > LONGEST) {
            let why = format!("frames of {length} bytes: {} to {LONGEST} are possible", head.len());
            return Err(invalid(why));
        }
        let id = ProbeId { run: spec.run, stream: spec.stream, sequence: 0 };
        Ok(Self { head, lengths, id, turn: 0, timed: spec.timed })
    }

    /// Makes a batch of frames from sequence number `first` on, each of the next length in turn.
    fn fill(&self, first: u64, batch: &mut [Vec<u8>]) {
        for (index, frame) in batch.iter_mut().enumerate() {
            let length = self.lengths[(self.turn + index) % self.lengths.len()];
            frame.clear();
            frame.extend_from_slice(&self.head);
            frame.resize(length, 0);
            let id = ProbeId { sequence: first + index as u64, ..self.id };
            let sent_ns = self.timed.then(clock::realtime_ns);
            probe::write(id, sent_ns, &mut frame[self.head.len()..]);
        }
    }
}

fn generate(mut port: Port, mut frames: Frames, spec: &GenerateSpec, stop: &AtomicBool) -> GenerateReport {
    let mut report = GenerateReport::default();
    let mut batch = vec![Vec::new(); BATCH];
    // Without it a paced frame comes 50 microseconds late; where it is refused, it does.
    let _ = clock::set_timer_slack(1);
    let start_ns = clock::monotonic_ns();
    let end_ns = if spec.duration_ns == 0 { u64::MAX } else { start_ns.saturating_add(spec.duration_ns) };
    let mut last_ns = start_ns;
    while !stop.load(Ordering::Relaxed) && clock::monotonic_ns() < end_ns {
        let left = spec.count.map_or(u64::MAX, |count| count.saturating_sub(report.sent));
        if left == 0 {
            break;
        }
        let due = due(spec.frames_per_second, start_ns, report.sent, end_ns);
        let wanted = (BATCH as u64).min(left).min(due) as usize;
        if wanted == 0 {
            continue; // `due` has slept
        }
        frames.fill(report.sent, &mut batch[..wanted]);
        send(&mut port, &mut frames, &batch[..wanted], &mut report, stop);
        last_ns = clock::monotonic_ns();
    }
    report.elapsed_ns = last_ns - start_ns;
    report
}

/// Sends a batch; ends early where a frame is refused for another reason than room, which changes what comes next.
fn send(
    port: &mut Port,
    frames: &mut Frames,
    batch: &[Vec<u8>],
    report: &mut GenerateReport,
    stop: &AtomicBool,
) {
    let mut first = 0;
    while first < batch.len() && !stop.load(Ordering::Relaxed) {
        match port.send_batch(&batch[first..]) {
            Ok(sent) => {
                report.sent += sent as u64;
                report.sent_bytes += batch[first..first + sent].iter().map(|f| f.len() as u64).sum::<u64>();
                frames.turn = (frames.turn + sent) % frames.lengths.len();
                first += sent;
            }
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) if is_no_room(&error) => {
                report.no_room += 1;
                clock::sleep_until(clock::monotonic_ns() + NO_ROOM_PAUSE_NS);
            }
            Err(error) => {
                let before = report.refused.take().map_or(0, |(_, count)| count);
                report.refused = Some((error.to_string(), before + 1));
                frames.turn = (frames.turn + 1) % frames.lengths.len();
                clock::sleep_until(clock::monotonic_ns() + REFUSED_PAUSE_NS);
                return;
            }
        }
    }
}

fn is_no_room(error: &io::Error) -> bool {
    const ENOBUFS: i32 = 105;
    error.kind() == io::ErrorKind::WouldBlock || error.raw_os_error() == Some(ENOBUFS)
}

/// How many frames are due by now beyond those that are sent. Where none is, sleeps until one is, but not for long, and says 0.
fn due(frames_per_second: u64, start_ns: u64, sent: u64, end_ns: u64) -> u64 {
    if frames_per_second == 0 {
        return u64::MAX;
    }
    let now = clock::monotonic_ns();
    let by_now = u128::from(now - start_ns) * u128::from(frames_per_second) / NS_PER_SECOND + 1;
    let due = by_now.saturating_sub(u128::from(sent));
    if due == 0 {
        let next = u128::from(sent) * NS_PER_SECOND / u128::from(frames_per_second);
        let next_ns = start_ns.saturating_add(u64::try_from(next).unwrap_or(u64::MAX)).min(end_ns);
        clock::sleep_until(next_ns.min(now + LONGEST_SLEEP_NS));
    }
    u64::try_from(due).unwrap_or(u64::MAX)
}
