//! What `--linerate-json` keeps: each test as the project's own record, one a direction of UDP.

use std::net::{IpAddr, ToSocketAddrs, UdpSocket};

use linerate_model::Trial;
use linerate_model::counters::ThreadReading;
use linerate_model::reading::{Flow, Reading, StreamReading, UdpReading};
use linerate_model::trial::{Amount, Family, Pinning, Side};
use linerate_model::units::{ByteCount, Rate, RateUnit};
use linerate_model::workload::{
    SendMethod, TcpBidir, TcpOptions, TcpStream, UdpOptions, UdpStream, Workload,
};

use super::params::{Params, Transport};
use super::report::{Connected, End, Event, Moved, Role, Started, StreamEnd};
use crate::observed::{Observed, Watch, process_told, stream, tcp_told, told};

/// Gathers one test.
#[derive(Debug, Default)]
pub(super) struct Record {
    test: Option<Test>,
}

#[derive(Debug)]
struct Test {
    connected: Connected,
    started: Option<Started>,
    watch: Watch,
}

impl Record {
    /// Takes an event; gives what is to be kept when the test is over.
    pub(super) fn event(&mut self, event: &Event) -> Vec<Observed> {
        match (event, &mut self.test) {
            (Event::Connected(connected), test) => {
                let watch = Watch::open(source_towards(&connected.host, connected.port));
                *test = Some(Test { connected: (**connected).clone(), started: None, watch });
            }
            (Event::Started(started), Some(test)) => {
                test.started = Some((**started).clone());
                test.watch.begin();
            }
            // The omitted time is none of the window, nor is what is said after the last interval.
            (Event::Interval(interval), Some(test)) if interval.omitted => test.watch.begin(),
            (Event::Interval(_), Some(test)) => test.watch.end(),
            (Event::Ended(end), Some(_)) => {
                let ended = std::mem::take(&mut self.test);
                return ended.map(|test| test.observed(end)).unwrap_or_default();
            }
            (_, None) | (Event::Failed(_), _) => {}
        }
        Vec::new()
    }
}

/// The address from which this machine reaches a host.
fn source_towards(host: &str, port: u16) -> IpAddr {
    let found = || {
        let remote = (host, port.max(1)).to_socket_addrs().ok()?.next()?;
        let any = if remote.is_ipv4() { "0.0.0.0" } else { "::" };
        let socket = UdpSocket::bind((any, 0)).ok()?;
        socket.connect(remote).ok()?;
        Some(socket.local_addr().ok()?.ip())
    };
    found().unwrap_or_else(|| IpAddr::from([0, 0, 0, 0]))
}

impl Test {
    fn observed(mut self, end: &End) -> Vec<Observed> {
        self.watch.end_once();
        let params = &self.connected.params;
        if params.transport == Transport::Tcp {
            let all: Vec<&StreamEnd> = end.streams.iter().collect();
            let side = if self.connected.role == Role::Client { Side::Dut } else { Side::Peer };
            return vec![self.one(end, &all, tcp_workload(params), side)];
        }
        // Datagrams go from dut to peer: a test of both directions is two.
        [(true, Side::Dut), (false, Side::Peer)]
            .into_iter()
            .filter_map(|(sends, side)| {
                let those: Vec<&StreamEnd> = end.streams.iter().filter(|s| s.sends == sends).collect();
                (!those.is_empty()).then(|| self.one(end, &those, udp_workload(params), side))
            })
            .collect()
    }

    fn one(&self, end: &End, streams: &[&StreamEnd], workload: Workload, side: Side) -> Observed {
        let c = &self.connected;
        let moved = streams.iter().flat_map(|s| [s.sent, s.received]).flatten();
        let elapsed_ns = (moved.map(|m| m.seconds).fold(0.0, f64::max) * 1e9) as u64;
        let near = streams.iter().enumerate().map(|(index, s)| self.near(index, s)).collect();
        let mut near = self.watch.reading(near, Some(elapsed_ns));
        let on_cpu_ns = (end.cpu_local.total / 100.0 * elapsed_ns as f64) as u64;
        if let [process] = near.threads.as_mut_slice() {
            *process = ThreadReading { on_cpu_ns, ..process.clone() };
        }
        let remote =
            self.started.as_ref().and_then(|s| s.streams.first()).map(|s| s.remote.ip().to_canonical());
        let params = &c.params;
        Observed {
            tool: "iperf3",
            side,
            started_at_ns: self.watch.started_at_ns(),
            trial: Trial {
                workload,
                family: if remote.is_some_and(|r| r.is_ipv6()) { Family::V6 } else { Family::V4 },
                peers: 1,
                streams: params.parallel,
                amount: match (params.target_bytes(), params.time_s) {
                    (Some(bytes), _) => Amount::Bytes(bytes),
                    (None, 0) => Amount::DurationNs(elapsed_ns),
                    (None, seconds) => Amount::DurationNs(u64::from(seconds) * 1_000_000_000),
                },
                warmup_ns: u64::from(params.omit_s) * 1_000_000_000,
                interval_ns: self
                    .started
                    .as_ref()
                    .filter(|s| s.interval_s > 0.0)
                    .map(|s| (s.interval_s * 1e9) as u64),
                verify_seed: None,
                pin: Pinning::default(),
                repeat: 0,
                settings: Vec::new(),
            },
            interrupted: false,
            environment: self.watch.environment(),
            near,
            far: far(streams, end, elapsed_ns),
            remote: (c.host.clone(), c.port),
            shared_kernel: remote.is_some_and(|remote| self.watch.is_own(remote)),
        }
    }

    fn near(&self, index: usize, s: &StreamEnd) -> StreamReading {
        let started = self.started.as_ref();
        let ends = started.and_then(|all| all.streams.iter().find(|e| e.socket == s.socket));
        let (sent, received) = if s.sends { (s.sent, None) } else { (None, s.received) };
        let mut near = stream(index, ends.map(|e| (e.local, e.remote)), flow(sent), flow(received));
        if let Some((send, receive)) = started.map(|all| all.buffers) {
            near.socket.send_buffer_bytes = send.into();
            near.socket.receive_buffer_bytes = receive.into();
        }
        near.socket.mss_bytes = started.and_then(|all| all.mss);
        if let (true, Some(retransmits), None) = (s.sends, s.retransmits, s.udp) {
            near.tcp = tcp_told(count(retransmits), near.socket.mss_bytes.unwrap_or(0));
        }
        datagrams(&mut near, s, s.sends);
        near
    }
}

/// What the other end said; nothing on a server, to whom a client's figures come too late.
fn far(streams: &[&StreamEnd], end: &End, elapsed_ns: u64) -> Reading {
    let is_told = |s: &&StreamEnd| if s.sends { s.received.is_some() } else { s.sent.is_some() };
    if !streams.iter().all(is_told) {
        return told(Vec::new(), elapsed_ns);
    }
    let one = |(index, s): (usize, &&StreamEnd)| {
        let (sent, received) = if s.sends { (None, s.received) } else { (s.sent, None) };
        let mut far = stream(index, None, flow(sent), flow(received));
        if let (false, Some(retransmits), None) = (s.sends, s.retransmits, s.udp) {
            far.tcp = tcp_told(count(retransmits), 0);
        }
        datagrams(&mut far, s, !s.sends);
        far
    };
    let mut reading = told(streams.iter().enumerate().map(one).collect(), elapsed_ns);
    reading.threads = process_told(end.cpu_remote.total, elapsed_ns);
    reading
}

/// Puts in what one end knows of a stream's datagrams.
fn datagrams(reading: &mut StreamReading, s: &StreamEnd, sends: bool) {
    let Some(udp) = s.udp else { return };
    let arrived = count(udp.sent.max(udp.received)).saturating_sub(count(udp.lost));
    if sends {
        reading.sent.messages = count(udp.sent.max(udp.received));
        reading.udp = Some(UdpReading { sent: reading.sent.messages, ..UdpReading::default() });
        return;
    }
    reading.received.messages = arrived;
    reading.udp = Some(UdpReading {
        received: arrived,
        duplicates: count(udp.duplicates),
        reordered: count(udp.out_of_order),
        jitter_ns: (udp.jitter_s * 1e9) as u64,
        ..UdpReading::default()
    });
}

fn flow(moved: Option<Moved>) -> Flow {
    Flow { bytes: moved.map_or(0, |m| m.bytes), messages: 0 }
}

fn count(number: i64) -> u64 {
    u64::try_from(number).unwrap_or(0)
}

fn rate(params: &Params) -> Option<Rate> {
    let kernel = Some(params.fqrate).filter(|rate| *rate > 0);
    let each = params.bandwidth.filter(|rate| *rate > 0).or(kernel)?;
    let per_second = each.saturating_mul(params.parallel.into());
    Some(Rate { per_second, unit: RateUnit::BitsPerSecond })
}

fn tcp_workload(params: &Params) -> Workload {
    let stream = TcpStream {
        size: ByteCount(params.len.into()),
        send: if params.zerocopy { SendMethod::Sendfile } else { SendMethod::Write },
        rate: rate(params),
        socket: TcpOptions {
            buffer_bytes: params.window.map(|w| ByteCount(w.into())),
            nodelay: params.nodelay,
            mss_bytes: params.mss,
            congestion: params.congestion.clone(),
            tos: Some(params.tos).filter(|tos| *tos > 0),
        },
    };
    match (params.bidir, params.reverse) {
        (true, _) => Workload::TcpBidir(TcpBidir { stream, one_connection: false }),
        (false, true) => Workload::TcpReverse(stream),
        (false, false) => Workload::TcpStream(stream),
    }
}

fn udp_workload(params: &Params) -> Workload {
    Workload::UdpStream(UdpStream {
        size: ByteCount(params.len.into()),
        rate: rate(params),
        socket: UdpOptions {
            buffer_bytes: params.window.map(|w| ByteCount(w.into())),
            tos: Some(params.tos).filter(|tos| *tos > 0),
        },
    })
}
