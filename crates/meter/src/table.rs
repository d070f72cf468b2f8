//! Counters by CPU: `/proc/softirqs`, `/proc/interrupts` (columns) and `/proc/net/softnet_stat` (rows).

use std::collections::BTreeMap;

use crate::error::{MeterError, Result};

/// 32-bit counters by CPU number; the kernel lets them wrap.
pub(crate) type ByCpu = BTreeMap<u32, u32>;

/// A table whose header names CPUs and whose rows begin with a label.
#[derive(Debug)]
pub(crate) struct CpuTable<'a> {
    name: &'static str,
    cpus: Vec<u32>,
    rows: std::str::Lines<'a>,
}

/// A row of a [`CpuTable`].
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Row<'a> {
    /// Without the colon.
    pub(crate) label: &'a str,
    /// Counts by CPU; empty for rows that have a single number for the machine (`ERR`, `MIS`).
    pub(crate) counts: ByCpu,
    /// What follows the counts.
    pub(crate) rest: &'a str,
}

impl<'a> CpuTable<'a> {
    /// Parses the header; `name` is the file, for errors.
    pub(crate) fn parse(name: &'static str, text: &'a str) -> Result<Self> {
        let mut rows = text.lines();
        let header = rows.next().unwrap_or_default();
        let cpus: Option<Vec<u32>> =
            header.split_ascii_whitespace().map(|cpu| cpu.strip_prefix("CPU")?.parse().ok()).collect();
        let cpus = cpus.filter(|cpus| !cpus.is_empty());
        let cpus = cpus.ok_or_else(|| MeterError::malformed(name, "the first line does not name CPUs"))?;
        Ok(Self { name, cpus, rows })
    }

    /// The rows whose label `wanted` accepts.
    pub(crate) fn rows(self, wanted: impl Fn(&str) -> bool) -> Result<Vec<Row<'a>>> {
        let split = self.rows.filter_map(|line| line.split_once(':'));
        let picked = split.map(|(label, rest)| (label.trim(), rest)).filter(|(label, _)| wanted(label));
        picked.map(|(label, rest)| row(self.name, &self.cpus, label, rest)).collect()
    }
}

fn row<'a>(name: &str, cpus: &[u32], label: &'a str, line: &'a str) -> Result<Row<'a>> {
    let mut rest = line.trim();
    let mut counts = ByCpu::new();
    for &cpu in cpus {
        let (number, tail) = rest.split_once(char::is_whitespace).unwrap_or((rest, ""));
        let count = number
            .parse()
            .map_err(|_| MeterError::malformed(name, format!("row {label} has no count for CPU {cpu}")))?;
        counts.insert(cpu, count);
        rest = tail.trim_start();
    }
    Ok(Row { label, counts, rest })
}

/// Softirqs that network work runs in.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct Softirqs {
    pub(crate) net_rx: ByCpu,
    pub(crate) net_tx: ByCpu,
}

impl Softirqs {
    /// Parses `/proc/softirqs` (proc_softirqs(5)).
    pub(crate) fn parse(text: &str) -> Result<Self> {
        const NAME: &str = "/proc/softirqs";
        let mut softirqs = Self::default();
        for row in CpuTable::parse(NAME, text)?.rows(|label| matches!(label, "NET_RX" | "NET_TX"))? {
            match row.label {
                "NET_RX" => softirqs.net_rx = row.counts,
                _ => softirqs.net_tx = row.counts,
            }
        }
        if softirqs.net_rx.is_empty() || softirqs.net_tx.is_empty() {
            return Err(MeterError::malformed(NAME, "no row NET_RX or NET_TX"));
        }
        Ok(softirqs)
    }
}

/// One CPU's line of `/proc/net/softnet_stat`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Softnet {
    pub(crate) processed: u32,
    pub(crate) dropped: u32,
    pub(crate) squeezed: u32,
}

/// Parses `/proc/net/softnet_stat`: hexadecimal, the CPU in the 13th column (softnet_seq_show in net/core/net-procfs.c).
pub(crate) fn softnet(text: &str) -> Result<BTreeMap<u32, Softnet>> {
    const CPU_COLUMN: usize = 12;
    let malformed = |detail| MeterError::malformed("/proc/net/softnet_stat", detail);
    let mut cpus = BTreeMap::new();
    for line in text.lines() {
        let columns: std::result::Result<Vec<u32>, _> =
            line.split_ascii_whitespace().map(|column| u32::from_str_radix(column, 16)).collect();
        let columns = columns.map_err(|_| malformed("a column is no hexadecimal number"))?;
        let &[processed, dropped, squeezed, ..] = columns.as_slice() else {
            return Err(malformed("a line of fewer than 3 columns"));
        };
        let cpu = *columns.get(CPU_COLUMN).ok_or_else(|| malformed("no column that names the CPU"))?;
        cpus.insert(cpu, Softnet { processed, dropped, squeezed });
    }
    Ok(cpus)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const INTERRUPTS: &str = "           CPU0       CPU2       
 38:          7       4077 PCI-MSIX-0000:00:03.0   1-edge      virtio2-input.0
 39:       3468          0 PCI-MSIX-0000:00:03.0   2-edge      virtio2-output.0
LOC:     252972     128965   Local timer interrupts
ERR:          0
";

    #[test]
    fn rows_are_picked_by_label_with_the_cpus_of_the_header() {
        let rows = CpuTable::parse("t", INTERRUPTS).unwrap().rows(|label| label == "38").unwrap();
        assert_eq!(rows.len(), 1);
        assert_eq!(rows[0].counts, ByCpu::from([(0, 7), (2, 4077)]));
        assert_eq!(rows[0].rest, "PCI-MSIX-0000:00:03.0   1-edge      virtio2-input.0");
    }

    #[test]
    fn softirqs_of_the_network_are_found() {
        let text = "   CPU0  CPU1\n  HI: 1 2\n NET_TX: 12 5\n NET_RX: 4717 4113\n";
        let softirqs = Softirqs::parse(text).unwrap();
        assert_eq!(softirqs.net_rx, ByCpu::from([(0, 4717), (1, 4113)]));
        assert_eq!(softirqs.net_tx, ByCpu::from([(0, 12), (1, 5)]));
        for damaged in ["", "CPU0\nNET_RX: 1\n", "CPU0 CPU1\nNET_TX: 1 2\nNET_RX: 1\n", "CPUx\n"] {
            assert!(Softirqs::parse(damaged).is_err(), "{damaged:?}");
        }
    }

    #[test]
    fn softnet_lines_name_their_cpu() {
        let zeros = "00000000 ".repeat(9);
        let text = format!("000007eb 00000001 0000000a {zeros}00000003 00000000 00000000\n");
        let expected = Softnet { processed: 0x7eb, dropped: 1, squeezed: 10 };
        assert_eq!(softnet(&text).unwrap(), BTreeMap::from([(3, expected)]));
        for damaged in ["1 2", "1 2 3", "x y z", "100000000 1 2"] {
            assert!(softnet(damaged).is_err(), "{damaged:?}");
        }
    }

    proptest! {
        #[test]
        fn hostile_text_never_panics(text in ".{0,200}") {
            let _ = softnet(&text);
            let _ = Softirqs::parse(&text);
        }

        #[test]
        fn hostile_tables_never_panic(text in "(CPU[0-9]{1,11} ){0,3}\n([A-Z_]{0,7}:?( [0-9a-f-]{0,12}){0,4}\n){0,4}") {
            let _ = softnet(&text);
            let _ = Softirqs::parse(&text);
            let _ = CpuTable::parse("t", &text).and_then(|table| table.rows(|_| true));
        }
    }
}
