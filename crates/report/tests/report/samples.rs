//! Builds records as a run would: readings first, the summary computed from them by the model.

use std::net::{IpAddr, SocketAddr};

use linerate_model::counters::{
    CpuReading, CpuTime, LinkCounters, LinkReading, MachineCpu, MeterReading, QdiscCounters, ThreadReading,
};
use linerate_model::environment::{Environment, Feature, Irq, LinkAddress, LinkInfo};
use linerate_model::hazard::{Hazard, HazardKind};
use linerate_model::latency::LatencyHistogram;
use linerate_model::limit::{Limit, Limiter};
use linerate_model::profile::Profile;
use linerate_model::reading::*;
use linerate_model::record::{ClockSync, NodeRecord, Outcome, RECORD_SCHEMA};
use linerate_model::summary::summarize;
use linerate_model::trial::{Amount, Family, Pinning, Side};
use linerate_model::units::{ByteCount, Rate, RateUnit};
use linerate_model::workload::*;
use linerate_model::{NodeUrl, Record, Trial};

pub(crate) const SECOND_NS: u64 = 1_000_000_000;

/// Knobs of a sample.
#[derive(Clone)]
pub(crate) struct Sample {
    pub(crate) trial: Trial,
    pub(crate) shared: bool,
    pub(crate) seconds: f64,
    /// Payload bytes a second of each sending side; transactions a second for request/response.
    pub(crate) pace: f64,
    pub(crate) dut_busy: f64,
    pub(crate) peer_busy: f64,
    pub(crate) retransmits: u64,
    /// Of the datagrams, as a part of one.
    pub(crate) loss: f64,
    pub(crate) median_us: f64,
    pub(crate) limiter: Limiter,
    pub(crate) bad_bytes: u64,
    pub(crate) outcome: Outcome,
    pub(crate) hazards: Vec<Hazard>,
}

pub(crate) fn trial(workload: Workload) -> Trial {
    Trial {
        workload,
        family: Family::V4,
        peers: 1,
        streams: 1,
        amount: Amount::DurationNs(10 * SECOND_NS),
        warmup_ns: SECOND_NS,
        interval_ns: Some(SECOND_NS),
        verify_seed: None,
        settings: Vec::new(),
        pin: Pinning::default(),
        repeat: 0,
    }
}

pub(crate) fn tcp_stream(size: u64) -> TcpStream {
    TcpStream { size: ByteCount(size), send: SendMethod::Write, rate: None, socket: TcpOptions::default() }
}

/// A plausible trial of a workload.
pub(crate) fn workload(kind: WorkloadKind) -> Workload {
    let one = ByteCount(1);
    match kind {
        WorkloadKind::TcpStream => Workload::TcpStream(tcp_stream(131_072)),
        WorkloadKind::TcpReverse => Workload::TcpReverse(tcp_stream(131_072)),
        WorkloadKind::TcpBidir => {
            Workload::TcpBidir(TcpBidir { stream: tcp_stream(131_072), one_connection: false })
        }
        WorkloadKind::TcpRr => Workload::TcpRr(TcpRr {
            request: one,
            response: one,
            in_flight: None,
            rate: None,
            socket: TcpOptions { nodelay: true, ..TcpOptions::default() },
        }),
        WorkloadKind::TcpCrr => Workload::TcpCrr(TcpCrr {
            request: one,
            response: one,
            rate: None,
            socket: TcpOptions { nodelay: true, ..TcpOptions::default() },
        }),
        WorkloadKind::UdpStream => Workload::UdpStream(UdpStream {
            size: ByteCount(1472),
            rate: None,
            socket: UdpOptions::default(),
        }),
        WorkloadKind::Profile => Workload::Profile(ProfileRun { profile: Profile::default() }),
        WorkloadKind::UdpRr => Workload::UdpRr(UdpRr {
            request: one,
            response: one,
            in_flight: None,
            rate: None,
            timeout_ns: SECOND_NS,
            socket: UdpOptions::default(),
        }),
    }
}

pub(crate) fn sample(kind: WorkloadKind) -> Sample {
    let (pace, median_us, limiter) = match kind {
        WorkloadKind::TcpStream | WorkloadKind::TcpReverse => (2.93e9, 0.0, Limiter::ReceiverCpu),
        WorkloadKind::TcpBidir => (1.71e9, 0.0, Limiter::CongestionWindow),
        WorkloadKind::TcpRr => (61_234.0, 15.9, Limiter::RoundTrip),
        WorkloadKind::TcpCrr => (11_840.0, 81.0, Limiter::RoundTrip),
        WorkloadKind::UdpStream => (742e6, 0.0, Limiter::SenderCpu),
        WorkloadKind::UdpRr | WorkloadKind::Profile => (70_410.0, 13.8, Limiter::RoundTrip),
    };
    Sample {
        trial: trial(workload(kind)),
        shared: false,
        seconds: 10.0003,
        pace,
        dut_busy: 0.981,
        peer_busy: 1.214,
        retransmits: 0,
        loss: 0.0,
        median_us,
        limiter,
        bad_bytes: 0,
        outcome: Outcome::Complete,
        hazards: Vec::new(),
    }
}

pub(crate) fn hazard(kind: HazardKind, side: Option<Side>, evidence: &str, cure: &str) -> Hazard {
    Hazard { kind, side, evidence: evidence.to_owned(), cure: cure.to_owned() }
}

pub(crate) fn with_size(mut sample: Sample, bytes: u64) -> Sample {
    match &mut sample.trial.workload {
        Workload::TcpStream(w) | Workload::TcpReverse(w) => w.size = ByteCount(bytes),
        Workload::TcpBidir(w) => w.stream.size = ByteCount(bytes),
        Workload::UdpStream(w) => w.size = ByteCount(bytes),
        Workload::TcpRr(w) => w.response = ByteCount(bytes),
        Workload::TcpCrr(w) => w.response = ByteCount(bytes),
        Workload::UdpRr(w) => w.response = ByteCount(bytes),
        Workload::Profile(_) => panic!("a profile has no one size"),
    }
    sample
}

pub(crate) fn with_rate(mut sample: Sample, per_second: u64, unit: RateUnit) -> Sample {
    let rate = Some(Rate { per_second, unit });
    match &mut sample.trial.workload {
        Workload::TcpStream(w) | Workload::TcpReverse(w) => w.rate = rate,
        Workload::TcpBidir(w) => w.stream.rate = rate,
        Workload::UdpStream(w) => w.rate = rate,
        Workload::TcpRr(w) => w.rate = rate,
        Workload::TcpCrr(w) => w.rate = rate,
        Workload::UdpRr(w) => w.rate = rate,
        Workload::Profile(_) => panic!("a profile has rates of its own"),
    }
    sample
}

/// The record that a run with these knobs leaves.
pub(crate) fn record(sequence: u32, sample: &Sample) -> Record {
    let dut = reading(sample, Side::Dut);
    let peer = reading(sample, Side::Peer);
    let summary = summarize(&sample.trial, &dut, &peer, sample.shared);
    Record {
        schema: RECORD_SCHEMA.to_owned(),
        run: "5b1d2c9a7f0e4c3d8a6b1e2f3c4d5e6f".to_owned(),
        sequence,
        seed: None,
        block: None,
        combination: None,
        started_at: format!("2026-12-01T12:{:02}:00.123456789Z", sequence % 60),
        trial: sample.trial.clone(),
        outcome: sample.outcome,
        dut: node(sample, Side::Dut, dut),
        peer: node(sample, Side::Peer, peer),
        peers: Vec::new(),
        clock: ClockSync {
            peer_minus_dut_ns: if sample.shared { 0 } else { -1_234_567 },
            uncertainty_ns: 21_300,
        },
        shared_kernel: sample.shared,
        summary,
        limit: Limit {
            limiter: sample.limiter,
            evidence:
                "receiving thread on CPU 99.2 % of the window; sender's CPU 2 at 71.4 %; receive window \
                       limited 3.1 % of busy time, send buffer 0 %"
                    .to_owned(),
        },
        hazards: sample.hazards.clone(),
        stand_in: None,
    }
}

fn reading(sample: &Sample, side: Side) -> Reading {
    let window_ns = (sample.seconds * 1e9) as u64;
    let busy = if side == Side::Dut { sample.dut_busy } else { sample.peer_busy };
    let machine = if sample.shared { sample.dut_busy + sample.peer_busy } else { busy };
    let streams: Vec<StreamReading> = (0..sample.trial.streams).map(|i| stream(sample, side, i)).collect();
    let threads = (0..sample.trial.streams).map(|stream| ThreadReading {
        role: if side == Side::Dut { "send" } else { "receive" }.to_owned(),
        stream,
        tid: 4100 + stream,
        pinned_cpu: sample.trial.pin.dut.first().copied(),
        on_cpu_ns: (busy * 0.93 * window_ns as f64 / f64::from(sample.trial.streams)) as u64,
        run_queue_wait_ns: Some(window_ns / 1000),
    });
    Reading {
        knowledge: Knowledge::Measured,
        window: Window {
            start_ns: 881_000_000_000,
            duration_ns: window_ns,
            start_late_ns: 11_000,
            end_late_ns: 9_000,
        },
        threads: threads.collect(),
        intervals: intervals(&streams, window_ns, machine),
        streams,
        meter: meter(sample, side, machine, window_ns),
        strays: 0,
    }
}

fn intervals(streams: &[StreamReading], window_ns: u64, machine_busy: f64) -> Vec<IntervalReading> {
    let parts = (window_ns / SECOND_NS).clamp(1, 3);
    let share = |flow: Flow| Flow { bytes: flow.bytes / 10, messages: flow.messages / 10 };
    let of_streams = streams.iter().map(|s| IntervalStream {
        index: s.index,
        sent: share(s.sent),
        received: share(s.received),
        transactions: s.transactions / 10,
        retransmits: s.tcp.iter().map(|t| t.retransmits).sum(),
        rtt_us: s.tcp.first().map_or(0, |t| t.rtt_us),
    });
    let of_streams: Vec<IntervalStream> = of_streams.collect();
    (0..parts)
        .map(|n| IntervalReading {
            start_ns: n * SECOND_NS,
            duration_ns: SECOND_NS,
            busy_ns: (machine_busy * 1e9) as u64,
            streams: of_streams.clone(),
        })
        .collect()
}

fn stream(sample: &Sample, side: Side, index: u32) -> StreamReading {
    let kind = sample.trial.workload.kind();
    let work = sample.pace * sample.seconds / f64::from(sample.trial.streams);
    let (out, back) = flows(&sample.trial.workload, work);
    let arrives = |flow: Flow| Flow {
        bytes: (flow.bytes as f64 * (1.0 - sample.loss)) as u64,
        messages: (flow.messages as f64 * (1.0 - sample.loss)) as u64,
    };
    let (sent, received) = if side == Side::Dut { (out, arrives(back)) } else { (back, arrives(out)) };
    let port = 40_000 + u16::try_from(index).expect("few streams");
    let (near, far) =
        (address(sample.trial.family, side, port), address(sample.trial.family, other(side), 5213));
    let standing = kind != WorkloadKind::TcpCrr;
    StreamReading {
        index,
        local: standing.then_some(near),
        remote: standing.then_some(far),
        sent,
        received,
        transactions: if kind.is_transactional() && side == Side::Dut { work as u64 } else { 0 },
        socket: SocketReading {
            send_buffer_bytes: 2_626_560,
            receive_buffer_bytes: 6_291_456,
            congestion: (!kind.is_udp()).then(|| "cubic".to_owned()),
            mss_bytes: (!kind.is_udp()).then_some(1448),
        },
        tcp: if kind.is_udp() { Vec::new() } else { vec![tcp(sample, sent, received)] },
        udp: kind.is_udp().then(|| udp(sample, side, out)),
        latency: (kind.is_transactional() && side == Side::Dut)
            .then(|| latency(sample.median_us, work as u64)),
        verify: sample.trial.verify_seed.map(|_| VerifyReading {
            checked_bytes: received.bytes,
            bad_bytes: if side == Side::Peer && index == 0 { sample.bad_bytes } else { 0 },
            first_bad_offset: (side == Side::Peer && index == 0 && sample.bad_bytes > 0).then_some(131_072),
        }),
        zerocopy: None,
        error: None,
    }
}

/// What the dut and the peer send for so much work: bytes of a stream, transactions else.
fn flows(workload: &Workload, work: f64) -> (Flow, Flow) {
    let bulk = |size: ByteCount| Flow { bytes: work as u64, messages: work as u64 / size.0 };
    let messages =
        |size: ByteCount| Flow { bytes: (work as u64).saturating_mul(size.0), messages: work as u64 };
    let none = Flow::default();
    match workload {
        Workload::TcpStream(w) => (bulk(w.size), none),
        Workload::TcpReverse(w) => (none, bulk(w.size)),
        Workload::TcpBidir(w) => (bulk(w.stream.size), bulk(w.stream.size)),
        Workload::UdpStream(w) => (bulk(w.size), none),
        Workload::TcpRr(w) => (messages(w.request), messages(w.response)),
        Workload::TcpCrr(w) => (messages(w.request), messages(w.response)),
        Workload::UdpRr(w) => (messages(w.request), messages(w.response)),
        Workload::Profile(_) => (bulk(ByteCount(1000)), bulk(ByteCount(1000))),
    }
}

fn tcp(sample: &Sample, sent: Flow, received: Flow) -> TcpReading {
    TcpReading {
        rtt_us: 45,
        rtt_variation_us: 8,
        min_rtt_us: 21,
        congestion_window_segments: 412,
        send_mss_bytes: 1448,
        path_mtu_bytes: 1500,
        retransmits: sample.retransmits,
        retransmitted_bytes: sample.retransmits.saturating_mul(1448),
        acked_bytes: sent.bytes,
        segments_sent: sent.bytes / 1448 + sent.messages,
        segments_received: received.bytes / 1448 + received.messages,
        delivery_rate_bytes_per_second: 2_930_000_000,
        delivery_app_limited: false,
        busy_us: 9_990_000,
        receive_window_limited_us: 310_000,
        send_buffer_limited_us: 0,
        reordering_seen: 0,
        out_of_order_received: 0,
    }
}

fn udp(sample: &Sample, side: Side, out: Flow) -> UdpReading {
    let lost = (out.messages as f64 * sample.loss) as u64;
    let transactional = sample.trial.workload.kind().is_transactional();
    match side {
        Side::Dut => UdpReading {
            sent: out.messages,
            requests_lost: if transactional { lost } else { 0 },
            ..UdpReading::default()
        },
        Side::Peer => UdpReading {
            received: out.messages - lost,
            reordered: if transactional { 0 } else { lost / 97 },
            jitter_ns: if transactional { 0 } else { 4_310 },
            socket_drops: lost * 3 / 4,
            ..UdpReading::default()
        },
    }
}

fn latency(median_us: f64, count: u64) -> LatencyHistogram {
    let at = |factor: f64| (median_us * 1000.0 * factor) as u64;
    let steps = [(0.8, 0.2), (1.0, 0.4), (1.3, 0.38), (2.2, 0.015), (9.0, 0.004), (41.0, 0.001)];
    let counts = steps.map(|(factor, part)| (at(factor), (count as f64 * part) as u64));
    let counts: Vec<(u64, u64)> = counts.into_iter().filter(|&(_, n)| n > 0).collect();
    let (min_ns, max_ns) = (counts.first().map_or(0, |c| c.0), counts.last().map_or(0, |c| c.0));
    LatencyHistogram { counts, overflow: 0, min_ns, max_ns }
}

fn other(side: Side) -> Side {
    if side == Side::Dut { Side::Peer } else { Side::Dut }
}

fn ip(family: Family, side: Side) -> IpAddr {
    let text = match (family, side) {
        (Family::V4, Side::Dut) => "10.7.0.1",
        (Family::V4, Side::Peer) => "10.7.0.2",
        (Family::V6, Side::Dut) => "fd07::1",
        (Family::V6, Side::Peer) => "fd07::2",
    };
    text.parse().expect("an address")
}

fn address(family: Family, side: Side, port: u16) -> SocketAddr {
    SocketAddr::new(ip(family, side), port)
}

fn meter(sample: &Sample, side: Side, machine: f64, window_ns: u64) -> MeterReading {
    let cpu_ns = |busy: f64| {
        let busy_ns = (busy * window_ns as f64) as u64;
        CpuTime {
            busy_ns,
            idle_ns: (2 * window_ns).saturating_sub(busy_ns),
            user_ns: busy_ns / 20,
            system_ns: busy_ns / 2,
            softirq_ns: busy_ns / 3,
            ..CpuTime::default()
        }
    };
    MeterReading {
        cpu: MachineCpu {
            window_ns,
            total: cpu_ns(machine),
            cpus: vec![CpuReading {
                cpu: 0,
                time: cpu_ns(machine / 2.0),
                net_rx_softirqs: 91_202,
                packets_processed: 2_100_400,
                ..CpuReading::default()
            }],
            busy_resolution_ns: 1_000,
            kinds_resolution_ns: 4_000_000,
            source: "/proc/stat: idle time exact with NO_HZ, kinds from ticks of 4 ms".to_owned(),
        },
        link: Some(LinkReading {
            name: link_name(sample, side).to_owned(),
            counters: LinkCounters { rx_packets: 1_000, tx_packets: 2_000_000, ..LinkCounters::default() },
            qdisc: Some(QdiscCounters {
                packets: 2_000_000,
                bytes: 2_900_000_000,
                ..QdiscCounters::default()
            }),
            driver: [("rx_queue_0_xdp_drops".to_owned(), 0)].into(),
        }),
        protocol: [("Tcp.InSegs".to_owned(), 2_000_100)].into(),
        energy: Vec::new(),
        unavailable: vec!["energy: no RAPL domain under /sys/class/powercap".to_owned()],
    }
}

fn link_name(sample: &Sample, side: Side) -> &'static str {
    match (sample.shared, side) {
        (true, Side::Dut) => "lr-dut",
        (true, Side::Peer) => "lr-peer",
        (false, Side::Dut) => "eth1",
        (false, Side::Peer) => "enp3s0f0",
    }
}

fn node(sample: &Sample, side: Side, reading: Reading) -> NodeRecord {
    let url = match (sample.shared, side) {
        (true, Side::Dut) => "netns:lr-dut",
        (true, Side::Peer) => "netns:lr-peer",
        (false, Side::Dut) => "local",
        (false, Side::Peer) => "ssh:bench@far",
    };
    let node: NodeUrl = url.parse().expect("a node");
    let far = !sample.shared && side == Side::Peer;
    let environment = Environment {
        linerate_version: "0.1.0".to_owned(),
        host: if far { "far" } else { "near" }.to_owned(),
        kernel: if far { "6.12.48" } else { "6.18.5" }.to_owned(),
        kernel_build: "#1 SMP PREEMPT_DYNAMIC".to_owned(),
        architecture: "x86_64".to_owned(),
        boot_id: if far { "0d6c6bd6-far" } else { "7b9f5a51-near" }.to_owned(),
        cpu_model: "Intel(R) Xeon(R) Processor @ 2.90GHz".to_owned(),
        cpus_online: 2,
        cpus_allowed: vec![0, 1],
        numa_nodes: 1,
        memory_bytes: 8 << 30,
        hypervisor: Some("KVM".to_owned()),
        governor: None,
        clocksource: Some("tsc".to_owned()),
        mitigations: [("spectre_v2".to_owned(), "Mitigation: Enhanced IBRS".to_owned())].into(),
        sysctls: [("net.ipv4.tcp_congestion_control".to_owned(), "cubic".to_owned())].into(),
        congestion_controls: vec!["reno".to_owned(), "cubic".to_owned()],
        link: Some(link(sample, side)),
        ..Environment::default()
    };
    NodeRecord { node, environment, reading, guest: None }
}

fn link(sample: &Sample, side: Side) -> LinkInfo {
    let on = Feature { on: true, changeable: true };
    let off = Feature { on: false, changeable: true };
    let features = [
        ("tx-tcp-segmentation", on),
        ("tx-tcp6-segmentation", on),
        ("tx-generic-segmentation", on),
        ("rx-gro", if sample.shared { off } else { on }),
        ("tx-checksum-ip-generic", on),
        ("rx-checksum", on),
        ("tx-scatter-gather", on),
        ("rx-lro", Feature { on: false, changeable: false }),
    ];
    LinkInfo {
        name: link_name(sample, side).to_owned(),
        index: 7,
        up: true,
        carrier: true,
        kind: sample.shared.then(|| "veth".to_owned()),
        mtu: 1500,
        mac: Some("02:00:00:00:00:01".to_owned()),
        addresses: vec![LinkAddress {
            address: ip(sample.trial.family, side),
            prefix: 24,
            scope: "global".to_owned(),
            tentative: false,
        }],
        qdisc: Some(if sample.shared { "noqueue" } else { "mq" }.to_owned()),
        tx_queues: if sample.shared { 1 } else { 4 },
        rx_queues: if sample.shared { 1 } else { 4 },
        speed_mbit: Some(if sample.shared { 10_000 } else { 25_000 }),
        duplex: Some("full".to_owned()),
        driver: Some(if sample.shared { "veth" } else { "ice" }.to_owned()),
        driver_version: Some(if sample.shared { "1.0" } else { "6.18.5" }.to_owned()),
        features: features.map(|(name, f)| (name.to_owned(), f)).into(),
        irqs: vec![Irq { number: 41, name: "ice-eth1-TxRx-0".to_owned(), affinity: "0-1".to_owned() }],
        ..LinkInfo::default()
    }
}
