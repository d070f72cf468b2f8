//! The figures of a record's table row, computed from the two readings alone.
//!
//! Goodput is what the receiver got within its window (design ruling 2). CPU busy time is the machine's; where both
//! nodes share a kernel it is counted once (ruling 3). Service demand is busy CPU time per KiB moved, or per
//! transaction, as netperf defines it.

use serde::{Deserialize, Serialize};

use crate::latency::LatencyHistogram;
use crate::reading::{Flow, Knowledge, Reading, UdpReading};
use crate::trial::{Side, Trial};
use crate::units::{bits_per_second, per_second, total};
use crate::workload::WorkloadKind;

/// The figures of one trial.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Summary {
    /// Payload the receivers got, bits a second, all directions together.
    pub goodput_bits_per_second: f64,
    /// Payload the receivers got within the window, bytes, all directions together.
    pub goodput_bytes: u64,
    /// By direction; request/response has both.
    pub directions: Vec<Direction>,
    /// Segments with data (TCP, `tcpi_data_segs_in`) or datagrams (UDP) that the receivers got, a second, all directions
    /// together; `None` for tcp-crr, whose connections are too short-lived to be asked.
    pub packets_per_second: Option<f64>,
    /// Transactions within the window; request/response only.
    pub transactions: Option<u64>,
    /// Transactions a second.
    pub transactions_per_second: Option<f64>,
    /// CPU of both ends.
    pub cpu: CpuSummary,
    /// TCP segments retransmitted within the window by both ends; `None` for UDP, and for tcp-crr, whose connections are not
    /// asked.
    pub retransmits: Option<u64>,
    /// Fate of the datagrams sent within the window; UDP only.
    pub loss: Option<LossSummary>,
    /// Latency of transactions.
    pub latency: Option<LatencySummary>,
    /// Wrong payload bytes; only with `--verify`.
    pub bad_bytes: Option<u64>,
}

/// One direction of payload.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Direction {
    /// Who sends.
    pub from: Side,
    /// Payload the receiver got, bytes.
    pub received_bytes: u64,
    /// Payload the receiver got, bits a second of its window.
    pub goodput_bits_per_second: f64,
    /// Payload the sender handed to its kernel, bits a second of its window.
    pub sent_bits_per_second: f64,
    /// Segments or datagrams that the receiver got, a second; `None` for tcp-crr.
    pub packets_per_second: Option<f64>,
}

/// CPU of both ends within the window.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct CpuSummary {
    /// The one machine that both nodes run on; `None` where they have one each.
    pub shared: Option<MachineCost>,
    /// The dut's machine; `None` where it is shared.
    pub dut: Option<MachineCost>,
    /// The peer's machine; `None` where it is shared.
    pub peer: Option<MachineCost>,
    /// The dut's traffic threads, percent of one CPU.
    pub dut_threads_percent: f64,
    /// The peer's traffic threads, percent of one CPU.
    pub peer_threads_percent: f64,
}

/// What the traffic cost a machine.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct MachineCost {
    /// Busy CPU time, nanoseconds.
    pub busy_ns: u64,
    /// Busy CPU time, percent of one CPU (so 200 is two CPUs busy).
    pub busy_percent: f64,
    /// Busy CPU time per KiB of payload moved, microseconds; streams only.
    pub service_demand_us_per_kib: Option<f64>,
    /// Busy CPU time per transaction, microseconds; request/response only.
    pub service_demand_us_per_transaction: Option<f64>,
}

/// Fate of the datagrams sent within the window.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct LossSummary {
    /// Sent (udp-stream: datagrams; udp-rr: requests).
    pub sent: u64,
    /// Not arrived (udp-rr: not answered in time).
    pub lost: u64,
    /// `lost` of `sent`, percent.
    pub lost_percent: f64,
    /// Arrived again.
    pub duplicates: u64,
    /// Arrived behind a later one.
    pub reordered: u64,
    /// Largest jitter of a stream at its end, nanoseconds (RFC 3550); udp-stream only.
    pub jitter_ns: Option<u64>,
    /// Drops that counters tell of, on the way from sender to receiver. Link and qdisc counters cover other traffic too.
    pub places: Vec<LossPlace>,
}

/// Drops counted at one place.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct LossPlace {
    /// Where.
    pub place: DropPlace,
    /// Packets.
    pub packets: u64,
    /// Which counter says so.
    pub source: String,
}

/// A place where a datagram can be lost.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum DropPlace {
    /// The sender's socket.
    SenderSocket,
    /// The sender's queueing discipline.
    SenderQdisc,
    /// The sender's link.
    SenderLink,
    /// The receiver's link.
    ReceiverLink,
    /// The receiver's softirq backlog.
    ReceiverBacklog,
    /// The receiver's socket.
    ReceiverSocket,
}

impl DropPlace {
    /// Words for a line of text.
    pub fn name(self) -> &'static str {
        match self {
            Self::SenderSocket => "sender's socket",
            Self::SenderQdisc => "sender's qdisc",
            Self::SenderLink => "sender's link",
            Self::ReceiverLink => "receiver's link",
            Self::ReceiverBacklog => "receiver's backlog",
            Self::ReceiverSocket => "receiver's socket",
        }
    }
}

/// Latency of the transactions that ended within the window, all streams merged; nanoseconds.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct LatencySummary {
    /// How many.
    pub count: u64,
    /// Shortest.
    pub min_ns: u64,
    /// Mean.
    pub mean_ns: f64,
    /// Median.
    pub p50_ns: u64,
    /// 90th percentile.
    pub p90_ns: u64,
    /// 99th percentile.
    pub p99_ns: u64,
    /// 99.9th percentile.
    pub p999_ns: u64,
    /// Longest.
    pub max_ns: u64,
    /// How many were above 60 s.
    pub overflow: u64,
}

/// Computes the figures of a trial from what both nodes measured.
pub fn summarize(trial: &Trial, dut: &Reading, peer: &Reading, shared_kernel: bool) -> Summary {
    let mut directions = Vec::new();
    if trial.workload.dut_sends() {
        directions.push(direction(trial, Side::Dut, dut, peer));
    }
    if trial.workload.peer_sends() {
        directions.push(direction(trial, Side::Peer, peer, dut));
    }
    let goodput_bytes = total(directions.iter().map(|d| d.received_bytes));
    let transactions =
        trial.workload.kind().is_transactional().then(|| total(dut.streams.iter().map(|s| s.transactions)));
    let work = Work { bytes: goodput_bytes, transactions };
    let latency = merged_latency(dut);
    Summary {
        goodput_bits_per_second: directions.iter().map(|d| d.goodput_bits_per_second).sum(),
        goodput_bytes,
        packets_per_second: directions.iter().map(|d| d.packets_per_second).sum(),
        directions,
        transactions,
        transactions_per_second: transactions.map(|n| per_second(n, dut.window.duration_ns)),
        cpu: cpu_summary(dut, peer, shared_kernel, work),
        retransmits: are_connections_read(trial, dut, peer)
            .then(|| total([retransmits(dut), retransmits(peer)])),
        loss: is_loss_known(trial, dut, peer).then(|| loss_summary(trial, dut, peer)),
        latency: (latency.total() > 0).then(|| latency_summary(&latency)),
        bad_bytes: trial.verify_seed.map(|_| total([bad_bytes(dut), bad_bytes(peer)])),
    }
}

/// Sum of a flow over all streams.
pub fn total_flow(reading: &Reading, flow: impl Fn(&crate::reading::StreamReading) -> Flow) -> Flow {
    reading.streams.iter().map(flow).fold(Flow::default(), |a, b| Flow {
        bytes: total([a.bytes, b.bytes]),
        messages: total([a.messages, b.messages]),
    })
}

fn direction(trial: &Trial, from: Side, sender: &Reading, receiver: &Reading) -> Direction {
    let mut sent = total_flow(sender, |s| s.sent);
    let mut received = total_flow(receiver, |s| s.received);
    // An end that tells nothing is taken to have moved what the other end did; a hazard says so.
    let (mut sender_ns, mut receiver_ns) = (sender.window.duration_ns, receiver.window.duration_ns);
    if receiver.knowledge == Knowledge::Untold {
        (received, receiver_ns) = (sent, sender_ns);
    }
    if sender.knowledge == Knowledge::Untold {
        (sent, sender_ns) = (received, receiver_ns);
    }
    let packets = match trial.workload.kind() {
        WorkloadKind::TcpCrr => None,
        _ if receiver.knowledge == Knowledge::Untold => None,
        kind if kind.is_udp() => Some(received.messages),
        _ if !has_tcp(receiver) => None,
        _ => Some(total(receiver.streams.iter().flat_map(|s| &s.tcp).map(|t| t.segments_received))),
    };
    Direction {
        from,
        received_bytes: received.bytes,
        goodput_bits_per_second: bits_per_second(received.bytes, receiver_ns),
        sent_bits_per_second: bits_per_second(sent.bytes, sender_ns),
        packets_per_second: packets.map(|n| per_second(n, receiver_ns)),
    }
}

#[derive(Clone, Copy)]
struct Work {
    bytes: u64,
    transactions: Option<u64>,
}

fn cpu_summary(dut: &Reading, peer: &Reading, shared_kernel: bool, work: Work) -> CpuSummary {
    let threads = |reading: &Reading| {
        let on_cpu = total(reading.threads.iter().map(|t| t.on_cpu_ns));
        percent(on_cpu, reading.window.duration_ns)
    };
    CpuSummary {
        shared: shared_kernel.then(|| machine_cost(if is_machine_known(dut) { dut } else { peer }, work)),
        dut: (!shared_kernel && is_machine_known(dut)).then(|| machine_cost(dut, work)),
        peer: (!shared_kernel && is_machine_known(peer)).then(|| machine_cost(peer, work)),
        dut_threads_percent: threads(dut),
        peer_threads_percent: threads(peer),
    }
}

fn machine_cost(reading: &Reading, work: Work) -> MachineCost {
    let cpu = &reading.meter.cpu;
    let busy_ns = cpu.total.busy_ns;
    let busy_us = busy_ns as f64 / 1e3;
    let per = |units: f64| (units > 0.0).then(|| busy_us / units);
    MachineCost {
        busy_ns,
        busy_percent: percent(busy_ns, cpu.window_ns),
        service_demand_us_per_kib: if work.transactions.is_none() {
            per(work.bytes as f64 / 1024.0)
        } else {
            None
        },
        service_demand_us_per_transaction: work.transactions.and_then(|n| per(n as f64)),
    }
}

/// `part` of `whole` in percent; 0 for an empty whole.
pub fn percent(part: u64, whole: u64) -> f64 {
    if whole == 0 { 0.0 } else { part as f64 * 100.0 / whole as f64 }
}

/// Whether the state of the TCP connections is in the readings: not that of tcp-crr's many short ones, nor of a profile's,
/// nor of a sender that is another program and does not tell.
fn are_connections_read(trial: &Trial, dut: &Reading, peer: &Reading) -> bool {
    let kind = trial.workload.kind();
    let senders = [(trial.workload.dut_sends(), dut), (trial.workload.peer_sends(), peer)];
    let known = |(sends, end): &(bool, &Reading)| !sends || end.knowledge.is_measured() || has_tcp(end);
    !matches!(kind, WorkloadKind::TcpCrr | WorkloadKind::Profile)
        && !kind.is_udp()
        && senders.iter().all(known)
}

fn has_tcp(reading: &Reading) -> bool {
    reading.streams.iter().any(|s| !s.tcp.is_empty())
}

/// Whether the machine's CPU was read, or told.
fn is_machine_known(reading: &Reading) -> bool {
    reading.knowledge.is_measured() || reading.meter.cpu.window_ns > 0
}

/// Requests lost are the asking end's to know; of streams both ends must tell.
fn is_loss_known(trial: &Trial, dut: &Reading, peer: &Reading) -> bool {
    let untold = |reading: &Reading| reading.knowledge == Knowledge::Untold;
    let kind = trial.workload.kind();
    kind.is_udp() && !untold(dut) && (kind.is_transactional() || !untold(peer))
}

fn retransmits(reading: &Reading) -> u64 {
    total(reading.streams.iter().flat_map(|s| &s.tcp).map(|t| t.retransmits))
}

fn bad_bytes(reading: &Reading) -> u64 {
    total(reading.streams.iter().filter_map(|s| s.verify).map(|v| v.bad_bytes))
}

fn merged_latency(reading: &Reading) -> LatencyHistogram {
    let mut all = LatencyHistogram::default();
    for histogram in reading.streams.iter().filter_map(|s| s.latency.as_ref()) {
        all.merge(histogram);
    }
    all
}

fn latency_summary(h: &LatencyHistogram) -> LatencySummary {
    let at = |p| h.percentile_ns(p).unwrap_or_default();
    LatencySummary {
        count: h.total(),
        min_ns: h.min_ns,
        mean_ns: h.mean_ns().unwrap_or_default(),
        p50_ns: at(50.0),
        p90_ns: at(90.0),
        p99_ns: at(99.0),
        p999_ns: at(99.9),
        max_ns: h.max_ns,
        overflow: h.overflow,
    }
}

fn total_udp(reading: &Reading) -> UdpReading {
    let mut sum = UdpReading::default();
    for u in reading.streams.iter().filter_map(|s| s.udp) {
        sum.sent = sum.sent.saturating_add(u.sent);
        sum.send_refused = sum.send_refused.saturating_add(u.send_refused);
        sum.received = sum.received.saturating_add(u.received);
        sum.duplicates = sum.duplicates.saturating_add(u.duplicates);
        sum.reordered = sum.reordered.saturating_add(u.reordered);
        sum.too_late = sum.too_late.saturating_add(u.too_late);
        sum.jitter_ns = sum.jitter_ns.max(u.jitter_ns);
        sum.socket_drops = sum.socket_drops.saturating_add(u.socket_drops);
        sum.requests_lost = sum.requests_lost.saturating_add(u.requests_lost);
    }
    sum
}

fn loss_summary(trial: &Trial, dut: &Reading, peer: &Reading) -> LossSummary {
    let (sender, receiver) = (total_udp(dut), total_udp(peer));
    let transactional = trial.workload.kind().is_transactional();
    let lost =
        if transactional { sender.requests_lost } else { sender.sent.saturating_sub(receiver.received) };
    let both = |pick: fn(&UdpReading) -> u64| total([pick(&sender), pick(&receiver)]);
    LossSummary {
        sent: sender.sent,
        lost,
        lost_percent: percent(lost, sender.sent),
        duplicates: both(|u| u.duplicates),
        reordered: both(|u| u.reordered),
        jitter_ns: (!transactional).then_some(receiver.jitter_ns),
        places: loss_places(&sender, &receiver, dut, peer),
    }
}

fn loss_places(sender: &UdpReading, receiver: &UdpReading, dut: &Reading, peer: &Reading) -> Vec<LossPlace> {
    let link = |r: &Reading| r.meter.link.clone().unwrap_or_default();
    let (near, far) = (link(dut), link(peer));
    let qdisc_drops = near.qdisc.map(|q| q.drops).unwrap_or_default();
    let backlog = total(peer.meter.cpu.cpus.iter().map(|c| c.backlog_dropped));
    let tx = total([near.counters.tx_dropped, near.counters.tx_errors]);
    let c = far.counters;
    let rx = total([c.rx_dropped, c.rx_errors, c.rx_missed_errors]);
    let candidates = [
        (DropPlace::SenderSocket, sender.send_refused, "sends refused (ENOBUFS, EAGAIN)"),
        (DropPlace::SenderQdisc, qdisc_drops, "qdisc drops (TCA_STATS2)"),
        (DropPlace::SenderLink, tx, "link tx_dropped + tx_errors"),
        (DropPlace::ReceiverLink, rx, "link rx_dropped + rx_errors + rx_missed_errors"),
        (DropPlace::ReceiverBacklog, backlog, "softnet_stat dropped"),
        (DropPlace::ReceiverSocket, receiver.socket_drops, "socket drops (SO_RXQ_OVFL)"),
    ];
    candidates
        .into_iter()
        .filter(|&(_, packets, _)| packets > 0)
        .map(|(place, packets, source)| LossPlace { place, packets, source: source.to_owned() })
        .collect()
}
