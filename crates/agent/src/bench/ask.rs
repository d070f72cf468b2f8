//! The controller's end: asks a node, and knows how long each answer may take.

use std::time::Duration;

use linerate_model::bench::{BenchReply, BenchRequest, DeviceAct, LinkAct};

use super::LONGEST_WAIT;
use crate::node::{Node, NodeError, NodeFailure};
use crate::protocol::{Reply, Request};

/// What an answer may take beyond what the request itself waits for.
const GRACE: Duration = Duration::from_secs(30);
/// Changing a link: a real NIC may start anew, and then negotiate.
const CHANGE_GRACE: Duration = Duration::from_secs(180);

impl Node {
    /// Asks what a qualification asks of a node, and waits for the answer as long as the request itself allows.
    ///
    /// # Errors
    /// Where the node fails, does traffic only, or refuses.
    pub fn bench(&mut self, request: &BenchRequest) -> Result<BenchReply, NodeError> {
        let operation = operation(request);
        let limit = longest(request).saturating_add(grace(request));
        match self.ask(operation, &Request::Bench(Box::new(request.clone())), limit)? {
            Reply::Bench(reply) => Ok(*reply),
            other => Err(self.error(operation, NodeFailure::Unexpected(other.name()))),
        }
    }
}

/// What is asked, as a verb phrase.
pub(super) fn operation(request: &BenchRequest) -> &'static str {
    match request {
        BenchRequest::OpenPort(_) => "open a port",
        BenchRequest::Send { .. } => "send frames",
        BenchRequest::Receive { .. } => "receive frames",
        BenchRequest::Generate(_) => "start a generator",
        BenchRequest::FinishGenerate { .. } => "finish a generator",
        BenchRequest::Tally(_) => "start a tally",
        BenchRequest::FinishTally { .. } => "finish a tally",
        BenchRequest::StartFlow(_) => "start a flow",
        BenchRequest::LookAtFlow { .. } => "look at a flow",
        BenchRequest::StopFlow { .. } => "stop a flow",
        BenchRequest::FinishFlow { .. } => "finish a flow",
        BenchRequest::OpenSocket(_) => "open a socket",
        BenchRequest::SendSocket { .. } => "send by a socket",
        BenchRequest::ReceiveSocket { .. } => "receive by a socket",
        BenchRequest::Echo(_) => "send echo requests",
        BenchRequest::AttachXdp(_) => "attach an XDP program",
        BenchRequest::CountXdp { .. } => "count an XDP program's frames",
        BenchRequest::Close { .. } => "close",
        BenchRequest::Snapshot { .. } => "read counters",
        BenchRequest::Log { .. } => "read the kernel's log",
        BenchRequest::Set { .. } => "change a setting",
        BenchRequest::Link(_) => "change links",
        BenchRequest::Device(_) => "act upon a device",
        BenchRequest::Identity { .. } => "read what a link is",
        BenchRequest::ReadFile { .. } => "read a file",
        BenchRequest::WriteFile { .. } => "write a file",
        BenchRequest::CloseAll => "close all",
        BenchRequest::Reset => "put everything back",
    }
}

/// How long a request itself may wait.
pub(super) fn longest(request: &BenchRequest) -> Duration {
    let ns = match request {
        BenchRequest::Send { frames, gap_ns, .. } => gap_ns.saturating_mul(frames.len() as u64),
        BenchRequest::Receive { limit_ns, .. }
        | BenchRequest::ReceiveSocket { limit_ns, .. }
        | BenchRequest::FinishFlow { limit_ns, .. }
        | BenchRequest::FinishTally { limit_ns, .. }
        | BenchRequest::Link(LinkAct::AwaitCarrier { limit_ns, .. }) => *limit_ns,
        BenchRequest::FinishGenerate { wait_ns, .. } => *wait_ns,
        BenchRequest::Echo(spec) => {
            let count = (spec.payloads_bytes.len() as u64).saturating_mul(spec.rounds.into());
            // At worst each answer is waited for in vain, as many at a time as may be under way.
            let lost = count.div_ceil(u64::from(spec.in_flight.max(1))).saturating_mul(spec.timeout_ns);
            let all = count.saturating_mul(spec.gap_ns).saturating_add(lost);
            // The node then stops, and reports what came of those that were sent.
            return Duration::from_nanos(all).min(LONGEST_WAIT);
        }
        BenchRequest::Device(DeviceAct::Suspend { seconds, .. }) => {
            u64::from(*seconds).saturating_mul(1_000_000_000)
        }
        _ => 0,
    };
    Duration::from_nanos(ns)
}

fn grace(request: &BenchRequest) -> Duration {
    match request {
        BenchRequest::Set { .. } | BenchRequest::Link(_) | BenchRequest::Device(_) | BenchRequest::Reset => {
            CHANGE_GRACE
        }
        _ => GRACE,
    }
}
