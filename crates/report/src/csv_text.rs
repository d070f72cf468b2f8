//! Records as CSV: one row a trial, stable column names with units, full precision.

use linerate_model::Record;
use linerate_model::record::Outcome;
use linerate_model::summary::{Direction, DropPlace, MachineCost};
use linerate_model::trial::{Amount, Family, Side};
use linerate_model::workload::Workload;

use crate::table::copied_percent;
use crate::trial_text::FACTORS;

/// A column of the CSV form.
#[derive(Clone, Copy)]
pub struct CsvColumn {
    /// Its name, with the unit where there is one. Never changed or removed; new columns come behind the last.
    pub name: &'static str,
    cell: fn(&Record) -> String,
}

impl std::fmt::Debug for CsvColumn {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.name)
    }
}

/// Records as CSV (RFC 4180): a head line with the names of [`CSV_COLUMNS`], then a row for each trial. A cell is empty
/// where the trial has no such figure. Numbers have a point and all the digits that it takes to read them back exactly.
pub fn csv(records: &[Record]) -> String {
    let head = CSV_COLUMNS.iter().map(|c| c.name.to_owned()).collect();
    let rows = records.iter().map(|r| CSV_COLUMNS.iter().map(|c| (c.cell)(r)).collect::<Vec<_>>());
    let mut writer = csv::Writer::from_writer(Vec::new());
    for row in std::iter::once(head).chain(rows) {
        // Invariant: writing to memory can't fail, and all rows have the same length.
        writer.write_record(&row).expect("rows of equal length go into memory");
    }
    let bytes = writer.into_inner().expect("flushing to memory can't fail");
    String::from_utf8(bytes).expect("made of strings and ASCII separators")
}

macro_rules! columns {
    ($($name:literal => $cell:expr,)*) => {
        &[$(CsvColumn { name: $name, cell: $cell }),*]
    };
}

/// Every column, in order. `docs/record.md` tells what each means.
pub const CSV_COLUMNS: &[CsvColumn] = columns! {
    "run" => |r| r.run.clone(),
    "sequence" => |r| r.sequence.to_string(),
    "started_at" => |r| r.started_at.clone(),
    "outcome" => |r| match r.outcome { Outcome::Complete => "complete", Outcome::Interrupted => "interrupted" }.to_owned(),
    "dut" => |r| r.dut.node.to_string(),
    "peer" => |r| r.peer.node.to_string(),
    "workload" => |r| r.trial.workload.kind().name().to_owned(),
    "family" => |r| match r.trial.family { Family::V4 => "4", Family::V6 => "6" }.to_owned(),
    "size_bytes" => |r| option(sizes(&r.trial.workload).0),
    "request_bytes" => |r| option(sizes(&r.trial.workload).1),
    "response_bytes" => |r| option(sizes(&r.trial.workload).2),
    "streams" => |r| r.trial.streams.to_string(),
    "repeat" => |r| r.trial.repeat.to_string(),
    "send" => send,
    "one_connection" => |r| factor(r, "connection", true),
    "rate_per_second" => |r| option(r.trial.workload.rate().map(|rate| rate.per_second)),
    "rate_unit" => rate_unit,
    "in_flight" => |r| factor(r, "in-flight", false),
    "socket_buffer_bytes" => |r| option(r.trial.workload.buffer_bytes().map(|b| b.0)),
    "nodelay" => |r| r.trial.workload.tcp_options().map(|o| o.nodelay.to_string()).unwrap_or_default(),
    "mss_bytes" => |r| option(r.trial.workload.tcp_options().and_then(|o| o.mss_bytes)),
    "congestion" => |r| option(r.trial.workload.tcp_options().and_then(|o| o.congestion.clone())),
    "pin" => |r| factor(r, "pin", false),
    "verify" => |r| r.trial.verify_seed.is_some().to_string(),
    "asked_duration_seconds" => |r| match r.trial.amount { Amount::DurationNs(ns) => seconds(ns), _ => String::new() },
    "asked_bytes" => |r| match r.trial.amount { Amount::Bytes(n) => n.to_string(), _ => String::new() },
    "asked_transactions" => |r| match r.trial.amount { Amount::Transactions(n) => n.to_string(), _ => String::new() },
    "window_dut_seconds" => |r| seconds(r.dut.reading.window.duration_ns),
    "window_peer_seconds" => |r| seconds(r.peer.reading.window.duration_ns),
    "goodput_bits_per_second" => |r| r.summary.goodput_bits_per_second.to_string(),
    "goodput_bytes" => |r| r.summary.goodput_bytes.to_string(),
    "goodput_dut_to_peer_bits_per_second" => |r| direction(r, Side::Dut, |d| d.goodput_bits_per_second),
    "goodput_peer_to_dut_bits_per_second" => |r| direction(r, Side::Peer, |d| d.goodput_bits_per_second),
    "sent_dut_to_peer_bits_per_second" => |r| direction(r, Side::Dut, |d| d.sent_bits_per_second),
    "sent_peer_to_dut_bits_per_second" => |r| direction(r, Side::Peer, |d| d.sent_bits_per_second),
    "packets_per_second" => |r| option(r.summary.packets_per_second),
    "transactions" => |r| option(r.summary.transactions),
    "transactions_per_second" => |r| option(r.summary.transactions_per_second),
    "cpu_shared_percent" => |r| cost(r.summary.cpu.shared.as_ref(), |c| Some(c.busy_percent)),
    "cpu_dut_percent" => |r| cost(r.summary.cpu.dut.as_ref(), |c| Some(c.busy_percent)),
    "cpu_peer_percent" => |r| cost(r.summary.cpu.peer.as_ref(), |c| Some(c.busy_percent)),
    "cpu_dut_threads_percent" => |r| r.summary.cpu.dut_threads_percent.to_string(),
    "cpu_peer_threads_percent" => |r| r.summary.cpu.peer_threads_percent.to_string(),
    "busy_shared_seconds" => |r| busy(r.summary.cpu.shared.as_ref()),
    "busy_dut_seconds" => |r| busy(r.summary.cpu.dut.as_ref()),
    "busy_peer_seconds" => |r| busy(r.summary.cpu.peer.as_ref()),
    "demand_shared_us_per_kib" => |r| cost(r.summary.cpu.shared.as_ref(), |c| c.service_demand_us_per_kib),
    "demand_dut_us_per_kib" => |r| cost(r.summary.cpu.dut.as_ref(), |c| c.service_demand_us_per_kib),
    "demand_peer_us_per_kib" => |r| cost(r.summary.cpu.peer.as_ref(), |c| c.service_demand_us_per_kib),
    "demand_shared_us_per_transaction" => |r| cost(r.summary.cpu.shared.as_ref(), |c| c.service_demand_us_per_transaction),
    "demand_dut_us_per_transaction" => |r| cost(r.summary.cpu.dut.as_ref(), |c| c.service_demand_us_per_transaction),
    "demand_peer_us_per_transaction" => |r| cost(r.summary.cpu.peer.as_ref(), |c| c.service_demand_us_per_transaction),
    "retransmits" => |r| option(r.summary.retransmits),
    "datagrams_sent" => |r| option(r.summary.loss.as_ref().map(|l| l.sent)),
    "datagrams_lost" => |r| option(r.summary.loss.as_ref().map(|l| l.lost)),
    "lost_percent" => |r| option(r.summary.loss.as_ref().map(|l| l.lost_percent)),
    "datagrams_duplicated" => |r| option(r.summary.loss.as_ref().map(|l| l.duplicates)),
    "datagrams_reordered" => |r| option(r.summary.loss.as_ref().map(|l| l.reordered)),
    "jitter_ns" => |r| option(r.summary.loss.as_ref().and_then(|l| l.jitter_ns)),
    "dropped_sender_socket" => |r| dropped(r, DropPlace::SenderSocket),
    "dropped_sender_qdisc" => |r| dropped(r, DropPlace::SenderQdisc),
    "dropped_sender_link" => |r| dropped(r, DropPlace::SenderLink),
    "dropped_receiver_link" => |r| dropped(r, DropPlace::ReceiverLink),
    "dropped_receiver_backlog" => |r| dropped(r, DropPlace::ReceiverBacklog),
    "dropped_receiver_socket" => |r| dropped(r, DropPlace::ReceiverSocket),
    "latency_min_ns" => |r| option(r.summary.latency.as_ref().map(|l| l.min_ns)),
    "latency_mean_ns" => |r| option(r.summary.latency.as_ref().map(|l| l.mean_ns)),
    "latency_p50_ns" => |r| option(r.summary.latency.as_ref().map(|l| l.p50_ns)),
    "latency_p90_ns" => |r| option(r.summary.latency.as_ref().map(|l| l.p90_ns)),
    "latency_p99_ns" => |r| option(r.summary.latency.as_ref().map(|l| l.p99_ns)),
    "latency_p999_ns" => |r| option(r.summary.latency.as_ref().map(|l| l.p999_ns)),
    "latency_max_ns" => |r| option(r.summary.latency.as_ref().map(|l| l.max_ns)),
    "latency_over_60s" => |r| option(r.summary.latency.as_ref().map(|l| l.overflow)),
    "bad_bytes" => |r| option(r.summary.bad_bytes),
    "limited_by" => |r| r.limit.limiter.name().to_owned(),
    "hazards" => |r| r.hazards.iter().map(|h| h.kind.name()).collect::<Vec<_>>().join(" "),
    "seed" => |r| option(r.seed),
    "block" => |r| option(r.block),
    "combination" => |r| option(r.combination),
    "settings" => |r| r.trial.settings.iter().map(|s| format!("{}={}", s.key, s.value)).collect::<Vec<_>>().join(" "),
    "zerocopy_copied_percent" => |r| option(copied_percent(r)),
    "peers" => |r| r.trial.peers.to_string(),
};

fn option(value: Option<impl ToString>) -> String {
    value.map(|v| v.to_string()).unwrap_or_default()
}

/// Seconds with all nine digits behind the point: nanoseconds are whole.
fn seconds(ns: u64) -> String {
    format!("{}.{:09}", ns / 1_000_000_000, ns % 1_000_000_000)
}

fn busy(cost: Option<&MachineCost>) -> String {
    cost.map(|c| seconds(c.busy_ns)).unwrap_or_default()
}

fn cost(cost: Option<&MachineCost>, figure: fn(&MachineCost) -> Option<f64>) -> String {
    option(cost.and_then(figure))
}

fn direction(record: &Record, from: Side, figure: fn(&Direction) -> f64) -> String {
    option(record.summary.directions.iter().find(|d| d.from == from).map(figure))
}

fn dropped(record: &Record, place: DropPlace) -> String {
    let Some(loss) = &record.summary.loss else { return String::new() };
    loss.places.iter().filter(|p| p.place == place).map(|p| p.packets).sum::<u64>().to_string()
}

/// The value of a factor; as a flag `true` where it has one.
fn factor(record: &Record, name: &str, flag: bool) -> String {
    let value = FACTORS.iter().find(|f| f.name == name).map(|f| (f.value)(&record.trial)).unwrap_or_default();
    if flag && !value.is_empty() { "true".to_owned() } else { value }
}

/// Size, request and response, bytes.
fn sizes(workload: &Workload) -> (Option<u64>, Option<u64>, Option<u64>) {
    match workload {
        Workload::TcpStream(w) | Workload::TcpReverse(w) => (Some(w.size.0), None, None),
        Workload::TcpBidir(w) => (Some(w.stream.size.0), None, None),
        Workload::UdpStream(w) => (Some(w.size.0), None, None),
        Workload::TcpRr(w) => (None, Some(w.request.0), Some(w.response.0)),
        Workload::TcpCrr(w) => (None, Some(w.request.0), Some(w.response.0)),
        Workload::UdpRr(w) => (None, Some(w.request.0), Some(w.response.0)),
        Workload::Profile(_) => (None, None, None),
    }
}

fn send(record: &Record) -> String {
    match &record.trial.workload {
        Workload::TcpStream(w) | Workload::TcpReverse(w) => w.send.name().to_owned(),
        Workload::TcpBidir(w) => w.stream.send.name().to_owned(),
        _ => String::new(),
    }
}

fn rate_unit(record: &Record) -> String {
    use linerate_model::units::RateUnit;
    option(record.trial.workload.rate().map(|rate| match rate.unit {
        RateUnit::BitsPerSecond => "bits",
        RateUnit::PacketsPerSecond => "packets",
        RateUnit::RequestsPerSecond => "requests",
    }))
}
