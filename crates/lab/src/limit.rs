//! What limited a trial, from evidence.
//!
//! The rules, in order; the first that holds decides:
//! 1. the rate asked for was reached within 3 %: the pace;
//! 2. the wire carries 95 % of the link's speed, headers and gaps included: the link (never a virtual one);
//! 3. the receiver's kernel dropped datagrams at the socket while its thread was busy: the receiver's CPU;
//! 4. one end's busiest thread was running, or waiting to run, 95 % of the window, and the other's was not: its CPU. So
//!    is an end whose kernel is its own and has a CPU that was busy 97 % of the window, half of it in softirqs.
//!    Where both were: the receiver's, if the sender was held back by the receive window; else unclear;
//! 5. the sender's connections stood still half of the window for the receive window, or for the send buffer
//!    (`tcpi_rwnd_limited`, `tcpi_sndbuf_limited`): that one;
//! 6. data was in flight 90 % of the window, segments were retransmitted, and goodput is what the congestion windows allow
//!    (window / round-trip time, within a quarter): the congestion window;
//! 7. one request outstanding on each connection, hardly any lost: the round trip;
//! 8. else unclear.

use linerate_model::counters::ThreadReading;
use linerate_model::limit::{Limit, Limiter};
use linerate_model::reading::{Reading, TcpReading};
use linerate_model::record::{NodeRecord, Record};
use linerate_model::summary::percent;
use linerate_model::trial::Side;
use linerate_model::units::{RateUnit, bits_per_second};
use linerate_model::workload::Workload;

/// Part of the asked rate that counts as reached.
const PACE_REACHED: f64 = 0.97;
/// Percent of the link's speed that counts as full.
const LINK_FULL: f64 = 95.0;
/// Percent of the window that a thread must have wanted the CPU to be limited by it.
const CPU_BOUND: f64 = 95.0;
/// Percent of the window that connections must have stood still.
const STALLED: f64 = 50.0;
/// Percent of the window that a CPU must have been busy to hold back its softirqs.
const CPU_FULL: f64 = 97.0;
/// Percent of the window with data in flight.
const ALWAYS_BUSY: f64 = 90.0;
/// Preamble, frame check sequence and gap that Ethernet adds to each frame, bytes (IEEE 802.3).
const ETHERNET_UNCOUNTED_BYTES: u64 = 8 + 4 + 12;

/// The limit before anything is known.
pub fn undecided() -> Limit {
    Limit { limiter: Limiter::Unclear, evidence: String::new() }
}

/// What limited a trial.
pub fn of(record: &Record) -> Limit {
    let view = View::of(record);
    let rules = [pace, link_speed, receiver_drops, cpu, stalls, congestion_window, round_trip];
    rules.iter().find_map(|rule| rule(&view)).unwrap_or_else(|| unclear(&view))
}

/// A record seen from its main direction of payload.
struct View<'a> {
    record: &'a Record,
    sender: &'a NodeRecord,
    receiver: &'a NodeRecord,
}

impl<'a> View<'a> {
    fn of(record: &'a Record) -> Self {
        let strongest =
            record.summary.directions.iter().max_by(|a, b| a.received_bytes.cmp(&b.received_bytes));
        // Of request/response the dut is the sender: it asks.
        let from_peer = !record.trial.workload.kind().is_transactional()
            && strongest.is_some_and(|d| d.from == Side::Peer);
        let (sender, receiver) =
            if from_peer { (&record.peer, &record.dut) } else { (&record.dut, &record.peer) };
        Self { record, sender, receiver }
    }

    fn sender_busy(&self) -> f64 {
        busiest_thread(&self.sender.reading, &["send", "request", "strand"])
            .max(self.softirq_bound(self.sender))
    }

    fn receiver_busy(&self) -> f64 {
        busiest_thread(&self.receiver.reading, &["receive", "respond", "strand"])
            .max(self.softirq_bound(self.receiver))
    }

    /// How busy a node's fullest CPU was, where softirqs filled it; 0 where none was full, or the kernel is shared and the
    /// softirqs may be the other end's.
    fn softirq_bound(&self, node: &NodeRecord) -> f64 {
        if self.record.shared_kernel {
            return 0.0;
        }
        let window_ns = node.reading.meter.cpu.window_ns;
        let full =
            node.reading.meter.cpu.cpus.iter().filter(|cpu| cpu.time.softirq_ns * 2 >= cpu.time.busy_ns);
        full.map(|cpu| percent(cpu.time.busy_ns, window_ns))
            .filter(|&busy| busy >= CPU_FULL)
            .fold(0.0, f64::max)
    }

    fn connections(&self) -> impl Iterator<Item = &TcpReading> {
        // Of two connections, one each way, only that which carries the sender's data counts.
        self.sender.reading.streams.iter().flat_map(|s| &s.tcp).filter(|t| t.segments_sent > 0)
    }

    /// Mean over the sender's connections, percent of the window.
    fn mean_percent(&self, time_us: fn(&TcpReading) -> u64) -> f64 {
        let window_us = self.sender.reading.window.duration_ns / 1000;
        let (sum, count) =
            self.connections().fold((0.0, 0), |(s, n), t| (s + percent(time_us(t), window_us), n + 1));
        if count == 0 { 0.0 } else { sum / f64::from(count) }
    }
}

/// Percent of the window that the busiest thread with one of these roles ran or waited to run.
fn busiest_thread(reading: &Reading, roles: &[&str]) -> f64 {
    let wanted = |t: &ThreadReading| {
        percent(t.on_cpu_ns + t.run_queue_wait_ns.unwrap_or_default(), reading.window.duration_ns)
    };
    reading.threads.iter().filter(|t| roles.contains(&t.role.as_str())).map(wanted).fold(0.0, f64::max)
}

fn limit(limiter: Limiter, evidence: String) -> Option<Limit> {
    Some(Limit { limiter, evidence })
}

fn pace(view: &View<'_>) -> Option<Limit> {
    let rate = view.record.trial.workload.rate()?;
    let summary = &view.record.summary;
    let window_ns = view.sender.reading.window.duration_ns;
    let sent = || view.sender.reading.streams.iter().map(|s| s.sent.messages).sum::<u64>();
    let (reached, unit) = match rate.unit {
        RateUnit::BitsPerSecond => {
            // The rate is for each direction: the weaker one tells whether it was reached.
            let weakest =
                summary.directions.iter().map(|d| d.sent_bits_per_second).fold(f64::INFINITY, f64::min);
            (if weakest.is_finite() { weakest } else { 0.0 }, "bit/s")
        }
        RateUnit::PacketsPerSecond => (linerate_model::units::per_second(sent(), window_ns), "packets/s"),
        RateUnit::RequestsPerSecond => (summary.transactions_per_second.unwrap_or_default(), "requests/s"),
    };
    // The rate is each peer's.
    let asked = rate.per_second as f64 * f64::from(view.record.trial.peers);
    if reached < PACE_REACHED * asked {
        return None;
    }
    limit(Limiter::Pace, format!("{reached:.0} of {asked:.0} {unit} asked for"))
}

fn link_speed(view: &View<'_>) -> Option<Limit> {
    // Of several peers none has to carry it all: the dut's link has.
    let counts =
        |node: &NodeRecord| view.record.peers.is_empty() || std::ptr::eq(node, &raw const view.record.dut);
    let speed = |node: &NodeRecord| {
        let link = node.environment.link.as_ref()?;
        // Virtual links and emulated cards report a made-up speed.
        let made_up = link.kind.is_some() || link.loopback || node.guest.is_some();
        if made_up || !counts(node) { None } else { link.speed_mbit }
    };
    let slowest = speed(view.sender).into_iter().chain(speed(view.receiver)).min()?;
    let wire_bits = |node: &NodeRecord, from: Side| {
        let link = node.reading.meter.link.as_ref().filter(|_| counts(node))?;
        let (bytes, packets) = match from {
            Side::Dut => (link.counters.tx_bytes, link.counters.tx_packets),
            Side::Peer => (link.counters.rx_bytes, link.counters.rx_packets),
        };
        let bits = (bytes + packets * ETHERNET_UNCOUNTED_BYTES) * 8;
        Some(bits as f64 * 1e9 / node.reading.window.duration_ns.max(1) as f64)
    };
    // As sent by the sender's link, or as received by the receiver's, whichever is on the slower one.
    let rate = wire_bits(view.sender, Side::Dut)
        .into_iter()
        .chain(wire_bits(view.receiver, Side::Peer))
        .fold(0.0, f64::max);
    let share = rate * 100.0 / (f64::from(slowest) * 1e6);
    if share < LINK_FULL {
        return None;
    }
    limit(Limiter::LinkSpeed, format!("{share:.1} % of {slowest} Mbit/s on the wire"))
}

fn receiver_drops(view: &View<'_>) -> Option<Limit> {
    let loss = view.record.summary.loss.as_ref()?;
    let drops: u64 = view.receiver.reading.streams.iter().filter_map(|s| s.udp).map(|u| u.socket_drops).sum();
    let busy = view.receiver_busy();
    if drops == 0 || loss.lost_percent < 0.1 || busy < CPU_BOUND {
        return None;
    }
    limit(
        Limiter::ReceiverCpu,
        format!(
            "{drops} datagrams dropped at the receiver's socket; its thread wanted the CPU {busy:.1} % of the time"
        ),
    )
}

fn cpu(view: &View<'_>) -> Option<Limit> {
    let (sender, receiver) = (view.sender_busy(), view.receiver_busy());
    let evidence =
        format!("busiest thread of the sender {sender:.1} %, of the receiver {receiver:.1} % of the window");
    match (sender >= CPU_BOUND, receiver >= CPU_BOUND) {
        (true, false) => limit(Limiter::SenderCpu, evidence),
        (false, true) => limit(Limiter::ReceiverCpu, evidence),
        (true, true) => {
            let held = view.mean_percent(|t| t.receive_window_limited_us);
            let limiter = if held >= 10.0 { Limiter::ReceiverCpu } else { Limiter::Unclear };
            limit(limiter, format!("{evidence}; sender held by the receive window {held:.1} %"))
        }
        (false, false) => None,
    }
}

fn stalls(view: &View<'_>) -> Option<Limit> {
    if view.record.trial.workload.kind().is_transactional() {
        return None;
    }
    let window = view.mean_percent(|t| t.receive_window_limited_us);
    let buffer = view.mean_percent(|t| t.send_buffer_limited_us);
    let evidence =
        |what, share: f64| format!("connections stood still for the {what} {share:.1} % of the window");
    if window >= STALLED && window >= buffer {
        return limit(Limiter::ReceiveWindow, evidence("receive window", window));
    }
    if buffer >= STALLED {
        return limit(Limiter::SendBuffer, evidence("send buffer", buffer));
    }
    None
}

fn congestion_window(view: &View<'_>) -> Option<Limit> {
    let busy = view.mean_percent(|t| t.busy_us);
    let retransmits: u64 = view.connections().map(|t| t.retransmits).sum();
    if view.record.trial.workload.kind().is_transactional() || busy < ALWAYS_BUSY || retransmits == 0 {
        return None;
    }
    let acked: u64 = view.connections().map(|t| t.acked_bytes).sum();
    let goodput = bits_per_second(acked, view.sender.reading.window.duration_ns);
    let allowed: f64 = view.connections().map(allowed_by_congestion_window).sum();
    if !(allowed * 0.75..=allowed * 1.25).contains(&goodput) {
        return None;
    }
    limit(
        Limiter::CongestionWindow,
        format!(
            "data in flight {busy:.1} % of the window, {retransmits} segments retransmitted; the congestion windows allow \
             {:.0} Mbit/s, {:.0} came",
            allowed / 1e6,
            goodput / 1e6
        ),
    )
}

/// What a connection's congestion window lets through, as it was at the window's end, bits a second.
fn allowed_by_congestion_window(tcp: &TcpReading) -> f64 {
    let bytes = f64::from(tcp.congestion_window_segments) * f64::from(tcp.send_mss_bytes);
    bytes * 8.0 * 1e6 / f64::from(tcp.rtt_us.max(1))
}

fn round_trip(view: &View<'_>) -> Option<Limit> {
    let one_outstanding = match &view.record.trial.workload {
        Workload::TcpRr(w) => w.rate.is_none() && w.in_flight.unwrap_or(1) == 1,
        Workload::UdpRr(w) => w.rate.is_none() && w.in_flight.unwrap_or(1) == 1,
        Workload::TcpCrr(w) => w.rate.is_none(),
        _ => false,
    };
    let lost = view.record.summary.loss.as_ref().map_or(0.0, |l| l.lost_percent);
    if !one_outstanding || lost > 0.1 {
        return None;
    }
    let (asking, answering) = (view.sender_busy(), view.receiver_busy());
    limit(
        Limiter::RoundTrip,
        format!(
            "each request waits for its answer; threads wanted the CPU {asking:.1} % (dut) and {answering:.1} % (peer)"
        ),
    )
}

fn unclear(view: &View<'_>) -> Limit {
    let evidence = format!(
        "busiest thread of the sender {:.1} %, of the receiver {:.1} %; data in flight {:.1} %, receive window {:.1} %, \
         send buffer {:.1} % of the window",
        view.sender_busy(),
        view.receiver_busy(),
        view.mean_percent(|t| t.busy_us),
        view.mean_percent(|t| t.receive_window_limited_us),
        view.mean_percent(|t| t.send_buffer_limited_us),
    );
    Limit { limiter: Limiter::Unclear, evidence }
}
