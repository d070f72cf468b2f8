//! What counters must say of a known number of frames.

use std::collections::BTreeMap;

use linerate_model::bench::Snapshot;
use linerate_model::qualification::ReasonCode;

use crate::bench::Way;
use crate::finding::Finding;

/// Frames that crossed the dut's link.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Counted {
    /// Which way.
    pub way: Way,
    /// How many.
    pub frames: u64,
    /// Their bytes without FCS, which is what `rx_bytes` and `tx_bytes` count (linux/if_link.h).
    pub bytes: u64,
}

/// Bytes a frame that drivers are known to count beyond, or short of, the definition.
const KNOWN_RULES: [(i64, &str); 4] = [
    (4, "the FCS is counted"),
    (-14, "the Ethernet header is not counted"),
    (-12, "the addresses are not counted"),
    (24, "FCS, preamble and gap are counted"),
];

/// Judges the dut's counters: exact growth in rtnetlink, `/proc/net/dev`, queues and the standard group.
pub fn judge_counts(before: &Snapshot, after: &Snapshot, counted: Counted) -> Vec<Finding> {
    let direction = match counted.way {
        Way::ToPeer => "tx",
        Way::ToDut => "rx",
    };
    let mut findings = Vec::new();
    for (source, before, after) in [
        ("rtnetlink", &before.link, &after.link),
        ("/proc/net/dev", &before.proc_net_dev, &after.proc_net_dev),
    ] {
        let (packets, bytes) = (format!("{direction}_packets"), format!("{direction}_bytes"));
        findings.extend(packets_of(source, &packets, growth(before, after, &packets), counted.frames));
        findings.extend(bytes_of(source, &bytes, growth(before, after, &bytes), counted));
    }
    findings.extend(queues(direction, &before.queues, &after.queues, counted));
    let standard = match counted.way {
        Way::ToPeer => "eth-mac.FramesTransmittedOK",
        Way::ToDut => "eth-mac.FramesReceivedOK",
    };
    let grown = growth(&before.standard, &after.standard, standard);
    findings.extend(packets_of("ethtool", standard, grown, counted.frames));
    findings
}

/// How much a counter grew; `None` where it is not there.
pub fn growth(before: &BTreeMap<String, u64>, after: &BTreeMap<String, u64>, name: &str) -> Option<i64> {
    Some(*after.get(name)? as i64 - *before.get(name)? as i64)
}

fn packets_of(source: &str, name: &str, grown: Option<i64>, frames: u64) -> Option<Finding> {
    let grown = grown.filter(|grown| *grown != frames as i64)?;
    Some(finding(ReasonCode::Count, format!("{source} {name} grew by {grown} with {frames} frames")))
}

fn bytes_of(source: &str, name: &str, grown: Option<i64>, counted: Counted) -> Option<Finding> {
    let beyond = grown? - counted.bytes as i64;
    if beyond == 0 {
        return None;
    }
    let frames = (counted.frames as i64).max(1);
    let text = format!("{source} {name} grew by {} with {} bytes", grown?, counted.bytes);
    if beyond % frames != 0 {
        return Some(finding(ReasonCode::Count, text));
    }
    let each = beyond / frames;
    let rule = KNOWN_RULES.iter().find(|(bytes, _)| *bytes == each).map_or("", |(_, words)| words);
    Some(finding(ReasonCode::CountRule, format!("{text}: {each:+} a frame {rule}").trim_end().to_owned()))
}

/// The sum over all queues, where the driver counts by queue.
fn queues(
    direction: &str,
    before: &BTreeMap<String, u64>,
    after: &BTreeMap<String, u64>,
    counted: Counted,
) -> Option<Finding> {
    let sum = |counters: &BTreeMap<String, u64>| -> Option<u64> {
        let mut values = counters
            .iter()
            .filter(|(name, _)| name.starts_with(&format!("{direction}-")) && name.ends_with(".packets"))
            .map(|(_, value)| *value)
            .peekable();
        values.peek()?;
        Some(values.sum())
    };
    let grown = sum(after)? as i64 - sum(before)? as i64;
    let name = format!("sum of {direction} queues");
    packets_of("netdev netlink", &name, Some(grown), counted.frames)
}

fn finding(code: ReasonCode, text: String) -> Finding {
    Finding { code, text, evidence: None }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn snapshot(packets: u64, bytes: u64, queues: &[u64]) -> Snapshot {
        let link: BTreeMap<String, u64> =
            [("tx_packets".to_owned(), packets), ("tx_bytes".to_owned(), bytes)].into();
        let queues =
            queues.iter().enumerate().map(|(n, value)| (format!("tx-{n}.packets"), *value)).collect();
        Snapshot { proc_net_dev: link.clone(), link, queues, ..Snapshot::default() }
    }

    fn codes(after: &Snapshot) -> Vec<ReasonCode> {
        let counted = Counted { way: Way::ToPeer, frames: 10, bytes: 1000 };
        judge_counts(&snapshot(5, 500, &[2, 3]), after, counted).into_iter().map(|f| f.code).collect()
    }

    #[test]
    fn exact_growth_is_right_and_each_deviation_is_told() {
        assert_eq!(codes(&snapshot(15, 1500, &[7, 8])), []);
        assert_eq!(codes(&snapshot(16, 1500, &[7, 8])), [ReasonCode::Count; 2]);
        assert_eq!(codes(&snapshot(15, 1540, &[7, 8])), [ReasonCode::CountRule; 2]);
        assert_eq!(codes(&snapshot(15, 1541, &[7, 8])), [ReasonCode::Count; 2]);
        assert_eq!(codes(&snapshot(15, 1500, &[7, 9])), [ReasonCode::Count]);
    }

    #[test]
    fn a_driver_that_does_not_count_by_queue_is_not_judged_by_queue() {
        assert_eq!(codes(&snapshot(15, 1500, &[])), []);
    }
}
