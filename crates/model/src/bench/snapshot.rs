//! Every counter that has to do with a link, at one moment; absolute values.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

/// Counters by name. A group that the driver or the kernel does not have is empty.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Snapshot {
    /// `rtnl_link_stats64` fields (`linux/if_link.h`): `rx_packets`, `tx_bytes` ...
    pub link: BTreeMap<String, u64>,
    /// The same from `/proc/net/dev`, by the same names as far as that file has them; a column that adds up several is
    /// named by all of them: `rx_dropped+rx_missed_errors` (dev_seq_printf_stats in net/core/net-procfs.c).
    pub proc_net_dev: BTreeMap<String, u64>,
    /// `ethtool -S`.
    pub driver: BTreeMap<String, u64>,
    /// Standard groups of ethtool netlink, `eth-mac.FramesTransmittedOK`, `pause.tx_pause_frames` ...
    pub standard: BTreeMap<String, u64>,
    /// Per-queue statistics of netdev netlink, `rx-0.packets` ...
    pub queues: BTreeMap<String, u64>,
    /// `/proc/net/snmp`, `snmp6` and `netstat` of the namespace: `Ip.InHdrErrors`, `Udp6.InCsumErrors`, `TcpExt.TCPLostRetransmit`.
    pub protocols: BTreeMap<String, u64>,
    /// `/proc/net/softnet_stat`, summed over CPUs: `processed`, `dropped`, `time_squeeze`.
    pub softnet: BTreeMap<String, u64>,
    /// Interrupts of the link since boot, summed over CPUs, by the name of their action in `/proc/interrupts`.
    pub interrupts: BTreeMap<String, u64>,
    /// How often the link lost or got its carrier; `None` where the kernel does not tell.
    pub carrier_changes: Option<u64>,
    /// `CLOCK_MONOTONIC`, nanoseconds.
    pub taken_ns: u64,
    /// What could not be read, and why, though there may be something.
    #[serde(default)]
    pub unavailable: Vec<String>,
}

/// A line of the kernel's log.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct LogLine {
    /// Sequence number.
    pub sequence: u64,
    /// Level, 0 (emergency) to 7 (debug).
    pub level: u8,
    /// Microseconds since boot.
    pub time_us: u64,
    /// Text, continuation lines joined with line feeds.
    pub text: String,
}
