//! What only `/sys` and `/proc` tell of a link: its PCI slot, NUMA node, interrupts, and packet steering.
//!
//! `/sys/class/net` shows the links of the namespace in which that sysfs was mounted: see [`crate::in_netns`].

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use linerate_model::environment::Irq;

use crate::error::{LinkError, Result};

/// Where a device sits.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Slot {
    /// PCI speed now (`8.0 GT/s PCIe`).
    pub pci_speed: Option<String>,
    /// PCI lanes now.
    pub pci_lanes: Option<u32>,
    /// NUMA node; `None` where the machine has but one and says so with -1.
    pub numa_node: Option<i32>,
}

/// Where the device of `link` sits; all `None` for a virtual link.
pub fn slot(link: &str) -> Slot {
    let attribute = |name| device_folders(link).find_map(|folder| line(&folder.join(name)));
    let known = |text: &String| text != "Unknown";
    Slot {
        pci_speed: attribute("current_link_speed").filter(known),
        // 0 and 255 stand for unknown.
        pci_lanes: attribute("current_link_width")
            .and_then(|text| text.parse().ok())
            .filter(|lanes| *lanes != 0 && *lanes != 255),
        numa_node: attribute("numa_node").and_then(|text| text.parse().ok()).filter(|node| *node >= 0),
    }
}

/// The interrupts of `link` with the CPUs that may take them: those of its device (`msi_irqs`), and of those, where
/// several links share the device, the ones named after the link when any is.
///
/// # Errors
/// `/proc/interrupts` can't be read.
pub fn irqs(link: &str) -> Result<Vec<Irq>> {
    let numbers: Vec<u32> = device_folders(link)
        .find_map(|folder| fs::read_dir(folder.join("msi_irqs")).ok())
        .into_iter()
        .flatten()
        .filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok())
        .collect();
    let table = "/proc/interrupts";
    let text = fs::read_to_string(table).map_err(|cause| LinkError::file("read", table, cause))?;
    let names = interrupt_names(&text);
    let own: Vec<_> = names.iter().filter(|(_, name)| names_link(name, link)).map(|(irq, _)| *irq).collect();
    let numbers = if own.is_empty() { numbers } else { own };
    let irq = |number: u32| {
        let name = names.get(&number)?.clone();
        let affinity = line(Path::new(&format!("/proc/irq/{number}/smp_affinity_list"))).unwrap_or_default();
        Some(Irq { number, name, affinity })
    };
    let mut irqs: Vec<_> = numbers.into_iter().filter_map(irq).collect();
    irqs.sort_by_key(|irq| irq.number);
    Ok(irqs)
}

/// Packet steering of `link`'s queues: `rx-0/rps_cpus`, `rx-0/rps_flow_cnt`, `tx-0/xps_cpus`, `tx-0/xps_rxqs` with what
/// they hold. Those that the driver or kernel does not have are left out.
pub fn steering(link: &str) -> BTreeMap<String, String> {
    let queues = class_folder(link).join("queues");
    let mut steering = BTreeMap::new();
    for entry in fs::read_dir(&queues).into_iter().flatten().flatten() {
        let queue = entry.file_name().to_string_lossy().into_owned();
        for file in ["rps_cpus", "rps_flow_cnt", "xps_cpus", "xps_rxqs"] {
            if let Some(value) = line(&entry.path().join(file)) {
                steering.insert(format!("{queue}/{file}"), value);
            }
        }
    }
    steering
}

/// The folder of a link in `/sys/class/net`.
pub(crate) fn class_folder(link: &str) -> PathBuf {
    // A link's name can't hold a slash, but the argument might.
    Path::new("/sys/class/net").join(link.replace('/', "!"))
}

/// The folder of the link's device and those above it: for virtio the PCI function is one above.
fn device_folders(link: &str) -> impl Iterator<Item = PathBuf> {
    let device = fs::canonicalize(class_folder(link).join("device")).ok();
    let folders = device.map(|device| device.ancestors().take(3).map(Path::to_owned).collect::<Vec<_>>());
    folders.unwrap_or_default().into_iter().filter(|folder| folder.starts_with("/sys/devices"))
}

fn line(path: &Path) -> Option<String> {
    fs::read_to_string(path).ok().map(|text| text.trim_end().to_owned())
}

/// Numbered interrupts from `/proc/interrupts` (proc_interrupts(5)), with the last word of their line: no driver of a
/// NIC puts a blank into the name.
fn interrupt_names(table: &str) -> BTreeMap<u32, String> {
    let name = |line: &str| {
        let (number, rest) = line.split_once(':')?;
        Some((number.trim().parse().ok()?, rest.split_whitespace().last()?.to_owned()))
    };
    table.lines().filter_map(name).collect()
}

/// Drivers name an interrupt `eth0`, `eth0-rx-0`, `i40e-eth0-TxRx-0`, `mlx5_comp0@pci:...` or `virtio2-input.0`.
fn names_link(irq: &str, link: &str) -> bool {
    irq.split(['-', '@', ':']).any(|part| part == link)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn interrupts_are_found_by_number_and_name() {
        let table = "           CPU0       CPU1\n  38:          0       4077 PCI-MSIX-0000:00:03.0   1-edge      eth0-rx-0\n NMI:  0 0  Non-maskable interrupts\n";
        let names = interrupt_names(table);
        assert_eq!(names, BTreeMap::from([(38, "eth0-rx-0".to_owned())]));
        assert!(names_link("eth0-rx-0", "eth0") && names_link("i40e-eth0-TxRx-0", "eth0"));
        assert!(!names_link("eth01-rx-0", "eth0") && !names_link("virtio2-input.0", "eth0"));
    }

    proptest! {
        #[test]
        fn hostile_tables_never_panic(table in ".{0,200}", link in ".{0,16}") {
            let _ = interrupt_names(&table);
            let _ = slot(&link);
        }
    }
}
