//! Interrupts of a link: which they are, and how often each CPU took them (`/proc/interrupts`, proc_interrupts(5)).

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

use crate::error::{MeterError, Result};
use crate::file::{KeptFile, read_trimmed};
use crate::growth::{grown32, or_note};
use crate::table::{ByCpu, CpuTable};

const NAME: &str = "/proc/interrupts";

/// `/proc/interrupts`, kept open for a link that has interrupts.
#[derive(Debug)]
pub(crate) struct LinkInterrupts {
    file: KeptFile,
    numbers: BTreeSet<String>,
}

/// Counts by interrupt number and CPU.
pub(crate) type InterruptSample = BTreeMap<String, ByCpu>;

impl LinkInterrupts {
    /// Finds the interrupts of the link `name` of that `index`; `None` where it has none, as virtual links.
    ///
    /// They are those that `/sys` lists for its device, and those that carry the name of the link or of its device.
    pub(crate) fn open(name: &str, index: u32) -> Result<Option<Self>> {
        let folder = Path::new("/sys/class/net").join(name);
        // /sys shows the namespace of the process that mounted it.
        if read_trimmed(folder.join("ifindex"))? != index.to_string() {
            let detail = format!("shows another {name}, of another network namespace");
            return Err(MeterError::malformed("/sys/class/net", detail));
        }
        let Ok(device) = fs::canonicalize(folder.join("device")) else { return Ok(None) };
        let mut names = vec![name.to_owned()];
        names.extend(device.file_name().map(|device| device.to_string_lossy().into_owned()));
        let mut numbers = listed(&device);
        let mut file = KeptFile::open(NAME)?;
        numbers.extend(named(&file.read_text()?, &names)?);
        Ok((!numbers.is_empty()).then_some(Self { file, numbers }))
    }

    pub(crate) fn sample(&mut self) -> Result<InterruptSample> {
        parse(&self.file.read_text()?, &self.numbers)
    }

    /// Counts since boot, summed over CPUs, by the names of their actions.
    pub(crate) fn totals(&mut self) -> Result<BTreeMap<String, u64>> {
        totals(&self.file.read_text()?, &self.numbers)
    }
}

/// Numbers in `msi_irqs` of a device; none where it has no such folder. That of a virtio device's parent is not asked: it
/// lists the same interrupts, which are found by name.
fn listed(device: &Path) -> BTreeSet<String> {
    let Ok(entries) = fs::read_dir(device.join("msi_irqs")) else { return BTreeSet::new() };
    entries.filter_map(|entry| entry.ok()?.file_name().into_string().ok()).collect()
}

/// Numbers of the rows whose action begins with one of the names, and goes on with no letter or digit: `eth0`,
/// `eth0-rx-1`, `virtio2-input.0`; also behind a driver's prefix: `ice-eth0-TxRx-3`, `mlx5_comp1@pci:...` not.
fn named(text: &str, names: &[String]) -> Result<BTreeSet<String>> {
    let rows = CpuTable::parse(NAME, text)?.rows(is_number)?;
    let ours = rows.iter().filter(|row| {
        let words = row.rest.split([' ', ',']);
        words.into_iter().any(|word| names.iter().any(|name| is_part(word, name)))
    });
    Ok(ours.map(|row| row.label.to_owned()).collect())
}

/// Whether `name` stands in `word` with a border or a sign on each side.
fn is_part(word: &str, name: &str) -> bool {
    let outside = |neighbour: Option<char>| !neighbour.is_some_and(char::is_alphanumeric);
    word.match_indices(name).any(|(at, _)| {
        let (before, after) = (&word[..at], &word[at + name.len()..]);
        outside(before.chars().next_back()) && outside(after.chars().next()) && !after.starts_with('.')
    })
}

fn is_number(label: &str) -> bool {
    !label.is_empty() && label.bytes().all(|byte| byte.is_ascii_digit())
}

fn parse(text: &str, numbers: &BTreeSet<String>) -> Result<InterruptSample> {
    let rows = CpuTable::parse(NAME, text)?.rows(|label| numbers.contains(label))?;
    Ok(rows.into_iter().map(|row| (row.label.to_owned(), row.counts)).collect())
}

fn totals(text: &str, numbers: &BTreeSet<String>) -> Result<BTreeMap<String, u64>> {
    let mut totals = BTreeMap::new();
    for row in CpuTable::parse(NAME, text)?.rows(|label| numbers.contains(label))? {
        // Chip and trigger stand before the action, each padded with blanks.
        let name = row.rest.rsplit("  ").next().map_or(row.label, str::trim);
        let sum: u64 = row.counts.values().map(|count| u64::from(*count)).sum();
        *totals.entry(name.to_owned()).or_default() += sum;
    }
    Ok(totals)
}

/// Interrupts that each CPU took between two samples.
pub(crate) fn difference(
    earlier: &InterruptSample,
    later: &InterruptSample,
    notes: &mut Vec<String>,
) -> BTreeMap<u32, u64> {
    let mut taken = BTreeMap::new();
    for (number, counts) in later {
        for (&cpu, &count) in counts {
            let Some(&before) = earlier.get(number).and_then(|counts| counts.get(&cpu)) else { continue };
            let growth = or_note(grown32(before, count), &format!("interrupt {number} on CPU {cpu}"), notes);
            *taken.entry(cpu).or_default() += growth;
        }
    }
    taken
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const TEXT: &str = "           CPU0       CPU2       
 38:          7       4077 PCI-MSIX-0000:00:03.0   1-edge      virtio2-input.0
 39:       3468          0 PCI-MSIX-0000:00:03.0   2-edge      virtio2-output.0
 40:          1          2 PCI-MSIX-0000:00:04.0   0-edge      virtio20-input.0
 41:          1          2 PCI-MSIX-0000:00:04.0   0-edge      ice-eth0-TxRx-0
 42:          1          2 PCI-MSIX-0000:00:04.0   0-edge      eth0.7, usb1
LOC:     252972     128965   Local timer interrupts
";

    fn found(name: &str) -> Vec<String> {
        named(TEXT, &[name.to_owned()]).unwrap().into_iter().collect()
    }

    #[test]
    fn rows_are_found_by_the_name_of_link_or_device() {
        assert_eq!(found("virtio2"), ["38", "39"]);
        assert_eq!(found("eth0"), ["41"]);
        assert_eq!(found("eth0.7"), ["42"]);
        assert_eq!(found("usb"), Vec::<String>::new());
    }

    #[test]
    fn interrupts_are_added_up_by_name() {
        let numbers = BTreeSet::from(["38".to_owned(), "42".to_owned()]);
        let wanted = BTreeMap::from([("virtio2-input.0".to_owned(), 4084), ("eth0.7, usb1".to_owned(), 3)]);
        assert_eq!(totals(TEXT, &numbers).unwrap(), wanted);
    }

    #[test]
    fn interrupts_are_added_up_by_cpu() {
        let numbers = BTreeSet::from(["38".to_owned(), "39".to_owned()]);
        let before = parse(TEXT, &numbers).unwrap();
        let after = parse(&TEXT.replace(" 7 ", " 9 ").replace("3468", "3470"), &numbers).unwrap();
        let mut notes = Vec::new();
        assert_eq!(difference(&before, &after, &mut notes), BTreeMap::from([(0, 4), (2, 0)]));
        assert_eq!(notes, Vec::<String>::new());
        let back = difference(&after, &before, &mut notes);
        assert_eq!((back[&0], notes.len()), (0, 2));
    }

    #[test]
    fn a_link_without_a_device_has_none() {
        assert!(LinkInterrupts::open("lo", 1).unwrap().is_none());
        assert!(LinkInterrupts::open("lo", 99).unwrap_err().to_string().contains("another"));
    }

    proptest! {
        #[test]
        fn hostile_text_never_panics(text in "CPU0 CPU1\n( [0-9]{0,3}:( [0-9]{0,11}){0,3} [é.a-z0-9-]{0,9}\n){0,4}", name in "[é.a-z0-9-]{0,3}") {
            let _ = named(&text, &[name]);
            let _ = parse(&text, &BTreeSet::from(["1".to_owned()]));
            let _ = totals(&text, &BTreeSet::from(["1".to_owned()]));
        }
    }
}
