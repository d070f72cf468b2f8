//! What kind of machine and link a node has.

use std::collections::BTreeMap;
use std::net::IpAddr;

use serde::{Deserialize, Serialize};

/// A node's machine, kernel and link under test.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Environment {
    /// Version of the linerate that ran on the node.
    pub linerate_version: String,
    /// Host name (`uname -n`).
    pub host: String,
    /// Kernel release (`uname -r`).
    pub kernel: String,
    /// Kernel build (`uname -v`).
    pub kernel_build: String,
    /// Machine architecture (`uname -m`).
    pub architecture: String,
    /// Random id of this boot (`/proc/sys/kernel/random/boot_id`): the same on nodes that share a kernel.
    pub boot_id: String,
    /// CPU model (`/proc/cpuinfo`).
    pub cpu_model: String,
    /// CPUs online.
    pub cpus_online: u32,
    /// CPUs that the agent may run on.
    pub cpus_allowed: Vec<u32>,
    /// NUMA nodes.
    pub numa_nodes: u32,
    /// Memory, bytes.
    pub memory_bytes: u64,
    /// Hypervisor, where the CPU says that there is one.
    pub hypervisor: Option<String>,
    /// Frequency governor of CPU 0, where there is one.
    pub governor: Option<String>,
    /// Clock source (`/sys/devices/system/clocksource`).
    pub clocksource: Option<String>,
    /// CPU weaknesses with what the kernel does about them (`/sys/devices/system/cpu/vulnerabilities`).
    pub mitigations: BTreeMap<String, String>,
    /// Network sysctls that bear on results, by name.
    pub sysctls: BTreeMap<String, String>,
    /// Congestion controls that the kernel offers now.
    pub congestion_controls: Vec<String>,
    /// The link under test.
    pub link: Option<LinkInfo>,
    /// What should be known of any machine and could not be read, with the reason.
    #[serde(default)]
    pub unavailable: Vec<String>,
}

/// A network interface.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct LinkInfo {
    /// Interface name.
    pub name: String,
    /// Interface index.
    pub index: u32,
    /// Administratively up (`IFF_UP`).
    pub up: bool,
    /// Has carrier (`IFF_LOWER_UP`).
    pub carrier: bool,
    /// Is a loopback.
    pub loopback: bool,
    /// Kind of a virtual link (`veth`, `bridge` ...); `None` for a device of its own.
    pub kind: Option<String>,
    /// Largest packet, bytes.
    pub mtu: u32,
    /// Hardware address as `aa:bb:..`.
    pub mac: Option<String>,
    /// Addresses.
    pub addresses: Vec<LinkAddress>,
    /// Queueing discipline at the root.
    pub qdisc: Option<String>,
    /// Transmit queues.
    pub tx_queues: u32,
    /// Receive queues.
    pub rx_queues: u32,
    /// Speed, megabits a second; `None` where the driver does not know.
    pub speed_mbit: Option<u32>,
    /// `full` or `half`.
    pub duplex: Option<String>,
    /// Driver name.
    pub driver: Option<String>,
    /// Driver version as the driver tells it.
    pub driver_version: Option<String>,
    /// Firmware version as the driver tells it.
    pub firmware: Option<String>,
    /// Bus address (PCI, virtio ...).
    pub bus: Option<String>,
    /// PCI link speed (`/sys/.../current_link_speed`).
    pub pci_speed: Option<String>,
    /// PCI link width, lanes.
    pub pci_lanes: Option<u32>,
    /// NUMA node of the device.
    pub numa_node: Option<i32>,
    /// Features by kernel name.
    pub features: BTreeMap<String, Feature>,
    /// Interrupts with the CPUs that may take them.
    pub irqs: Vec<Irq>,
    /// What was asked of the kernel and could not be had, with its words.
    pub unavailable: Vec<String>,
}

/// An address of a link.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct LinkAddress {
    /// The address.
    pub address: IpAddr,
    /// Prefix length, bits.
    pub prefix: u8,
    /// `global`, `link`, `host` or `site` (RT_SCOPE_*).
    pub scope: String,
    /// Not usable yet or ever: tentative or failed duplicate detection.
    pub tentative: bool,
}

/// State of a feature (an offload).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Feature {
    /// On.
    pub on: bool,
    /// Can be changed.
    pub changeable: bool,
}

/// An interrupt of a link.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Irq {
    /// Number.
    pub number: u32,
    /// Name in `/proc/interrupts`.
    pub name: String,
    /// CPUs that may take it, as the kernel lists them.
    pub affinity: String,
}
