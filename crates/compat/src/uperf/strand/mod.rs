//! One strand: a thread that runs its group's transactions.

mod connection;
mod flowops;
mod gate;
mod history;
mod pace;
mod statistics;
pub(crate) mod wake;

use std::net::IpAddr;
use std::sync::Arc;

use linerate_sys::{affinity, clock};
use linerate_traffic::bare::Latencies;

pub(crate) use self::connection::{Failure, Listener, not_offered};
pub(crate) use self::gate::Gate;
pub use self::gate::Total;
pub(crate) use self::history::History;
pub use self::statistics::Durations;
pub(crate) use self::statistics::{StrandResult, TransactionTimes};
use crate::uperf::wire::Ports;
use crate::uperf::workorder::{Flowop, Group, Kind, Protocol, Transaction};

use self::flowops::{Halt, Hands};

/// Which side a strand is on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Side {
    Master,
    Slave,
}

/// A host that a strand connects to, or accepts from.
#[derive(Debug, Clone)]
pub(crate) struct Remote {
    /// As flowops name it; a slave has one, whatever they say.
    pub(crate) host: String,
    /// As the control connection proved it.
    pub(crate) address: IpAddr,
    /// Its ports for this strand.
    pub(crate) ports: Ports,
    /// Own address of connections to it; none leaves it to the kernel.
    pub(crate) from: Option<IpAddr>,
}

/// All that a strand needs.
pub(crate) struct Strand {
    pub(crate) index: usize,
    pub(crate) side: Side,
    pub(crate) group: Arc<Group>,
    pub(crate) gate: Arc<Gate>,
    pub(crate) remotes: Vec<Remote>,
    pub(crate) listeners: Vec<Listener>,
    pub(crate) history: Option<Arc<History>>,
    /// Whether a distribution of iterations is wanted.
    pub(crate) latencies: bool,
    /// Most bits a second that it sends.
    pub(crate) bits_per_second: Option<u64>,
}

/// Opens the listeners of a group's accepts, one a strand and protocol, or one for all where a port is given.
pub(crate) fn open_listeners(group: &Group) -> Result<Vec<Vec<Listener>>, Failure> {
    let strands = group.strands as usize;
    let mut all = vec![Vec::new(); strands];
    for protocol in group.protocols() {
        let accepts = |f: &&Flowop| f.kind == Kind::Accept && f.protocol == protocol;
        let Some(flowop) = group.flowops().find(accepts) else { continue };
        if flowop.port != 0 && strands > 1 {
            if protocol == Protocol::Udp {
                return Err("port= with UDP is for one thread".into());
            }
            let shared = Listener::open(flowop)?;
            all.iter_mut().for_each(|listeners| listeners.push(shared.clone()));
            continue;
        }
        for listeners in &mut all {
            listeners.push(Listener::open(flowop)?);
        }
    }
    Ok(all)
}

/// The ports of a strand's listeners.
pub(crate) fn ports_of(listeners: &[Listener]) -> Result<Ports, Failure> {
    let mut ports = Ports::default();
    for listener in listeners {
        ports[listener.protocol() as usize] = listener.port()?;
    }
    Ok(ports)
}

impl Strand {
    /// Runs to the end of the last transaction, or to a failure or kill.
    pub(crate) fn run(self) -> StrandResult {
        let start_ns = clock::monotonic_ns();
        self.gate.counters[self.index].set_tid(affinity::thread_id());
        let mut result = StrandResult::default();
        let mut latencies = self.latencies.then(Latencies::new);
        let failure = {
            let mut hands = Hands::new(&self);
            let failure = self.run_all(&mut hands, &mut result, latencies.as_mut()).err();
            result.warnings = std::mem::take(&mut hands.warnings);
            failure
        };
        // uperf counts the end of a strand as an operation.
        self.gate.counters[self.index].add_operation();
        let total = self.gate.counters[self.index].total();
        result.bytes = total.bytes;
        result.moved = self.gate.counters[self.index].moved();
        result.latency = latencies.map(Latencies::into_data);
        result.operations = total.operations;
        result.elapsed_ns = clock::monotonic_ns() - start_ns;
        result.failure.clone_from(&failure);
        self.gate.counters[self.index].set_cpu(clock::thread_cpu_ns());
        self.gate.leave(self.index, failure);
        result
    }

    fn run_all(
        &self,
        hands: &mut Hands<'_>,
        result: &mut StrandResult,
        mut latencies: Option<&mut Latencies>,
    ) -> Result<(), Failure> {
        for (index, transaction) in (0..).zip(&self.group.transactions) {
            if !self.gate.arrive(self.index, index) {
                break;
            }
            let mut times = TransactionTimes {
                flowops: vec![Durations::default(); transaction.flowops.len()],
                ..TransactionTimes::default()
            };
            let outcome =
                self.run_transaction(index, transaction, hands, &mut times, latencies.as_deref_mut());
            self.gate.counters[self.index].set_ended(times.ended_ns, transaction.moves_payload());
            result.transactions.push(times);
            match outcome {
                Ok(()) | Err(Halt::Stopped | Halt::Closed) => {}
                Err(Halt::Failed(failure)) => return Err(failure),
            }
        }
        if self.side == Side::Slave {
            // Its connections stay open until the master has enough: it may still be sending.
            self.gate.arrive(self.index, self.group.transactions.len() as u32);
        }
        Ok(())
    }

    fn run_transaction(
        &self,
        index: u32,
        transaction: &Transaction,
        hands: &mut Hands<'_>,
        times: &mut TransactionTimes,
        mut latencies: Option<&mut Latencies>,
    ) -> Result<(), Halt> {
        let counts = transaction.moves_payload();
        let timed = transaction.duration_ns > 0;
        let start_ns = clock::monotonic_ns();
        let mut now_ns = start_ns;
        times.ended_ns = start_ns;
        let mut done = 0;
        while timed || done < transaction.iterations {
            if self.gate.stops_softly(index) {
                return Ok(());
            }
            if timed && transaction.rate > 0 {
                let offset_ns = u128::from(done) * 1_000_000_000 / u128::from(transaction.rate);
                hands.sleep_until(start_ns + offset_ns as u64, index)?;
                now_ns = clock::monotonic_ns();
            }
            let begun_ns = now_ns;
            for (flowop, durations) in transaction.flowops.iter().zip(&mut times.flowops) {
                let record_ns = now_ns;
                for _ in 0..flowop.count.max(1) {
                    if self.gate.is_killed() {
                        return Err(Halt::Stopped);
                    }
                    hands.execute(flowop, index)?;
                    let end_ns = clock::monotonic_ns();
                    durations.add(end_ns - now_ns);
                    now_ns = end_ns;
                    times.ended_ns = end_ns;
                }
                if let Some(history) = &self.history {
                    history.add(now_ns, now_ns - record_ns);
                }
            }
            times.iterations.add(now_ns - begun_ns);
            if counts {
                self.gate.counters[self.index].add_iteration();
                if let Some(latencies) = &mut latencies {
                    latencies.record(now_ns - begun_ns);
                }
            }
            done += 1;
            // A transaction without flowops would spin.
            if timed && transaction.flowops.is_empty() {
                hands.sleep_until(clock::monotonic_ns() + 10_000_000, index)?;
            }
        }
        Ok(())
    }
}
