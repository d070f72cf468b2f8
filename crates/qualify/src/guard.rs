//! Around each variant: counters, the kernel's log and settings before and after (ground rules G1 to G4).

use std::collections::BTreeMap;

use linerate_model::bench::{LogLine, Snapshot};
use linerate_model::qualification::ReasonCode;
use linerate_model::trial::Side;

use crate::bench::Bench;
use crate::finding::Finding;
use crate::glob::matches;
use crate::station::{Station, changes};
use crate::trouble::Trouble;

/// Texts of the kernel's log that fail any case.
const WARNINGS: [&str; 14] = [
    "BUG:",
    "WARNING:",
    "Oops",
    "KASAN",
    "UBSAN",
    "KFENCE",
    "possible circular locking",
    "inconsistent lock state",
    "suspicious RCU usage",
    "DMA-API:",
    "blocked for more than",
    "page allocation failure",
    "unregister_netdevice: waiting for",
    "general protection fault",
];
/// Counters of errors and resets, by glob; a driver names its own as it likes.
const ERRORS: [&str; 18] = [
    "link.rx_errors",
    "link.tx_errors",
    "link.rx_length_errors",
    "link.rx_over_errors",
    "link.rx_crc_errors",
    "link.rx_frame_errors",
    "link.rx_fifo_errors",
    "link.tx_aborted_errors",
    "link.tx_carrier_errors",
    "link.tx_fifo_errors",
    "link.tx_window_errors",
    "driver.*tx_timeout*",
    "driver.*_reset*",
    "driver.*_errors",
    "driver.*csum_err*",
    "driver.*_crc_err*",
    "protocols.*InCsumErrors",
    "protocols.Ip.InHdrErrors",
];

/// How things stood before a variant.
pub(crate) struct Before {
    ends: [EndBefore; 2],
}

struct EndBefore {
    snapshot: Snapshot,
    log: Option<u64>,
}

/// What changed meanwhile.
#[derive(Default)]
pub(crate) struct Changed {
    /// By `dut.link.rx_packets`.
    pub(crate) counters: BTreeMap<String, i64>,
    /// With the node: `dut: ...`.
    pub(crate) log: Vec<String>,
}

/// Looks at both ends. A node whose kernel log can't be read is judged without it.
pub(crate) fn before(bench: &mut Bench) -> Result<Before, Trouble> {
    let end = |station: &mut Station| -> Result<EndBefore, Trouble> {
        let snapshot = station.snapshot_anyway()?;
        let log = match station.log_position() {
            Err(Trouble::Refused(_)) => None,
            other => Some(other?),
        };
        Ok(EndBefore { snapshot, log })
    };
    Ok(Before { ends: [end(&mut bench.dut)?, end(&mut bench.peer)?] })
}

/// Looks again, and adds what must not have changed to the findings.
pub(crate) fn after(bench: &mut Bench, before: &Before, disruptive: bool) -> Result<Changed, Trouble> {
    let mut changed = Changed::default();
    for (side, before) in [Side::Dut, Side::Peer].into_iter().zip(&before.ends) {
        let station = bench.station(side);
        let name = station.name();
        let snapshot = station.snapshot_anyway()?;
        let lines = match before.log {
            Some(from) => station.log_since(from)?,
            None => (Vec::new(), 0),
        };
        let link = station.link().to_owned();
        let counters = changes(&before.snapshot, &snapshot);
        judge_counters(bench, name, &counters);
        changed.counters.extend(counters.into_iter().map(|(key, change)| (format!("{name}.{key}"), change)));
        judge_log(bench, name, &link, &lines, disruptive, &mut changed.log);
    }
    Ok(changed)
}

fn judge_counters(bench: &mut Bench, name: &str, counters: &BTreeMap<String, i64>) {
    for (key, change) in counters.iter().filter(|(_, change)| **change > 0) {
        let full = format!("{name}.{key}");
        // Frames for which there was no room are no error of a driver, whatever it calls them: cases count their frames.
        let is_overrun = key.starts_with("driver.") && key.contains("missed");
        let is_error = !is_overrun && ERRORS.iter().any(|glob| matches(glob, key));
        let is_allowed = bench.allowed_growth.iter().any(|glob| matches(glob, &full));
        if is_error && !is_allowed {
            let code = if key.contains("tx_timeout") { ReasonCode::Watchdog } else { ReasonCode::Count };
            let text = format!("error counter {full} grew by {change}");
            bench.add([Finding { code, text, evidence: None }]);
        }
    }
}

fn judge_log(
    bench: &mut Bench,
    name: &str,
    link: &str,
    (lines, lost): &(Vec<LogLine>, u64),
    disruptive: bool,
    told: &mut Vec<String>,
) {
    const MOST: usize = 100;
    if *lost > 0 {
        bench
            .warn(format!("{name}: {lost} lines of the kernel's log were overwritten before they were read"));
    }
    for line in lines {
        if told.len() < MOST {
            told.push(format!("{name}: {}", line.text));
        }
        let allowed = bench.allowed_log.iter().any(|text| line.text.contains(text));
        let Some(code) = code(&line.text, link, disruptive).filter(|_| !allowed) else { continue };
        let text = format!("{name}: the kernel says: {}", line.text.lines().next().unwrap_or_default());
        bench.add([Finding { code, text, evidence: None }]);
    }
}

/// What a line of the kernel's log is a sign of.
fn code(text: &str, link: &str, disruptive: bool) -> Option<ReasonCode> {
    if text.contains("NETDEV WATCHDOG") || (text.contains("Detected ") && text.contains("Hang")) {
        return Some(ReasonCode::Watchdog);
    }
    if WARNINGS.iter().any(|warning| text.contains(warning)) {
        return Some(ReasonCode::Klog);
    }
    let down = text.contains("Link is Down") && text.contains(link) && !disruptive;
    down.then_some(ReasonCode::Link)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_that_must_not_be_are_known_and_others_are_not() {
        let of = |text| code(text, "eth1", false);
        assert_eq!(of("NETDEV WATCHDOG: CPU: 0: transmit queue 0 timed out"), Some(ReasonCode::Watchdog));
        assert_eq!(of("e1000e 0000:00:19.0 eth1: Detected Hardware Unit Hang:"), Some(ReasonCode::Watchdog));
        assert_eq!(of("WARNING: CPU: 1 PID: 5 at net/core/dev.c:1"), Some(ReasonCode::Klog));
        assert_eq!(of("e1000 eth1: NIC Link is Down"), Some(ReasonCode::Link));
        assert_eq!(code("e1000 eth1: NIC Link is Down", "eth1", true), None);
        assert_eq!(of("e1000 eth0: NIC Link is Down"), None);
        assert_eq!(of("eth1: entered promiscuous mode"), None);
    }
}
