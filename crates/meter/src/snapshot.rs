//! Every counter that has to do with a link, at one moment.

use std::collections::BTreeMap;
use std::fs;

use linerate_model::bench::Snapshot;
use linerate_sys::clock::monotonic_ns;

use crate::error::{MeterError, Result};
use crate::interrupts::LinkInterrupts;
use crate::meter::PROTOCOL_FILES;
use crate::protocol::{parse_pairs, parse_snmp6};
use crate::rtnetlink::{RouteSocket, long};
use crate::{driver, queues, standard, table};

type Counters = BTreeMap<String, u64>;

/// `struct rtnl_link_stats64` (linux/if_link.h), in its order.
const LINK_FIELDS: [&str; 25] = [
    "rx_packets",
    "tx_packets",
    "rx_bytes",
    "tx_bytes",
    "rx_errors",
    "tx_errors",
    "rx_dropped",
    "tx_dropped",
    "multicast",
    "collisions",
    "rx_length_errors",
    "rx_over_errors",
    "rx_crc_errors",
    "rx_frame_errors",
    "rx_fifo_errors",
    "rx_missed_errors",
    "tx_aborted_errors",
    "tx_carrier_errors",
    "tx_fifo_errors",
    "tx_heartbeat_errors",
    "tx_window_errors",
    "rx_compressed",
    "tx_compressed",
    "rx_nohandler",
    "rx_otherhost_dropped",
];

/// Columns of `/proc/net/dev` (dev_seq_printf_stats in net/core/net-procfs.c).
const DEV_COLUMNS: [&str; 16] = [
    "rx_bytes",
    "rx_packets",
    "rx_errors",
    "rx_dropped+rx_missed_errors",
    "rx_fifo_errors",
    "rx_length_errors+rx_over_errors+rx_crc_errors+rx_frame_errors",
    "rx_compressed",
    "multicast",
    "tx_bytes",
    "tx_packets",
    "tx_errors",
    "tx_dropped",
    "tx_fifo_errors",
    "collisions",
    "tx_carrier_errors+tx_aborted_errors+tx_window_errors+tx_heartbeat_errors",
    "tx_compressed",
];

/// Reads every counter of `link` and of the calling thread's network namespace. What can't be read, though the kernel may
/// have it, is told in `unavailable`.
///
/// # Errors
/// No such link, or no netlink.
pub fn snapshot(link: &str) -> Result<Snapshot> {
    let mut route = RouteSocket::open()?;
    let (index, carrier_changes) = route.link(link)?;
    let taken_ns = monotonic_ns();
    let statistics = route.statistics(index)?;
    let mut lacks = Lacks::default();
    // As close together as can be: the two are compared.
    let proc_net_dev = lacks.or_none(read("/proc/thread-self/net/dev").and_then(|text| dev(&text, link)));
    let driver = lacks.or_none(driver_statistics(link));
    let standard = lacks.or_none(standard::statistics(link));
    let queues = lacks.or_none(queues::statistics(index));
    let mut protocols = Counters::new();
    for path in PROTOCOL_FILES {
        let parsed = read(path).and_then(|text| match path.ends_with("snmp6") {
            true => parse_snmp6(path, &text),
            false => parse_pairs(path, &text),
        });
        protocols.append(&mut lacks.or_none(parsed));
    }
    let softnet = lacks.or_none(read("/proc/net/softnet_stat").and_then(|text| softnet(&text)));
    let interrupts = LinkInterrupts::open(link, index)
        .and_then(|found| found.map_or_else(|| Ok(Counters::new()), |mut found| found.totals()));
    let interrupts = lacks.or_none(interrupts);
    Ok(Snapshot {
        link: fields(&statistics),
        proc_net_dev,
        driver,
        standard,
        queues,
        protocols,
        softnet,
        interrupts,
        carrier_changes,
        taken_ns,
        unavailable: lacks.0,
    })
}

/// What could not be read, in words.
#[derive(Default)]
struct Lacks(Vec<String>);

impl Lacks {
    fn or_none(&mut self, counters: Result<Counters>) -> Counters {
        counters.unwrap_or_else(|error| {
            self.0.push(error.to_string());
            Counters::new()
        })
    }
}

fn read(path: &str) -> Result<String> {
    fs::read_to_string(path).map_err(|cause| crate::file::failed("read", path.as_ref(), cause))
}

/// A kernel older than a trailing field does not send it.
fn fields(statistics: &[u8]) -> Counters {
    let values = LINK_FIELDS.iter().enumerate();
    values.filter_map(|(at, name)| Some(((*name).to_owned(), long(statistics, 8 * at)?))).collect()
}

fn dev(text: &str, link: &str) -> Result<Counters> {
    const NAME: &str = "/proc/net/dev";
    // A name may hold a colon, as aliases once did.
    let line = text.lines().find_map(|line| line.trim_start().strip_prefix(link)?.strip_prefix(':'));
    let line = line.ok_or_else(|| MeterError::malformed(NAME, format!("no link {link}")))?;
    let values: std::result::Result<Vec<u64>, _> = line.split_ascii_whitespace().map(str::parse).collect();
    let values = values.map_err(|_| MeterError::malformed(NAME, "a column is no count"))?;
    if values.len() != DEV_COLUMNS.len() {
        return Err(MeterError::malformed(NAME, format!("{} columns", values.len())));
    }
    Ok(DEV_COLUMNS.iter().map(|name| (*name).to_owned()).zip(values).collect())
}

fn driver_statistics(link: &str) -> Result<Counters> {
    let Some(mut statistics) = driver::open(link)? else { return Ok(Counters::new()) };
    let values = statistics.read()?;
    let mut counters = Counters::new();
    for (name, value) in statistics.names().iter().zip(values) {
        let sum: &mut u64 = counters.entry(name.clone()).or_default();
        *sum = sum.saturating_add(value);
    }
    Ok(counters)
}

fn softnet(text: &str) -> Result<Counters> {
    let cpus = table::softnet(text)?;
    let sum = |part: fn(&table::Softnet) -> u32| cpus.values().map(|cpu| u64::from(part(cpu))).sum();
    Ok(Counters::from([
        ("processed".to_owned(), sum(|cpu| cpu.processed)),
        ("dropped".to_owned(), sum(|cpu| cpu.dropped)),
        ("time_squeeze".to_owned(), sum(|cpu| cpu.squeezed)),
    ]))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn loopback_has_its_groups() {
        let snapshot = snapshot("lo").unwrap();
        assert!(snapshot.link.contains_key("rx_nohandler") && snapshot.taken_ns > 0);
        assert_eq!(snapshot.proc_net_dev.len(), 16);
        assert!(snapshot.protocols.contains_key("Ip.InReceives"));
        assert!(snapshot.softnet["processed"] > 0);
        // Loopback counts what it sends as received, so the two agree but for what passed in between.
        assert!(snapshot.proc_net_dev["rx_bytes"] >= snapshot.link["rx_bytes"]);
        assert!(super::snapshot("lr-none").is_err());
    }

    #[test]
    fn a_line_of_proc_net_dev_is_found_by_its_whole_name() {
        let text = "Inter-| x\n face |bytes\n  eth0.1: 9 9 9 9 9 9 9 9 9 9 9 9 9 9 9 9\n  eth0: 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16\n";
        let counters = dev(text, "eth0").unwrap();
        assert_eq!((counters["rx_bytes"], counters["collisions"], counters["tx_compressed"]), (1, 14, 16));
        assert!(dev(text, "eth").is_err());
    }

    proptest! {
        #[test]
        fn hostile_text_never_panics(text in "( ?[ae:0-9é]{0,4} ?){0,30}", link in "[ae]{0,2}") {
            let _ = dev(&text, &link);
        }
    }
}
