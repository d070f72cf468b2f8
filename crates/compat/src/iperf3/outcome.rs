//! What a side makes of its counts: its results for the other side, and the end of its report.

use std::path::Path;

use linerate_sys::sockopt;

use super::lane::{CpuTime, Stream};
use super::params::{Params, Transport};
use super::progress::{Progress, Totals, descriptor};
use super::report::{Datagrams, End, FileEnd, Moved, StreamEnd};
use super::results::{CpuPercent, Results, StreamResult, stream_id};

/// Percent of one CPU over `wall_ns`.
pub(super) fn cpu_percent(used: CpuTime, wall_ns: u64) -> CpuPercent {
    let percent = |ns: u64| ns as f64 * 100.0 / wall_ns.max(1) as f64;
    CpuPercent {
        total: percent(used.user_ns + used.system_ns),
        user: percent(used.user_ns),
        system: percent(used.system_ns),
    }
}

/// The results that this side sends. `far` are the other side's, where they came first (on a server).
pub(super) fn results(
    progress: &Progress,
    params: &Params,
    cpu: CpuPercent,
    now_ns: u64,
    far: Option<&Results>,
) -> Results {
    let streams = progress.streams();
    let seconds = progress.seconds(now_ns);
    let sends = streams.iter().any(|s| s.sends);
    let sender_has_retransmits = match (sends, params.transport) {
        (false, _) => -1,
        (true, Transport::Tcp) => 1,
        (true, Transport::Udp) => 0,
    };
    let stream_results = streams.iter().enumerate().map(|(index, stream)| {
        let far_packets = far.and_then(|f| f.stream(index)).map(|s| s.packets);
        stream_result(index, stream, params, &progress.totals(index), seconds, far_packets)
    });
    Results {
        cpu,
        sender_has_retransmits,
        congestion_used: congestion(streams, params),
        server_output: None,
        streams: stream_results.collect(),
    }
}

/// TCP_CONGESTION of the streams.
pub(super) fn congestion(streams: &[Stream], params: &Params) -> Option<String> {
    if params.transport != Transport::Tcp {
        return None;
    }
    sockopt::congestion(&*streams.first()?.socket).ok()
}

fn stream_result(
    index: usize,
    stream: &Stream,
    params: &Params,
    totals: &Totals,
    seconds: f64,
    far_packets: Option<i64>,
) -> StreamResult {
    let tail = if stream.sends { 0 } else { tail_loss(totals, far_packets) };
    let tcp_sender = params.transport == Transport::Tcp && stream.sends;
    StreamResult {
        id: stream_id(index),
        bytes: totals.counts.bytes,
        retransmits: tcp_sender.then_some(totals.counts.retransmits),
        jitter_s: if stream.sends { 0.0 } else { totals.jitter_s },
        errors: totals.counts.lost + totals.omitted.lost + tail,
        omitted_errors: totals.omitted.lost,
        packets: totals.counts.packets + totals.omitted.packets + tail,
        omitted_packets: totals.omitted.packets,
        seconds: Some(seconds),
    }
}

/// Datagrams that the sender counts beyond the highest number that arrived.
fn tail_loss(totals: &Totals, far_packets: Option<i64>) -> i64 {
    let highest = totals.counts.packets + totals.omitted.packets;
    far_packets.map_or(0, |sent| sent.saturating_sub(highest).max(0))
}

/// The end of a report. On a server `far` are the client's results; it takes from them only what makes its own complete.
pub(super) fn end(
    progress: &Progress,
    params: &Params,
    cpu: CpuPercent,
    now_ns: u64,
    far: Option<&Results>,
    server: bool,
) -> End {
    let streams = progress.streams();
    let seconds = progress.seconds(now_ns);
    let shown = if server { None } else { far };
    let own_congestion = congestion(streams, params);
    let far_congestion = shown.and_then(|f| f.congestion_used.clone());
    let sends = streams.first().is_some_and(|s| s.sends);
    let (sender_congestion, receiver_congestion) =
        if sends { (own_congestion, far_congestion) } else { (far_congestion, own_congestion) };
    let ends = streams.iter().enumerate().map(|(index, stream)| {
        let far_stream = far.and_then(|f| f.stream(index));
        stream_end(stream, params, &progress.totals(index), seconds, far_stream, server)
    });
    End {
        streams: ends.collect(),
        cpu_local: cpu,
        cpu_remote: shown.map_or_else(CpuPercent::default, |f| f.cpu),
        sender_congestion,
        receiver_congestion,
        // 3.12 goes on sending it to clients after one that asked.
        server_output: shown.filter(|_| params.server_output).and_then(|f| f.server_output.clone()),
        file: None,
    }
}

/// The file of a test, as it is now.
pub(super) fn file_end(path: &Path) -> FileEnd {
    // A file that is gone is shown as empty.
    let size = std::fs::metadata(path).map_or(0, |m| m.len());
    FileEnd { name: path.display().to_string(), size }
}

fn stream_end(
    stream: &Stream,
    params: &Params,
    totals: &Totals,
    seconds: f64,
    far: Option<&StreamResult>,
    server: bool,
) -> StreamEnd {
    let own = Moved { bytes: totals.counts.bytes, seconds };
    let shown = far.filter(|_| !server);
    let far_moved = shown.map(|f| Moved { bytes: f.bytes, seconds: f.seconds.unwrap_or(seconds) });
    let (sent, received) = if stream.sends { (Some(own), far_moved) } else { (far_moved, Some(own)) };
    let tcp = params.transport == Transport::Tcp;
    let retransmits = match (tcp, stream.sends) {
        (true, true) => Some(totals.counts.retransmits),
        (true, false) => shown.and_then(|f| f.retransmits),
        (false, _) => None,
    };
    let datagrams = || if stream.sends { sent_datagrams(totals, shown) } else { came_datagrams(totals, far) };
    StreamEnd {
        socket: descriptor(stream),
        sends: stream.sends,
        sent,
        received,
        retransmits,
        tcp: totals.tcp,
        udp: (!tcp).then(datagrams),
    }
}

fn sent_datagrams(totals: &Totals, far: Option<&StreamResult>) -> Datagrams {
    Datagrams {
        sent: totals.counts.packets,
        received: far.map_or(0, |f| f.packets - f.omitted_packets),
        lost: far.map_or(0, |f| f.errors - f.omitted_errors),
        jitter_s: far.map_or(0.0, |f| f.jitter_s),
        ..Datagrams::default()
    }
}

fn came_datagrams(totals: &Totals, far: Option<&StreamResult>) -> Datagrams {
    let tail = tail_loss(totals, far.map(|f| f.packets));
    Datagrams {
        sent: totals.counts.packets + tail,
        received: totals.counts.packets,
        lost: totals.counts.lost + tail,
        out_of_order: totals.counts.out_of_order,
        duplicates: totals.counts.duplicates,
        jitter_s: totals.jitter_s,
    }
}
