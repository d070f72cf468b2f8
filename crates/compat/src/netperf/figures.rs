//! From runs to the figures that are printed.

use super::confidence;
use super::drive::Iteration;
use super::numbers::Unit;
use super::options::Options;
use super::request::{Pattern, Transport};

/// Figures of one run, or means of several. -1 is what was not measured.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Figures {
    pub(crate) elapsed: f64,
    /// In the result's unit; of UDP_STREAM, what the server received.
    pub(crate) throughput: f64,
    /// What the client sent, in the unit of bytes.
    pub(crate) sent: f64,
    pub(crate) local_util: f64,
    pub(crate) remote_util: f64,
    pub(crate) local_demand: f64,
    pub(crate) remote_demand: f64,
    pub(crate) transactions: f64,
    pub(crate) round_trip_us: f64,
}

/// All runs of a test.
#[derive(Debug, Clone)]
pub(crate) struct Outcome {
    pub(crate) mean: Figures,
    pub(crate) last: Iteration,
    pub(crate) iterations: usize,
    pub(crate) widths: Option<Widths>,
}

/// Widths of the confidence intervals reached, percent.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Widths {
    pub(crate) throughput: f64,
    pub(crate) local_util: f64,
    pub(crate) remote_util: f64,
    pub(crate) met: bool,
}

impl Figures {
    pub(crate) fn of(options: &Options, run: &Iteration) -> Self {
        let elapsed = (run.local.elapsed_ns as f64 / 1e9).max(1e-9);
        let unit = options.result_unit();
        let moved = (run.count.sent.bytes + run.count.received.bytes) as f64;
        let done = run.count.transactions as f64;
        let trades = options.counts_transactions();
        let (units, client_units) = match options.own.pattern {
            _ if trades && unit.0 == 'x' => (done, done),
            Pattern::Maerts => (run.count.received.bytes as f64, moved),
            Pattern::Stream => (run.results.received_bytes as f64, moved),
            _ => ((run.results.received_bytes + run.results.sent_bytes) as f64, moved),
        };
        let divisor = if unit.0 == 'x' { 1.0 } else { 1024.0 };
        let demand = |util: f64, cpus: i32| {
            let rate = client_units / divisor / elapsed;
            if util < 0.0 || rate <= 0.0 { -1.0 } else { util * 1e4 * f64::from(cpus) / rate }
        };
        let (local_util, local_cpus) = run.cpu.map_or((-1.0, 0), |(cpu, cpus)| (f64::from(cpu.util), cpus));
        let measured = run.response.measure_cpu.then_some(run.results.cpu).flatten();
        let remote_util = measured.map_or(-1.0, |cpu| f64::from(cpu.util));
        let outstanding = if options.own.pattern == Pattern::Rr { options.in_flight() as f64 } else { 1.0 };
        Self {
            elapsed,
            throughput: unit.rate(units, elapsed),
            sent: options.byte_unit().rate(run.count.sent.bytes as f64, elapsed),
            local_util,
            remote_util,
            local_demand: demand(local_util, local_cpus),
            remote_demand: demand(remote_util, run.results.cpus),
            transactions: if trades { done / elapsed } else { 1.0 },
            round_trip_us: if trades && done > 0.0 { 1e6 * elapsed / done * outstanding } else { -1.0 },
        }
    }

    fn mean(all: &[Self]) -> Self {
        let of = |pick: fn(&Self) -> f64| confidence::mean(&all.iter().map(pick).collect::<Vec<_>>());
        Self {
            elapsed: of(|f| f.elapsed),
            throughput: of(|f| f.throughput),
            sent: of(|f| f.sent),
            local_util: of(|f| f.local_util),
            remote_util: of(|f| f.remote_util),
            local_demand: of(|f| f.local_demand),
            remote_demand: of(|f| f.remote_demand),
            transactions: of(|f| f.transactions),
            round_trip_us: of(|f| f.round_trip_us),
        }
    }
}

/// Widths reached by these runs, where iterations were asked for.
pub(crate) fn widths(options: &Options, all: &[Figures]) -> Option<Widths> {
    let level = options.confidence_level?;
    let width = |pick: fn(&Figures) -> f64| {
        let values: Vec<f64> = all.iter().map(pick).collect();
        confidence::width(&values, level).unwrap_or(f64::INFINITY)
    };
    let (throughput, local_util, remote_util) =
        (width(|f| f.throughput), width(|f| f.local_util), width(|f| f.remote_util));
    let target = options.confidence_width;
    let utils = options.confidence_result_only || (local_util <= target && remote_util <= target);
    Some(Widths {
        throughput: 100.0 * throughput,
        local_util: 100.0 * local_util,
        remote_util: 100.0 * remote_util,
        met: throughput <= target && utils,
    })
}

impl Outcome {
    pub(crate) fn new(options: &Options, all: &[Figures], last: Iteration) -> Self {
        Self { mean: Figures::mean(all), last, iterations: all.len(), widths: widths(options, all) }
    }

    /// Received by the server, in the unit of bytes.
    pub(crate) fn server_received(&self, options: &Options) -> f64 {
        options.byte_unit().rate(self.last.results.received_bytes as f64, self.mean.elapsed)
    }

    /// A count of bytes in the unit of bytes, but never in transactions.
    pub(crate) fn rate_of(&self, unit: Unit, bytes: u64) -> f64 {
        unit.rate(bytes as f64, self.mean.elapsed)
    }

    /// Average bytes a call; 0 of no calls.
    pub(crate) fn per_call(bytes: u64, calls: u64) -> f64 {
        if calls == 0 { 0.0 } else { bytes as f64 / calls as f64 }
    }
}

/// Letter of the method that CPU time was measured with.
pub(crate) fn method(measured: bool) -> char {
    if measured { 'S' } else { 'U' }
}

/// Whether the test is UDP_STREAM's.
pub(crate) fn is_udp_stream(options: &Options) -> bool {
    options.own.transport == Transport::Udp && options.own.pattern == Pattern::Stream
}
