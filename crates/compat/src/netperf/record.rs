//! What `--linerate-json` keeps: each iteration of a test as the project's own record.

use std::net::{IpAddr, SocketAddr};

use linerate_model::Trial;
use linerate_model::experiment::DEFAULT_UDP_TIMEOUT_NS;
use linerate_model::reading::{Flow, Reading, UdpReading};
use linerate_model::trial::{Amount, Family, Pinning, Side};
use linerate_model::units::{ByteCount, Rate, RateUnit};
use linerate_model::workload::{
    SendMethod, TcpCrr, TcpOptions, TcpRr, TcpStream, UdpOptions, UdpRr, UdpStream, Workload,
};

use super::drive::Iteration;
use super::options::{Options, TestName};
use super::request::{Length, Pattern, Transport};
use crate::observed::{Observed, Watch, machine_told, stream, tcp_told, told};

/// A run as a record has it; `watch` covers the data's time.
pub(crate) fn observed(
    options: &Options,
    run: &Iteration,
    watch: &Watch,
    (local, server): (SocketAddr, SocketAddr),
    interrupted: bool,
) -> Observed {
    let own = &options.own;
    let is_udp = own.transport == Transport::Udp;
    let elapsed_ns = run.local.elapsed_ns;
    let mut near = stream(0, Some((local, server)), run.count.sent, run.count.received);
    near.transactions = run.count.transactions;
    near.socket.send_buffer_bytes = u64::try_from(run.local.send_buffer).unwrap_or(0);
    near.socket.receive_buffer_bytes = u64::try_from(run.local.receive_buffer).unwrap_or(0);
    near.socket.congestion = Some(run.local.tcp.congestion.clone()).filter(|name| !name.is_empty());
    near.latency = run.local.latency.clone();
    if run.local.tcp.retransmits >= 0 && own.pattern != Pattern::Maerts {
        let word = |value: i32| u32::try_from(value).unwrap_or(0);
        near.socket.mss_bytes = u32::try_from(run.local.tcp.mss).ok();
        near.tcp = tcp_told(word(run.local.tcp.retransmits).into(), word(run.local.tcp.mss));
    }
    let mut far = far(options, run, elapsed_ns);
    if is_udp {
        let (near_udp, far_udp) = datagrams(options, run);
        near.udp = Some(near_udp);
        far.streams[0].udp = Some(far_udp);
    }
    // The dut connects; of one-way datagrams it is who sends.
    let is_peer = is_udp && own.pattern == Pattern::Maerts;
    let reading = watch.reading(vec![near], Some(elapsed_ns));
    Observed {
        tool: "netperf",
        side: if is_peer { Side::Peer } else { Side::Dut },
        started_at_ns: watch.started_at_ns(),
        trial: trial(options, run, server.ip()),
        interrupted,
        environment: watch.environment(),
        near: reading,
        far,
        remote: (server.ip().to_canonical().to_string(), server.port()),
        shared_kernel: watch.is_own(server.ip()),
    }
}

fn far(options: &Options, run: &Iteration, elapsed_ns: u64) -> Reading {
    let results = &run.results;
    let flow = |bytes, calls: u32| Flow { bytes, messages: calls.into() };
    let sent = flow(results.sent_bytes, results.send_calls);
    let received = flow(results.received_bytes, results.receive_calls);
    let mut far = stream(0, None, sent, received);
    far.socket.congestion = Some(results.congestion.clone()).filter(|name| !name.is_empty());
    if let (Ok(retransmits), Pattern::Maerts) = (u64::try_from(results.retransmits), options.own.pattern) {
        far.tcp = tcp_told(retransmits, 0);
    }
    let far_ns = if results.elapsed > 0.0 { (f64::from(results.elapsed) * 1e9) as u64 } else { elapsed_ns };
    let mut reading = told(vec![far], far_ns);
    let measured = run.response.measure_cpu.then_some(results.cpu).flatten().filter(|cpu| cpu.util >= 0.0);
    if let (Some(cpu), Ok(cpus)) = (measured, u32::try_from(results.cpus)) {
        let share = f64::from(cpu.util) / 100.0;
        reading.meter.cpu = machine_told(share, cpus, far_ns, "told by netserver");
    }
    reading
}

fn datagrams(options: &Options, run: &Iteration) -> (UdpReading, UdpReading) {
    let (count, results) = (&run.count, &run.results);
    match options.own.pattern {
        Pattern::Stream => (
            UdpReading { sent: count.sent.messages, send_refused: count.refused, ..UdpReading::default() },
            UdpReading { received: results.receive_calls.into(), ..UdpReading::default() },
        ),
        Pattern::Maerts => (
            UdpReading { received: count.received.messages, ..UdpReading::default() },
            UdpReading { sent: results.send_calls.into(), ..UdpReading::default() },
        ),
        _ => {
            let sent = count.sent.messages;
            (UdpReading { sent, requests_lost: count.lost, ..UdpReading::default() }, UdpReading::default())
        }
    }
}

fn trial(options: &Options, run: &Iteration, server: IpAddr) -> Trial {
    let is_v6 = server.to_canonical().is_ipv6();
    let amount = match options.length {
        Length::Seconds(seconds) => Amount::DurationNs(u64::from(seconds) * 1_000_000_000),
        Length::Count(count) if options.counts_transactions() => Amount::Transactions(count),
        Length::Count(count) => Amount::Bytes(count),
        Length::Unlimited => Amount::DurationNs(run.local.elapsed_ns),
    };
    Trial {
        workload: workload(options, run),
        family: if is_v6 { Family::V6 } else { Family::V4 },
        peers: 1,
        streams: 1,
        amount,
        warmup_ns: 0,
        interval_ns: options.interim_seconds.map(|seconds| (seconds.abs() * 1e9) as u64),
        verify_seed: None,
        pin: Pinning {
            dut: u32::try_from(options.bind_cpu[0]).into_iter().collect(),
            peer: u32::try_from(options.bind_cpu[1]).into_iter().collect(),
        },
        repeat: 0,
        settings: Vec::new(),
    }
}

/// A connection without a request (TCP_CC) is tcp-crr with messages of 0 bytes.
fn workload(options: &Options, run: &Iteration) -> Workload {
    let own = &options.own;
    let bytes = |size: i32| ByteCount(u64::try_from(size).unwrap_or(0));
    let buffer_bytes = own.local_buffers.iter().find(|b| **b > 0).map(|b| bytes(*b));
    let tos = u8::try_from(options.tos[0]).ok().filter(|tos| *tos > 0);
    let tcp = TcpOptions {
        buffer_bytes,
        nodelay: own.nodelay,
        mss_bytes: None,
        congestion: Some(own.congestion[0].clone()).filter(|name| !name.is_empty()),
        tos,
    };
    let udp = UdpOptions { buffer_bytes, tos };
    let (request, response) = match own.pattern {
        Pattern::Cc => (ByteCount(0), ByteCount(0)),
        _ => (bytes(own.exchange[0]), bytes(own.exchange[1])),
    };
    let in_flight = (options.in_flight() > 1).then(|| u32::try_from(options.in_flight()).unwrap_or(u32::MAX));
    let rate = |unit| {
        let (burst, micros) = (options.burst[0], options.interval_micros[0]);
        (burst > 0 && micros > 0)
            .then(|| Rate { per_second: u64::from(burst) * 1_000_000 / u64::from(micros), unit })
    };
    let send_size = if own.pattern == Pattern::Maerts { run.response.send_size } else { run.sizes.0 };
    let (packets, requests) = (RateUnit::PacketsPerSecond, RateUnit::RequestsPerSecond);
    match (own.pattern, own.transport) {
        (Pattern::Stream | Pattern::Maerts, Transport::Udp) => {
            Workload::UdpStream(UdpStream { size: bytes(send_size), rate: rate(packets), socket: udp })
        }
        (Pattern::Stream | Pattern::Maerts, Transport::Tcp) => {
            let send = match options.test {
                TestName::TcpSendfile => SendMethod::Sendfile,
                _ => SendMethod::Write,
            };
            let stream = TcpStream { size: bytes(send_size), send, rate: rate(packets), socket: tcp };
            match own.pattern {
                Pattern::Stream => Workload::TcpStream(stream),
                _ => Workload::TcpReverse(stream),
            }
        }
        (Pattern::Rr, Transport::Tcp) => {
            Workload::TcpRr(TcpRr { request, response, in_flight, rate: rate(requests), socket: tcp })
        }
        (Pattern::Crr | Pattern::Cc, Transport::Tcp) => {
            Workload::TcpCrr(TcpCrr { request, response, rate: rate(requests), socket: tcp })
        }
        (_, Transport::Udp) => Workload::UdpRr(UdpRr {
            request,
            response,
            in_flight,
            rate: rate(requests),
            timeout_ns: own
                .udp_timeout_seconds
                .map_or(DEFAULT_UDP_TIMEOUT_NS, |seconds| u64::from(seconds) * 1_000_000_000),
            socket: udp,
        }),
    }
}

/// Whether a test has a record: those that move nothing have none.
pub(crate) fn has_record(options: &Options) -> bool {
    !matches!(options.test, TestName::TcpMss | TestName::LocCpu | TestName::RemCpu | TestName::Uuid)
}
