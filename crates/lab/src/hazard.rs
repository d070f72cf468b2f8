//! Reasons to distrust a record, found in it.

use linerate_model::hazard::{Hazard, HazardKind};
use linerate_model::reading::Knowledge;
use linerate_model::record::{NodeRecord, Outcome, Record};
use linerate_model::summary::percent;
use linerate_model::trial::Side;
use linerate_model::units::total;

/// Percent of the window from which stolen CPU time matters.
const STEAL: f64 = 1.0;
/// Percent of the window from which waiting for a CPU matters.
const RUN_QUEUE_WAIT: f64 = 2.0;
/// Percent of the window from which clock uncertainty and late samples matter.
const SKEW: f64 = 1.0;
/// Percent of received packets that may be dropped before it is told.
const UNWANTED_FRAMES: f64 = 0.01;
/// Resolution steps of the CPU clock that a window must at least have.
const MIN_STEPS: u64 = 50;

/// All hazards of a record.
pub fn all(record: &Record) -> Vec<Hazard> {
    let mut found = Vec::new();
    of_foreign_ends(record, &mut found);
    of_the_pair(record, &mut found);
    of_one(Side::Dut, &record.dut, record, &mut found);
    if record.peers.is_empty() {
        of_one(Side::Peer, &record.peer, record, &mut found);
    }
    for peer in &record.peers {
        let mut of_peer = Vec::new();
        of_one(Side::Peer, peer, record, &mut of_peer);
        // Of each kind the first peer that has it, by name.
        of_peer.retain(|h| !found.iter().any(|known| (known.kind, known.side) == (h.kind, h.side)));
        of_peer.iter_mut().for_each(|h| h.evidence = format!("{}: {}", peer.node, h.evidence));
        found.extend(of_peer);
    }
    found
}

fn of_one(side: Side, node: &NodeRecord, record: &Record, found: &mut Vec<Hazard>) {
    if !node.reading.knowledge.is_measured() {
        return;
    }
    of_a_node(side, node, record, found);
    // One machine, one report.
    if side == Side::Dut || !record.shared_kernel || !record.dut.reading.knowledge.is_measured() {
        of_a_machine(side, node, record.shared_kernel, found);
    }
}

fn hazard(kind: HazardKind, side: Option<Side>, evidence: String, cure: &str) -> Hazard {
    Hazard { kind, side, evidence, cure: cure.to_owned() }
}

fn of_foreign_ends(record: &Record, found: &mut Vec<Hazard>) {
    let tool = record.stand_in.as_ref().map_or("another tool", |s| s.tool.as_str());
    for (side, node) in [(Side::Dut, &record.dut), (Side::Peer, &record.peer)] {
        let (evidence, cure) = match node.reading.knowledge {
            Knowledge::Measured => continue,
            Knowledge::Told => (
                format!(
                    "of this end only {tool}'s protocol tells: its machine, link and window are not known"
                ),
                "run linerate at both ends to have both measured",
            ),
            Knowledge::Untold => (
                format!(
                    "{tool}'s protocol tells nothing of this end: it is taken to have moved what the other end did"
                ),
                "trust what the receiving end saw, or run linerate at both ends",
            ),
        };
        found.push(hazard(HazardKind::ForeignEnd, Some(side), evidence, cure));
    }
}

fn of_the_pair(record: &Record, found: &mut Vec<Hazard>) {
    if record.outcome == Outcome::Interrupted {
        let seconds = record.dut.reading.window.duration_ns as f64 / 1e9;
        found.push(hazard(
            HazardKind::Interrupted,
            None,
            format!("stopped by a signal after {seconds:.2} s"),
            "run it again to the end",
        ));
    }
    if record.shared_kernel {
        found.push(hazard(
            HazardKind::SharedKernel,
            None,
            if record.peers.is_empty() {
                "both nodes run on one kernel"
            } else {
                "all nodes run on one kernel"
            }
            .to_owned(),
            "CPU is the machine's, counted once; only the threads' times tell the ends apart",
        ));
    }
    let window_ns = record.dut.reading.window.duration_ns;
    let skew = percent(record.clock.uncertainty_ns, window_ns);
    if skew > SKEW {
        found.push(hazard(
            HazardKind::WindowSkew,
            None,
            format!("the two windows may be apart by {:.1} ms", record.clock.uncertainty_ns as f64 / 1e6),
            "measure for longer, or over a control connection with a shorter round trip",
        ));
    }
    if let Some(bad) = record.summary.bad_bytes.filter(|&n| n > 0) {
        found.push(hazard(
            HazardKind::DamagedPayload,
            None,
            format!("{bad} payload bytes were wrong"),
            "look for a fault in checksum or segmentation offload: switch them off and compare",
        ));
    }
    if let Some(latency) = record.summary.latency.as_ref().filter(|l| l.overflow > 0) {
        found.push(hazard(
            HazardKind::LatencyOverflow,
            None,
            format!("{} transactions took longer than 60 s", latency.overflow),
            "percentiles above them show the longest only",
        ));
    }
    let limit = &record.limit;
    if record.trial.workload.rate().is_some() && limit.limiter != linerate_model::limit::Limiter::Pace {
        found.push(hazard(
            HazardKind::RateNotReached,
            Some(Side::Dut),
            format!("the rate asked for was not reached: {}", limit.evidence),
            "ask for less, or use more streams",
        ));
    }
}

fn of_a_node(side: Side, node: &NodeRecord, record: &Record, found: &mut Vec<Hazard>) {
    let reading = &node.reading;
    let window_ns = reading.window.duration_ns;
    let on = Some(side);
    let waited = reading
        .threads
        .iter()
        .map(|t| percent(t.run_queue_wait_ns.unwrap_or_default(), window_ns))
        .fold(0.0, f64::max);
    if waited > RUN_QUEUE_WAIT {
        found.push(hazard(
            HazardKind::RunQueueWait,
            on,
            format!("a traffic thread waited {waited:.1} % of the window for a CPU"),
            "pin the ends to different CPUs (--pin), stop other work, or use fewer streams",
        ));
    }
    let late = percent(reading.window.start_late_ns.max(reading.window.end_late_ns), window_ns);
    if late > SKEW {
        found.push(hazard(
            HazardKind::SampleLate,
            on,
            format!("a sample was taken {late:.1} % of the window late"),
            "leave a CPU free of traffic, or measure for longer",
        ));
    }
    let drops: u64 = reading.streams.iter().filter_map(|s| s.udp).map(|u| u.socket_drops).sum();
    if drops > 0 {
        found.push(hazard(
            HazardKind::ReceiverSocketDrops,
            on,
            format!("{drops} datagrams were dropped at the receiving socket, for want of room"),
            "raise --socket-buffer, or lower --rate",
        ));
    }
    if let Some(link) = &reading.meter.link {
        let c = &link.counters;
        let lost = c.rx_errors + c.tx_errors + c.tx_dropped + c.rx_missed_errors;
        // The kernel counts frames that nobody here wants (LLDP, spanning tree) as rx_dropped: a few are no sign of trouble.
        if lost > 0 || percent(c.rx_dropped, c.rx_packets) > UNWANTED_FRAMES {
            found.push(hazard(
                HazardKind::LinkDrops,
                on,
                format!(
                    "link {}: {} receive and {} transmit drops, {} and {} errors, {} missed",
                    link.name, c.rx_dropped, c.tx_dropped, c.rx_errors, c.tx_errors, c.rx_missed_errors
                ),
                "look at the driver's statistics, ring sizes and the cable",
            ));
        }
    }
    of_sockets(on, node, record, found);
    if reading.strays > 0 {
        found.push(hazard(
            HazardKind::Strays,
            on,
            format!("{} strangers knocked on the data port and were turned away", reading.strays),
            "nothing was disturbed; see who scans this network",
        ));
    }
}

fn of_sockets(on: Option<Side>, node: &NodeRecord, record: &Record, found: &mut Vec<Hazard>) {
    if let Some(asked) = record.trial.workload.buffer_bytes() {
        // The kernel doubles what it is given (socket(7)); less than the double means that it was cut.
        let granted = node
            .reading
            .streams
            .iter()
            .flat_map(|s| [s.socket.send_buffer_bytes, s.socket.receive_buffer_bytes]);
        if let Some(smallest) = granted.filter(|&b| b > 0).min().filter(|&b| b < asked.0 * 2) {
            found.push(hazard(
                HazardKind::BufferClamped,
                on,
                format!("a socket buffer of {asked} was asked for, and {} granted", smallest / 2),
                "raise net.core.rmem_max and wmem_max",
            ));
        }
    }
    let zerocopy = || node.reading.streams.iter().filter_map(|s| s.zerocopy);
    let copied: u64 = total(zerocopy().map(|z| z.copied_calls));
    if copied > 0 {
        let completed: u64 = total(zerocopy().map(|z| z.completed_calls));
        found.push(hazard(
            HazardKind::ZeroCopyCopied,
            on,
            format!(
                "the kernel copied {:.1} % of the zero-copy sends after all ({copied} of {completed} calls)",
                percent(copied, completed)
            ),
            "expected where both ends are on one machine, or the link has no scatter-gather; else see the driver",
        ));
    }
    let errors: Vec<&str> = node.reading.streams.iter().filter_map(|s| s.error.as_deref()).collect();
    if let Some(first) = errors.first() {
        found.push(hazard(
            HazardKind::StreamEnded,
            on,
            format!("{} streams ended early; the first: {first}", errors.len()),
            "see whether the peer or the link went away",
        ));
    }
}

fn of_a_machine(side: Side, node: &NodeRecord, shared: bool, found: &mut Vec<Hazard>) {
    let on = (!shared).then_some(side);
    let cpu = &node.reading.meter.cpu;
    if let Some(guest) = node.guest.as_ref().filter(|guest| guest.emulated) {
        let why = guest.why_emulated.as_deref().unwrap_or("there is no KVM");
        let cost = guest.host_cpu.map(|cpu| format!("; it took {:.0} % of a CPU outside", cpu.percent()));
        found.push(hazard(
            HazardKind::SoftwareEmulation,
            on,
            format!(
                "{} translates the guest's instructions, since {why}{}",
                guest.emulator,
                cost.unwrap_or_default()
            ),
            "absolute rates mean little: compare only with trials of the same guest",
        ));
    }
    let stolen = percent(cpu.total.steal_ns, cpu.window_ns);
    if stolen > STEAL {
        found.push(hazard(
            HazardKind::StealTime,
            on,
            format!("the hypervisor took {stolen:.1} % of a CPU away"),
            "measure on an idle host, or repeat and compare in turn",
        ));
    }
    if cpu.busy_resolution_ns > 0 && cpu.window_ns < MIN_STEPS * cpu.busy_resolution_ns {
        found.push(hazard(
            HazardKind::ShortWindow,
            on,
            format!(
                "the window of {:.0} ms has fewer than {MIN_STEPS} steps of the CPU clock ({:.0} ms)",
                cpu.window_ns as f64 / 1e6,
                cpu.busy_resolution_ns as f64 / 1e6
            ),
            "measure for longer before trusting CPU figures",
        ));
    }
    if let Some(governor) =
        node.environment.governor.as_deref().filter(|g| !matches!(*g, "performance" | "userspace"))
    {
        found.push(hazard(
            HazardKind::Governor,
            on,
            format!("CPU frequency governor '{governor}'"),
            "set it to performance for comparable CPU figures",
        ));
    }
    if let Some(link) = node.environment.link.as_ref().filter(|l| l.kind.is_some()) {
        found.push(hazard(
            HazardKind::VirtualLink,
            on,
            format!("link {} is a {}", link.name, link.kind.as_deref().unwrap_or("virtual link")),
            "figures speak of the stack, not of a wire",
        ));
    }
    // A machine without energy counters lacks nothing that a figure of the table needs.
    for reason in node.reading.meter.unavailable.iter().filter(|r| !r.starts_with("energy")) {
        found.push(hazard(
            HazardKind::Unavailable,
            on,
            reason.clone(),
            "the figures that need it are missing",
        ));
    }
}
