//! From samples to a reading.

use linerate_meter::{BusySample, Sample, ThreadTimes};
use linerate_model::counters::ThreadReading;
use linerate_model::reading::{
    IntervalReading, IntervalStream, Knowledge, Reading, StreamReading, TcpReading, Window,
};
use linerate_sys::tcp_info::TcpInfo;
use linerate_traffic::{SideResult, Snapshot, StreamResult, ThreadInfo, ThreadResult};

use crate::window::Samples;

/// All samples of one instant.
#[derive(Debug)]
pub struct Instant {
    /// Traffic counters.
    pub traffic: Snapshot,
    /// CPU, link and protocol counters.
    pub meter: Sample,
    /// By stream: the state of its connections.
    pub tcp: Vec<Vec<TcpInfo>>,
    /// By thread; `None` where its clock could not be read.
    pub threads: Vec<(ThreadInfo, Option<ThreadTimes>)>,
}

/// What is sampled at the boundary of two intervals.
#[derive(Debug)]
pub struct Boundary {
    /// Traffic counters.
    pub traffic: Snapshot,
    /// Busy time of the machine.
    pub busy: BusySample,
    /// By stream: the state of its connections.
    pub tcp: Vec<Vec<TcpInfo>>,
}

impl Instant {
    /// The part of it that an interval needs.
    pub fn boundary(&self) -> Boundary {
        Boundary { traffic: self.traffic.clone(), busy: self.meter.busy(), tcp: self.tcp.clone() }
    }
}

/// Reads the clocks of traffic threads.
pub fn thread_times(threads: &[ThreadInfo]) -> Vec<(ThreadInfo, Option<ThreadTimes>)> {
    let times =
        |t: &ThreadInfo| i32::try_from(t.tid).ok().and_then(|tid| linerate_meter::thread_times(tid).ok());
    threads.iter().map(|t| (*t, times(t))).collect()
}

/// What passed between two boundaries of a window that began with `start`.
pub fn interval(start: &Instant, before: &Boundary, now: &Boundary) -> IntervalReading {
    let streams = now.traffic.streams.iter().zip(&before.traffic.streams).enumerate().map(
        |(index, (later, earlier))| {
            let moved = later.since(earlier);
            let (tcp, tcp_before) = (connections(&now.tcp, index), connections(&before.tcp, index));
            IntervalStream {
                index: u32::try_from(index).unwrap_or(u32::MAX),
                sent: moved.sent,
                received: moved.received,
                transactions: moved.transactions,
                retransmits: tcp.iter().zip(tcp_before).map(|(l, e)| retransmits(l, e)).sum(),
                rtt_us: tcp.iter().map(|t| t.rtt_us).max().unwrap_or_default(),
            }
        },
    );
    IntervalReading {
        start_ns: before.traffic.at_ns.saturating_sub(start.traffic.at_ns),
        duration_ns: now.traffic.at_ns.saturating_sub(before.traffic.at_ns),
        busy_ns: now.busy.busy_ns_since(&before.busy).unwrap_or_default(),
        streams: streams.collect(),
    }
}

/// Puts a reading together from a window's samples and what the endpoint found.
pub fn reading(samples: Samples, result: SideResult) -> Reading {
    let Samples { start, end, planned_start_ns, planned_end_ns, done_ns, intervals } = samples;
    let late = |at_ns: u64, planned_ns: u64| at_ns.saturating_sub(planned_ns);
    let last_ns = result.streams.iter().filter_map(|s| s.last_received_ns).max();
    let window = Window {
        start_ns: start.traffic.at_ns,
        // A count is over with its last byte, whenever the closing sample came.
        duration_ns: done_ns.or(last_ns).unwrap_or(end.traffic.at_ns).saturating_sub(start.traffic.at_ns),
        start_late_ns: late(start.traffic.at_ns, planned_start_ns),
        end_late_ns: planned_end_ns.map_or(0, |planned| late(end.traffic.at_ns, planned)),
    };
    let streams =
        result.streams.into_iter().enumerate().map(|(index, found)| stream(index, found, &start, &end));
    Reading {
        knowledge: Knowledge::Measured,
        window,
        streams: streams.collect(),
        threads: threads(&start, &end, &result.threads),
        intervals,
        meter: linerate_meter::difference(&start.meter, &end.meter),
        strays: result.strays,
    }
}

fn stream(index: usize, found: StreamResult, start: &Instant, end: &Instant) -> StreamReading {
    let moved = match (end.traffic.streams.get(index), start.traffic.streams.get(index)) {
        (Some(later), Some(earlier)) => later.since(earlier),
        _ => Default::default(),
    };
    let tcp = connections(&end.tcp, index).iter().zip(connections(&start.tcp, index));
    StreamReading {
        index: found.index,
        local: found.local,
        remote: found.remote,
        sent: moved.sent,
        received: moved.received,
        transactions: moved.transactions,
        socket: found.socket,
        tcp: tcp.map(|(later, earlier)| tcp_reading(later, earlier)).collect(),
        udp: found.udp,
        latency: found.latency,
        verify: found.verify,
        zerocopy: found.zerocopy,
        error: found.error,
    }
}

/// CPU time of the traffic threads within the window. A thread that ended before its close (a count was reached) has no
/// clock any more: what it used in its whole life, as it said itself when it ended, less what it had used at the opening.
fn threads(start: &Instant, end: &Instant, ended: &[ThreadResult]) -> Vec<ThreadReading> {
    let whole_life = |tid: u32| {
        let on_cpu_ns = ended.iter().find(|t| t.info.tid == tid && t.cpu_ns > 0)?.cpu_ns;
        Some(ThreadTimes { on_cpu_ns, run_queue_wait_ns: None })
    };
    let before =
        |tid: u32| start.threads.iter().find(|(info, _)| info.tid == tid).and_then(|(_, times)| *times);
    let spent = |(info, now): &(ThreadInfo, Option<ThreadTimes>)| {
        let now = now.or_else(|| whole_life(info.tid));
        let spent = now.zip(before(info.tid)).map(|(now, before)| now.since(&before)).unwrap_or_default();
        ThreadReading {
            role: info.role.name().to_owned(),
            stream: info.stream,
            tid: info.tid,
            pinned_cpu: info.pinned_cpu,
            on_cpu_ns: spent.on_cpu_ns,
            run_queue_wait_ns: spent.run_queue_wait_ns,
        }
    };
    end.threads.iter().map(spent).collect()
}

fn connections(by_stream: &[Vec<TcpInfo>], index: usize) -> &[TcpInfo] {
    by_stream.get(index).map_or(&[], Vec::as_slice)
}

fn tcp_reading(now: &TcpInfo, before: &TcpInfo) -> TcpReading {
    let grown = |pick: fn(&TcpInfo) -> Option<u64>| {
        pick(now).unwrap_or_default().saturating_sub(pick(before).unwrap_or_default())
    };
    // The kernel counts segments in 32 bits, which wrap within minutes on a fast link.
    let grown32 = |pick: fn(&TcpInfo) -> Option<u32>| {
        u64::from(pick(now).unwrap_or_default().wrapping_sub(pick(before).unwrap_or_default()))
    };
    TcpReading {
        rtt_us: now.rtt_us,
        rtt_variation_us: now.rttvar_us,
        min_rtt_us: now.min_rtt_us.unwrap_or_default(),
        congestion_window_segments: now.snd_cwnd,
        send_mss_bytes: now.snd_mss,
        path_mtu_bytes: now.pmtu,
        retransmits: retransmits(now, before),
        retransmitted_bytes: grown(|t| t.bytes_retrans),
        acked_bytes: grown(|t| t.bytes_acked),
        segments_sent: grown32(|t| t.data_segs_out),
        segments_received: grown32(|t| t.data_segs_in),
        delivery_rate_bytes_per_second: now.delivery_rate.unwrap_or_default(),
        delivery_app_limited: now.app_limited,
        busy_us: grown(|t| t.busy_time_us),
        receive_window_limited_us: grown(|t| t.rwnd_limited_us),
        send_buffer_limited_us: grown(|t| t.sndbuf_limited_us),
        reordering_seen: now.reord_seen.unwrap_or_default(),
        out_of_order_received: grown32(|t| t.rcv_ooopack),
    }
}

fn retransmits(now: &TcpInfo, before: &TcpInfo) -> u64 {
    u64::from(now.total_retrans.wrapping_sub(before.total_retrans))
}
