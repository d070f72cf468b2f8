//! Live lines: an interval of a trial while it runs.

use linerate_model::reading::{Flow, IntervalReading, IntervalStream};
use linerate_model::summary::percent;
use linerate_model::trial::{Side, Trial};
use linerate_model::units::{bits_per_second, per_second};
use linerate_model::workload::WorkloadKind;

use crate::numbers;

/// Brings the intervals of both nodes together, which arrive one by one.
#[derive(Debug, Default)]
pub struct IntervalPairs {
    waiting: Vec<(Side, IntervalReading)>,
}

impl IntervalPairs {
    /// Takes an interval; gives back the (dut, peer) pair when the other node's interval of the same place in the row is
    /// there already. Each node's intervals must come in their order; start a new one for each trial.
    pub fn push(
        &mut self,
        side: Side,
        interval: IntervalReading,
    ) -> Option<(IntervalReading, IntervalReading)> {
        let other = self.waiting.iter().position(|(waiting, _)| *waiting != side);
        let Some(other) = other else {
            self.waiting.push((side, interval));
            return None;
        };
        let (_, waited) = self.waiting.remove(other);
        Some(match side {
            Side::Dut => (interval, waited),
            Side::Peer => (waited, interval),
        })
    }
}

/// The head above the live lines of a trial; see [`live_line`].
pub fn live_header(trial: &Trial, shared_kernel: bool) -> String {
    let mut cells = vec![cell("seconds", SECONDS)];
    match trial.workload.kind() {
        WorkloadKind::TcpBidir => {
            cells.push(cell("dut sends", RATE));
            cells.push(cell("peer sends", RATE));
        }
        kind if kind.is_transactional() => cells.push(cell("trans./s", COUNT)),
        _ => cells.push(cell("goodput", RATE)),
    }
    if trial.workload.kind() == WorkloadKind::UdpStream {
        cells.push(cell("packets/s", COUNT));
    }
    if !trial.workload.kind().is_udp() {
        cells.push(cell("retrans", COUNT));
        cells.push(cell("rtt us", COUNT));
    }
    if shared_kernel {
        cells.push(cell("CPU% both", CPU));
    } else {
        cells.push(cell("CPU% dut", CPU));
        cells.push(cell("CPU% peer", CPU));
    }
    cells.concat()
}

/// A line for an interval that both nodes closed: time since the window's start, goodput (what the receiver got) or
/// transactions a second, retransmits of both ends, the longest smoothed round-trip time of the sending side's streams,
/// and busy CPU in percent of one CPU. Where both nodes share a kernel CPU is the machine's, once.
pub fn live_line(
    trial: &Trial,
    shared_kernel: bool,
    dut: &IntervalReading,
    peer: &IntervalReading,
) -> String {
    let kind = trial.workload.kind();
    let to = dut.start_ns.saturating_add(dut.duration_ns);
    let seconds = |ns: u64| format!("{:.1}", ns as f64 / 1e9);
    let mut cells = vec![cell(&format!("{}-{}", seconds(dut.start_ns), seconds(to)), SECONDS)];
    let mut goodput = |receiver: &IntervalReading| {
        let rate = bits_per_second(sum(receiver, |s| s.received.bytes), receiver.duration_ns);
        cells.push(cell(&numbers::bit_rate(rate), RATE));
    };
    match kind {
        WorkloadKind::TcpStream | WorkloadKind::UdpStream => goodput(peer),
        WorkloadKind::TcpReverse => goodput(dut),
        WorkloadKind::TcpBidir => {
            goodput(peer);
            goodput(dut);
        }
        WorkloadKind::TcpRr | WorkloadKind::TcpCrr | WorkloadKind::UdpRr | WorkloadKind::Profile => {
            let rate = per_second(sum(dut, |s| s.transactions), dut.duration_ns);
            cells.push(cell(&numbers::count(rate), COUNT));
        }
    }
    if kind == WorkloadKind::UdpStream {
        let rate = per_second(sum(peer, |s| messages(s.received)), peer.duration_ns);
        cells.push(cell(&numbers::count(rate), COUNT));
    }
    if !kind.is_udp() {
        let retransmits = sum(dut, |s| s.retransmits) + sum(peer, |s| s.retransmits);
        cells.push(cell(&numbers::exact_count(retransmits as f64), COUNT));
        let sender = if trial.workload.dut_sends() { dut } else { peer };
        let rtt = sender.streams.iter().map(|s| s.rtt_us).max().filter(|&us| us > 0);
        cells.push(cell(&rtt.map_or_else(|| "-".to_owned(), |us| us.to_string()), COUNT));
    }
    let cpu =
        |node: &IntervalReading| cell(&numbers::cpu_percent(percent(node.busy_ns, node.duration_ns)), CPU);
    cells.push(cpu(dut));
    if !shared_kernel {
        cells.push(cpu(peer));
    }
    cells.concat()
}

const SECONDS: usize = 12;
const RATE: usize = 14;
const COUNT: usize = 10;
const CPU: usize = 10;

fn cell(text: &str, width: usize) -> String {
    format!("{text:>width$}")
}

fn sum(interval: &IntervalReading, figure: impl Fn(&IntervalStream) -> u64) -> u64 {
    interval.streams.iter().map(figure).fold(0, u64::saturating_add)
}

fn messages(flow: Flow) -> u64 {
    flow.messages
}
