//! What `--linerate-json` writes.

use serde::Serialize;

use crate::uperf::master::Outcome;
use crate::uperf::strand::Durations;

/// One run, in true units.
#[derive(Debug, Serialize)]
pub(crate) struct UperfRecord<'a> {
    schema: &'static str,
    profile: &'a str,
    elapsed_ns: u64,
    bytes: u64,
    operations: u64,
    transactions: Vec<TransactionRecord>,
    flowops: Vec<FlowopRecord>,
    hosts: Vec<HostRecord<'a>>,
    warnings: &'a [String],
    errors: &'a [String],
}

#[derive(Debug, Serialize)]
struct TransactionRecord {
    index: u32,
    elapsed_ns: u64,
    bytes: u64,
    operations: u64,
    iterations: Durations,
}

#[derive(Debug, Serialize)]
struct FlowopRecord {
    name: &'static str,
    durations: Durations,
}

#[derive(Debug, Serialize)]
struct HostRecord<'a> {
    host: &'a str,
    elapsed_ns: Option<u64>,
    bytes: Option<u64>,
    operations: Option<u64>,
    failure: Option<&'a str>,
}

impl<'a> UperfRecord<'a> {
    pub(crate) fn new(profile: &'a str, outcome: &'a Outcome) -> Self {
        let transactions = outcome.transactions.iter().map(|t| TransactionRecord {
            index: t.index,
            elapsed_ns: t.elapsed_ns,
            bytes: t.total.bytes,
            operations: t.total.operations,
            iterations: outcome.iterations.get(t.index as usize).copied().unwrap_or_default(),
        });
        let hosts = outcome.hosts.iter().map(|h| {
            let goodbye = h.goodbye.as_ref().ok();
            HostRecord {
                host: &h.host,
                elapsed_ns: goodbye.map(|g| g.elapsed_ns),
                bytes: goodbye.map(|g| g.bytes),
                operations: goodbye.map(|g| g.operations),
                failure: h.goodbye.as_ref().err().map(String::as_str),
            }
        });
        Self {
            schema: "linerate.uperf/1",
            profile,
            elapsed_ns: outcome.elapsed_ns,
            bytes: outcome.total.bytes,
            operations: outcome.total.operations,
            transactions: transactions.collect(),
            flowops: outcome
                .flowops
                .iter()
                .map(|(name, durations)| FlowopRecord { name, durations: *durations })
                .collect(),
            hosts: hosts.collect(),
            warnings: &outcome.warnings,
            errors: &outcome.errors,
        }
    }
}
