//! Probe frames counted and judged as they arrive, on a thread of their own.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread::JoinHandle;

use hdrhistogram::Histogram;
use linerate_model::bench::probe::{self, Probe, ProbeId};
use linerate_model::bench::{FrameIn, Tally, TallySpec};
use linerate_sys::packet::Captured;
use linerate_sys::{SysError, clock};

use super::port::{Port, frame_in};
use super::sequence::{Arrival, Sequences};
use super::{PacketError, Result};

/// Examples kept of damaged frames, and as many of repeated and late ones.
const EXAMPLES: usize = 8;
/// Missing sequence numbers told.
const MISSING: usize = 32;
/// Longest wait before the stop flag is looked at again.
const LONGEST_WAIT_NS: u64 = 20_000_000;
/// How often it is looked whether the thread is over.
const JOIN_POLL_NS: u64 = 1_000_000;
const ADDRESSES_BYTES: usize = 12;
const TAG_BYTES: usize = 4;

/// A tally at work. Dropping it stops it.
pub struct TallyRun {
    orders: Arc<Orders>,
    thread: Option<JoinHandle<Result<Tally>>>,
}

/// What the thread is told.
#[derive(Debug, Default)]
struct Orders {
    stop: AtomicBool,
    /// Once finishing: ends after so long without a probe, and at this time at the latest.
    finishing: AtomicBool,
    idle_ns: AtomicU64,
    end_ns: AtomicU64,
}

impl TallyRun {
    /// Opens its port and starts to count.
    ///
    /// # Errors
    /// No such link, no permission, a ring that is too large.
    pub fn start(spec: TallySpec) -> Result<Self> {
        let mut options = spec.port.clone();
        options.send_only = false;
        let port = Port::open(&options)?;
        let orders = Arc::new(Orders::default());
        let told = Arc::clone(&orders);
        let thread = std::thread::Builder::new()
            .name("tally".to_owned())
            .spawn(move || count(port, Book::new(spec), &told))
            .map_err(|cause| SysError::new("start a thread", "tally", cause))?;
        Ok(Self { orders, thread: Some(thread) })
    }

    /// Ends once no probe came for `idle_ns`, at the latest after `limit_ns` or when it is told to give up.
    ///
    /// # Errors
    /// More holes in the numbers than can be kept; the kernel's refusal to tell what was dropped.
    pub fn finish(mut self, idle_ns: u64, limit_ns: u64, give_up: &AtomicBool) -> Result<Tally> {
        let end_ns = clock::monotonic_ns().saturating_add(limit_ns);
        self.orders.idle_ns.store(idle_ns, Ordering::Relaxed);
        self.orders.end_ns.store(end_ns, Ordering::Relaxed);
        self.orders.finishing.store(true, Ordering::Release);
        let Some(thread) = self.thread.take() else { return Err(PacketError::Broken("tally")) };
        while !thread.is_finished() {
            if give_up.load(Ordering::Relaxed) {
                self.orders.stop.store(true, Ordering::Relaxed);
            }
            clock::sleep_until(clock::monotonic_ns() + JOIN_POLL_NS);
        }
        thread.join().map_err(|_| PacketError::Broken("tally"))?
    }
}

impl Drop for TallyRun {
    fn drop(&mut self) {
        self.orders.stop.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

fn count(mut port: Port, mut book: Book, orders: &Orders) -> Result<Tally> {
    let mut idle_from = clock::monotonic_ns();
    while !orders.stop.load(Ordering::Relaxed) {
        let finishing = orders.finishing.load(Ordering::Acquire);
        let mut busy = false;
        // Not without end: a flood must not keep us from our orders.
        for _ in 0..4096 {
            match port.next(|frame, offload| book.enter(frame, offload)) {
                Some(counted) => busy |= counted?,
                None => break,
            }
        }
        let now = clock::monotonic_ns();
        if busy {
            idle_from = now;
        }
        let mut wait_ns = if busy { 0 } else { LONGEST_WAIT_NS };
        if finishing {
            let end_ns = orders.end_ns.load(Ordering::Relaxed);
            let until = end_ns.min(idle_from.saturating_add(orders.idle_ns.load(Ordering::Relaxed)));
            if now >= end_ns || (now >= until && !busy) {
                break;
            }
            wait_ns = wait_ns.min(until.saturating_sub(now));
        }
        if wait_ns > 0 {
            port.wait(wait_ns)?;
        }
    }
    book.dropped_here += port.take_drops()?;
    Ok(book.close())
}

/// What has been counted.
struct Book {
    spec: TallySpec,
    tally: Tally,
    streams: BTreeMap<u32, Sequences>,
    damaged_examples: Vec<FrameIn>,
    other_examples: Vec<FrameIn>,
    dropped_here: u64,
    first_ns: Option<u64>,
    last_ns: u64,
    latency: Option<Latency>,
}

struct Latency {
    histogram: Histogram<u64>,
    smallest: u64,
    largest: u64,
    /// A frame came before it was sent: the two ends do not share a clock.
    apart: bool,
}

impl Book {
    fn new(spec: TallySpec) -> Self {
        let histogram = || Histogram::new(3).expect("three digits are possible");
        let latency = || Latency { histogram: histogram(), smallest: u64::MAX, largest: 0, apart: false };
        let latency = spec.latency.then(latency);
        Self {
            spec,
            tally: Tally::default(),
            streams: BTreeMap::new(),
            damaged_examples: Vec::new(),
            other_examples: Vec::new(),
            dropped_here: 0,
            first_ns: None,
            last_ns: 0,
            latency,
        }
    }

    /// Counts a captured frame; says whether it was one of ours.
    fn enter(&mut self, frame: Captured<'_>, offload: bool) -> Result<bool> {
        let payload = frame.bytes.get(self.payload_begin(&frame)..).unwrap_or_default();
        match probe::read(payload) {
            Probe::Whole { id, .. } if id.run == self.spec.run => {
                if !self.wanted(id.stream) {
                    return Ok(false);
                }
                self.whole(id, payload, frame, offload)?;
            }
            Probe::Damaged { id, truncated, .. } if id.run == self.spec.run => {
                // Whose it is can't be told for sure where its header is what was damaged.
                match truncated {
                    true => self.tally.truncated += 1,
                    false => self.tally.damaged += 1,
                }
                keep(&mut self.damaged_examples, frame, offload);
            }
            Probe::Whole { .. } => return Ok(false),
            Probe::Damaged { .. } | Probe::Foreign => {
                match probe::read_as_of(self.spec.run, payload) {
                    Some(id) if self.wanted(id.stream) => self.tally.damaged += 1,
                    _ => return Ok(false),
                }
                keep(&mut self.damaged_examples, frame, offload);
            }
        }
        self.seen(frame.time_ns);
        Ok(true)
    }

    fn wanted(&self, stream: u32) -> bool {
        self.spec.streams.is_empty() || self.spec.streams.contains(&stream)
    }

    /// Where the probe begins: a stripped tag is not among the bytes.
    fn payload_begin(&self, frame: &Captured<'_>) -> usize {
        let header = if self.spec.header_bytes == 0 { 2 } else { self.spec.header_bytes as usize };
        let stripped = frame.tag.is_some() && header >= TAG_BYTES + 2;
        ADDRESSES_BYTES + header - if stripped { TAG_BYTES } else { 0 }
    }

    fn whole(&mut self, id: ProbeId, payload: &[u8], frame: Captured<'_>, offload: bool) -> Result<()> {
        let Some(arrival) = self.streams.entry(id.stream).or_default().note(id.sequence) else {
            let what = format!("tally stream {} on {}", id.stream, self.spec.port.link);
            return Err(PacketError::invalid(what, "more holes in its numbers than can be kept"));
        };
        if arrival == Arrival::Again {
            self.tally.duplicates += 1;
            keep(&mut self.other_examples, frame, offload);
            return Ok(());
        }
        self.tally.whole += 1;
        self.tally.whole_bytes += u64::from(frame.length);
        if arrival == Arrival::Late {
            self.tally.reordered += 1;
            keep(&mut self.other_examples, frame, offload);
        }
        if let (Some(latency), Some(sent_ns)) = (&mut self.latency, probe::sent_ns(payload)) {
            latency.enter(sent_ns, frame.time_ns);
        }
        Ok(())
    }

    fn seen(&mut self, time_ns: u64) {
        if self.first_ns.is_none() {
            self.first_ns = Some(time_ns);
        } else {
            let gap = time_ns.saturating_sub(self.last_ns);
            self.tally.longest_gap_ns = self.tally.longest_gap_ns.max(gap);
        }
        self.last_ns = self.last_ns.max(time_ns);
    }

    fn close(mut self) -> Tally {
        let mut tally = self.tally;
        for (stream, sequences) in &self.streams {
            tally.highest.extend(sequences.highest().map(|highest| (*stream, highest)));
            tally.missing_count += sequences.missing_count();
            let room = MISSING - tally.missing.len();
            tally.missing.extend(sequences.missing(room).into_iter().map(|number| (*stream, number)));
        }
        tally.dropped_here = self.dropped_here;
        tally.elapsed_ns = self.first_ns.map_or(0, |first| self.last_ns.saturating_sub(first));
        tally.examples = self.damaged_examples;
        tally.examples.append(&mut self.other_examples);
        tally.latency_ns = self.latency.and_then(Latency::figures);
        tally
    }
}

impl Latency {
    fn enter(&mut self, sent_ns: u64, arrived_ns: u64) {
        let Some(latency_ns) = arrived_ns.checked_sub(sent_ns) else {
            self.apart = true;
            return;
        };
        self.smallest = self.smallest.min(latency_ns);
        self.largest = self.largest.max(latency_ns);
        self.histogram.saturating_record(latency_ns);
    }

    fn figures(self) -> Option<[u64; 4]> {
        if self.apart || self.histogram.is_empty() {
            return None;
        }
        let at =
            |quantile: f64| self.histogram.value_at_quantile(quantile).clamp(self.smallest, self.largest);
        Some([self.smallest, at(0.5), at(0.999), self.largest])
    }
}

fn keep(examples: &mut Vec<FrameIn>, frame: Captured<'_>, offload: bool) {
    if examples.len() < EXAMPLES {
        examples.push(frame_in(frame, offload));
    }
}

#[cfg(test)]
mod tests;
