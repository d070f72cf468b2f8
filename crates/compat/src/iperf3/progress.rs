//! Takes samples of a running test: intervals, the omitted time, final counts.

use std::sync::atomic::Ordering::Relaxed;

use linerate_sys::tcp_info::TcpInfo;

use super::lane::Stream;
use super::params::{Params, Transport};
use super::report::{Interval, StreamInterval, TcpExtremes, TcpSample};
use super::wire::COOKIE_LEN;

const SECOND_NS: f64 = 1e9;

/// A stream's counts at an instant.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Counts {
    pub(super) bytes: u64,
    pub(super) packets: i64,
    pub(super) lost: i64,
    pub(super) out_of_order: i64,
    pub(super) duplicates: i64,
    pub(super) retransmits: i64,
}

/// A stream over the test, without the omitted time.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Totals {
    pub(super) counts: Counts,
    /// What was counted in the omitted time.
    pub(super) omitted: Counts,
    pub(super) jitter_s: f64,
    /// A TCP sender that the kernel tells of.
    pub(super) tcp: Option<TcpExtremes>,
}

#[derive(Debug, Default)]
struct Track {
    base: Counts,
    last: Counts,
    fixed: Option<Counts>,
    extremes: TcpExtremes,
    rtt_sum: u64,
    samples: u64,
}

/// The samples of one test.
#[derive(Debug)]
pub(super) struct Progress {
    streams: Vec<Stream>,
    tracks: Vec<Track>,
    transport: Transport,
    /// Bytes of the cookie, which the kernel counts but nobody else.
    cookie_bytes: u64,
    mptcp: bool,
    interval_ns: u64,
    /// Second 0 of what is shown.
    zero_ns: u64,
    last_ns: u64,
    next_ns: u64,
    omit_end_ns: Option<u64>,
    end_ns: Option<u64>,
}

impl Progress {
    /// The test begins at `now_ns`. `interval_s` 0 reports once, at the end. `accepted`: this side accepted the streams.
    pub(super) fn new(
        streams: Vec<Stream>,
        params: &Params,
        interval_s: f64,
        now_ns: u64,
        accepted: bool,
    ) -> Self {
        let interval_ns = if interval_s > 0.0 { (interval_s * SECOND_NS) as u64 } else { u64::MAX / 4 };
        let tracks = streams.iter().map(|_| Track::default()).collect();
        let mut progress = Self {
            streams,
            tracks,
            transport: params.transport,
            cookie_bytes: if accepted { COOKIE_LEN as u64 } else { 0 },
            mptcp: params.mptcp,
            interval_ns,
            zero_ns: now_ns,
            last_ns: now_ns,
            next_ns: now_ns + interval_ns,
            omit_end_ns: (params.omit_s > 0).then(|| now_ns + u64::from(params.omit_s) * 1_000_000_000),
            end_ns: None,
        };
        for index in 0..progress.streams.len() {
            // Retransmits of the handshake belong to no interval. Bytes that came before the start do.
            let retransmits = progress.tcp_info(index).map_or(0, |i| i64::from(i.total_retrans));
            progress.tracks[index].base.retransmits = retransmits;
            progress.tracks[index].last.retransmits = retransmits;
        }
        progress
    }

    /// The streams.
    pub(super) fn streams(&self) -> &[Stream] {
        &self.streams
    }

    /// When [`Progress::tick`] has something to do.
    pub(super) fn next_ns(&self) -> u64 {
        self.next_ns.min(self.omit_end_ns.unwrap_or(u64::MAX))
    }

    /// Whether the omitted time is not over.
    pub(super) fn omitting(&self) -> bool {
        self.omit_end_ns.is_some()
    }

    /// The interval that is over at `now_ns`, if one is.
    pub(super) fn tick(&mut self, now_ns: u64) -> Option<Interval> {
        if self.omit_end_ns.is_some_and(|end| now_ns >= end) {
            // An interval that was due at the same moment is this one.
            let interval = self.take_interval(now_ns);
            self.end_omit(now_ns);
            return Some(interval);
        }
        if now_ns < self.next_ns {
            return None;
        }
        self.next_ns += self.interval_ns * ((now_ns - self.next_ns) / self.interval_ns + 1);
        Some(self.take_interval(now_ns))
    }

    /// The test is over. Returns the interval that it ended in, unless that is next to nothing.
    pub(super) fn finish(&mut self, now_ns: u64) -> Option<Interval> {
        self.end_ns = Some(now_ns);
        if self.transport == Transport::Tcp {
            for index in 0..self.streams.len() {
                self.tracks[index].fixed = Some(self.final_counts(index));
            }
        }
        let short = (now_ns - self.last_ns) as f64 / self.interval_ns as f64;
        let interval = self.take_interval(now_ns);
        (short >= 0.1 || interval.streams.iter().any(|s| s.bytes > 0)).then_some(interval)
    }

    /// Bytes that came after the end, the last at `last_ns`, count like the others.
    pub(super) fn count_tail(&mut self, last_ns: u64) {
        let mut grew = false;
        for index in (0..self.streams.len()).filter(|&i| !self.streams[i].sends) {
            let counts = self.final_counts(index);
            grew |= self.tracks[index].fixed.is_some_and(|before| counts.bytes > before.bytes);
            self.tracks[index].fixed = Some(counts);
        }
        if grew {
            self.end_ns = self.end_ns.map(|end_ns| end_ns.max(last_ns));
        }
    }

    /// Seconds that count, up to the end (or `now_ns` before it).
    pub(super) fn seconds(&self, now_ns: u64) -> f64 {
        self.end_ns.unwrap_or(now_ns).saturating_sub(self.zero_ns) as f64 / SECOND_NS
    }

    /// Counts of stream `index` so far. Datagrams that arrive after the end were sent before it, and count.
    pub(super) fn totals(&self, index: usize) -> Totals {
        let track = &self.tracks[index];
        let now = track.fixed.unwrap_or_else(|| self.counts(index));
        let mut extremes = track.extremes;
        extremes.mean_rtt_us = track.rtt_sum.checked_div(track.samples).unwrap_or(0);
        Totals {
            counts: now.since(track.base),
            omitted: track.base,
            jitter_s: self.jitter_s(index),
            tcp: (track.samples > 0).then_some(extremes),
        }
    }

    /// Bytes of all streams on which this side receives (or of all), omitted ones too.
    pub(super) fn bytes_so_far(&self, received_only: bool) -> u64 {
        let streams = self.streams.iter().filter(|s| !received_only || !s.sends);
        streams.map(|s| s.counters.bytes.load(Relaxed)).sum()
    }

    fn end_omit(&mut self, now_ns: u64) {
        self.omit_end_ns = None;
        self.zero_ns = now_ns;
        self.next_ns = now_ns + self.interval_ns;
        for (stream, track) in self.streams.iter().zip(&mut self.tracks) {
            track.base = track.last;
            track.extremes = TcpExtremes::default();
            (track.rtt_sum, track.samples) = (0, 0);
            stream.counters.restart_jitter.store(true, Relaxed);
        }
    }

    fn take_interval(&mut self, now_ns: u64) -> Interval {
        let seconds = |ns: u64| ns.saturating_sub(self.zero_ns) as f64 / SECOND_NS;
        let (start_s, end_s) = (seconds(self.last_ns), seconds(now_ns));
        let omitted = self.omitting();
        let streams = (0..self.streams.len()).map(|i| self.stream_interval(i, start_s, end_s)).collect();
        self.last_ns = now_ns;
        Interval { streams, omitted }
    }

    fn stream_interval(&mut self, index: usize, start_s: f64, end_s: f64) -> StreamInterval {
        let info = self.tcp_info(index);
        let now = self.tracks[index].fixed.unwrap_or_else(|| self.counts(index));
        let delta = now.since(self.tracks[index].last);
        let (sends, socket) = (self.streams[index].sends, descriptor(&self.streams[index]));
        let jitter_s = self.jitter_s(index);
        let track = &mut self.tracks[index];
        track.last = now;
        let tcp = info.map(|i| track.note(&i, delta.retransmits));
        StreamInterval {
            socket,
            sends,
            start_s,
            end_s,
            bytes: delta.bytes,
            tcp,
            packets: delta.packets,
            lost: delta.lost,
            out_of_order: delta.out_of_order,
            jitter_s,
        }
    }

    fn counts(&self, index: usize) -> Counts {
        let counters = &self.streams[index].counters;
        let signed = |value: u64| i64::try_from(value).unwrap_or(i64::MAX);
        Counts {
            bytes: counters.bytes.load(Relaxed),
            packets: signed(counters.packets.load(Relaxed)),
            lost: signed(counters.lost.load(Relaxed)),
            out_of_order: signed(counters.out_of_order.load(Relaxed)),
            duplicates: signed(counters.duplicates.load(Relaxed)),
            retransmits: self.tcp_info(index).map_or(0, |i| i64::from(i.total_retrans)),
        }
    }

    /// A receiver's bytes are those that have arrived: the ones that wait in the socket too.
    fn final_counts(&self, index: usize) -> Counts {
        let mut counts = self.counts(index);
        let stream = &self.streams[index];
        if !stream.sends && !self.mptcp {
            let arrived = TcpInfo::of(&*stream.socket).ok().and_then(|i| arrived_bytes(&i));
            let arrived = arrived.map_or(0, |bytes| bytes.saturating_sub(self.cookie_bytes));
            counts.bytes = counts.bytes.max(arrived);
        }
        counts
    }

    fn jitter_s(&self, index: usize) -> f64 {
        f64::from_bits(self.streams[index].counters.jitter.load(Relaxed))
    }

    /// What the kernel says of a stream on which this side sends TCP.
    fn tcp_info(&self, index: usize) -> Option<TcpInfo> {
        let stream = &self.streams[index];
        if self.transport != Transport::Tcp || !stream.sends {
            return None;
        }
        TcpInfo::of(&*stream.socket).ok()
    }
}

impl Counts {
    fn since(self, earlier: Self) -> Self {
        Self {
            bytes: self.bytes.saturating_sub(earlier.bytes),
            packets: self.packets - earlier.packets,
            lost: self.lost - earlier.lost,
            out_of_order: self.out_of_order - earlier.out_of_order,
            duplicates: self.duplicates - earlier.duplicates,
            retransmits: self.retransmits - earlier.retransmits,
        }
    }
}

impl Track {
    fn note(&mut self, info: &TcpInfo, retransmits: i64) -> TcpSample {
        let sample = TcpSample {
            retransmits,
            snd_cwnd: u64::from(info.snd_cwnd) * u64::from(info.snd_mss),
            snd_wnd: u64::from(info.snd_wnd.unwrap_or(0)),
            rtt_us: u64::from(info.rtt_us),
            rttvar_us: u64::from(info.rttvar_us),
            pmtu: u64::from(info.pmtu),
            reorder: u64::from(info.reord_seen.unwrap_or(0)),
        };
        let extremes = &mut self.extremes;
        extremes.max_snd_cwnd = extremes.max_snd_cwnd.max(sample.snd_cwnd);
        extremes.max_snd_wnd = extremes.max_snd_wnd.max(sample.snd_wnd);
        extremes.max_rtt_us = extremes.max_rtt_us.max(sample.rtt_us);
        let first = self.samples == 0;
        extremes.min_rtt_us = if first { sample.rtt_us } else { extremes.min_rtt_us.min(sample.rtt_us) };
        extremes.reorder = sample.reorder;
        self.rtt_sum += sample.rtt_us;
        self.samples += 1;
        sample
    }
}

/// Bytes that arrived in order, read or not. The kernel counts the end of a connection as one; whether it is in there is unknown
/// once the connection is closed.
fn arrived_bytes(info: &TcpInfo) -> Option<u64> {
    // Numbers of `enum tcp_state`, include/net/tcp_states.h.
    const CLOSE: u8 = 7;
    const BEHIND_THE_END: [u8; 4] = [6, 8, 9, 11];
    if info.state == CLOSE {
        return None;
    }
    let end = u64::from(BEHIND_THE_END.contains(&info.state));
    info.bytes_received.map(|bytes| bytes.saturating_sub(end))
}

/// The number of a stream's descriptor.
pub(super) fn descriptor(stream: &Stream) -> i32 {
    std::os::fd::AsRawFd::as_raw_fd(&*stream.socket)
}
