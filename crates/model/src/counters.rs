//! What the kernel counted during a window. Differences between two samples, never absolute values.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

/// CPU time of one CPU, or of a whole machine, within a window; nanoseconds.
///
/// `busy_ns` comes from idle time: window - idle - iowait - steal (`/proc/stat`, whose idle column is exact with
/// `NO_HZ`; see kernel/sched/cputime.c and fs/proc/stat.c). The kinds come from ticks and need not add up to it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct CpuTime {
    /// Not idle, not waiting for I/O, not stolen.
    pub busy_ns: u64,
    /// Idle, I/O wait included.
    pub idle_ns: u64,
    /// User code, guests included.
    pub user_ns: u64,
    /// User code at low priority.
    pub nice_ns: u64,
    /// Kernel code on behalf of a thread.
    pub system_ns: u64,
    /// Hardware interrupts.
    pub irq_ns: u64,
    /// Softirqs.
    pub softirq_ns: u64,
    /// Wanted to run, but the hypervisor ran something else.
    pub steal_ns: u64,
}

/// One CPU's time and network work.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct CpuReading {
    /// CPU number.
    pub cpu: u32,
    /// Its time.
    pub time: CpuTime,
    /// `NET_RX` softirqs run (`/proc/softirqs`).
    pub net_rx_softirqs: u64,
    /// `NET_TX` softirqs run (`/proc/softirqs`).
    pub net_tx_softirqs: u64,
    /// Packets handled by the receive softirq (`/proc/net/softnet_stat`, column 1).
    pub packets_processed: u64,
    /// Packets dropped since the backlog was full (column 2).
    pub backlog_dropped: u64,
    /// Times that the softirq stopped with work left (column 3).
    pub time_squeezed: u64,
    /// Interrupts of the link under test that this CPU took (`/proc/interrupts`).
    pub link_interrupts: u64,
}

/// CPU time of a machine over the window.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct MachineCpu {
    /// Time between the two samples of `/proc/stat`, nanoseconds.
    pub window_ns: u64,
    /// Sum over all CPUs.
    pub total: CpuTime,
    /// By CPU.
    pub cpus: Vec<CpuReading>,
    /// Resolution of `busy_ns` and `idle_ns` for one CPU, nanoseconds.
    pub busy_resolution_ns: u64,
    /// Resolution of the kinds for one CPU, nanoseconds.
    pub kinds_resolution_ns: u64,
    /// Where the numbers come from, in words.
    pub source: String,
}

/// CPU time of one thread over the window (its CPU clock, clock_gettime(2), and `/proc/PID/task/TID/schedstat`).
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ThreadReading {
    /// What it does: `send`, `receive`, `request`, `respond`.
    pub role: String,
    /// Its stream.
    pub stream: u32,
    /// Kernel thread id.
    pub tid: u32,
    /// The CPU it was pinned to.
    pub pinned_cpu: Option<u32>,
    /// Time on a CPU, nanoseconds; includes softirq work done in its context.
    pub on_cpu_ns: u64,
    /// Time it was ready to run but waited for a CPU, nanoseconds.
    pub run_queue_wait_ns: Option<u64>,
}

/// What a link counted (`struct rtnl_link_stats64`, include/uapi/linux/if_link.h).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[expect(missing_docs, reason = "the names are those of rtnl_link_stats64")]
pub struct LinkCounters {
    pub rx_packets: u64,
    pub tx_packets: u64,
    pub rx_bytes: u64,
    pub tx_bytes: u64,
    pub rx_errors: u64,
    pub tx_errors: u64,
    pub rx_dropped: u64,
    pub tx_dropped: u64,
    pub multicast: u64,
    pub collisions: u64,
    pub rx_length_errors: u64,
    pub rx_over_errors: u64,
    pub rx_crc_errors: u64,
    pub rx_frame_errors: u64,
    pub rx_fifo_errors: u64,
    pub rx_missed_errors: u64,
    pub tx_aborted_errors: u64,
    pub tx_carrier_errors: u64,
    pub tx_fifo_errors: u64,
    pub tx_heartbeat_errors: u64,
    pub tx_window_errors: u64,
    pub rx_nohandler: u64,
}

/// What the queueing discipline at a link's root, and those below it, counted (`TCA_STATS2`, netlink).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct QdiscCounters {
    /// Packets sent.
    pub packets: u64,
    /// Bytes sent.
    pub bytes: u64,
    /// Packets dropped.
    pub drops: u64,
    /// Packets put back since the driver's ring was full.
    pub requeues: u64,
    /// Times over the limit.
    pub overlimits: u64,
}

/// The link under test over the window.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct LinkReading {
    /// Interface name.
    pub name: String,
    /// Link counters.
    pub counters: LinkCounters,
    /// Queueing discipline; `None` where the link has none that counts.
    pub qdisc: Option<QdiscCounters>,
    /// Driver statistics that changed (`ethtool -S` names), where the driver offers any.
    pub driver: BTreeMap<String, u64>,
}

/// Energy of one RAPL domain over the window.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct EnergyReading {
    /// Domain (`package-0`, `dram` ...).
    pub domain: String,
    /// Energy used, microjoules.
    pub microjoules: u64,
}

/// All that the meter saw on a node during a window.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct MeterReading {
    /// CPU time of the machine.
    pub cpu: MachineCpu,
    /// The link under test, where one is known.
    pub link: Option<LinkReading>,
    /// Protocol counters of the namespace that changed (`/proc/net/snmp`, `netstat`, `snmp6`), as `Tcp.RetransSegs`.
    pub protocol: BTreeMap<String, u64>,
    /// Energy, by domain; empty where the machine does not tell.
    pub energy: Vec<EnergyReading>,
    /// What could not be read, and why.
    pub unavailable: Vec<String>,
}

/// Adds counters of several machines, links or disciplines, field by field.
macro_rules! sums {
    ($kind:ident: $($field:ident),+) => {
        impl $kind {
            /// The sum of both, field by field.
            #[must_use]
            pub fn plus(self, other: Self) -> Self {
                Self { $($field: self.$field.saturating_add(other.$field)),+ }
            }
        }
    };
}

sums!(CpuTime: busy_ns, idle_ns, user_ns, nice_ns, system_ns, irq_ns, softirq_ns, steal_ns);
sums!(QdiscCounters: packets, bytes, drops, requeues, overlimits);
sums!(
    LinkCounters: rx_packets, tx_packets, rx_bytes, tx_bytes, rx_errors, tx_errors, rx_dropped, tx_dropped, multicast,
    collisions, rx_length_errors, rx_over_errors, rx_crc_errors, rx_frame_errors, rx_fifo_errors,
    rx_missed_errors, tx_aborted_errors, tx_carrier_errors, tx_fifo_errors, tx_heartbeat_errors,
    tx_window_errors, rx_nohandler
);
