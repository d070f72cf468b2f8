//! Acts upon links and the devices behind them.

use std::net::IpAddr;

use serde::{Deserialize, Serialize};

use super::frame::MacAddress;

/// Something to do with links. New links carry the prefix `lr-`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "act", rename_all = "kebab-case")]
pub enum LinkAct {
    /// Up or down. A link that was up is up again at the session's end.
    SetUp {
        /// The link.
        link: String,
        /// Up.
        up: bool,
    },
    /// Changes the hardware address; the old one is put back.
    SetMac {
        /// The link.
        link: String,
        /// The new address.
        mac: MacAddress,
    },
    /// Sets or clears `IFF_PROMISC`.
    SetPromiscuous {
        /// The link.
        link: String,
        /// On.
        on: bool,
    },
    /// Sets or clears `IFF_ALLMULTI`.
    SetAllMulticast {
        /// The link.
        link: String,
        /// On.
        on: bool,
    },
    /// Makes a link on top of, or beside, another.
    Make {
        /// Its name.
        name: String,
        /// What it is.
        kind: LinkKind,
    },
    /// Removes a link that the session made.
    Remove {
        /// Its name.
        name: String,
    },
    /// Puts a link under a bridge or bond, or takes it out (`None`).
    SetMaster {
        /// The link.
        link: String,
        /// The bridge or bond.
        master: Option<String>,
    },
    /// Adds an address.
    AddAddress {
        /// The link.
        link: String,
        /// The address.
        address: IpAddr,
        /// Prefix length, bits.
        prefix: u8,
    },
    /// Removes an address.
    RemoveAddress {
        /// The link.
        link: String,
        /// The address.
        address: IpAddr,
        /// Prefix length, bits.
        prefix: u8,
    },
    /// Adds a permanent neighbour.
    AddNeighbour {
        /// The link.
        link: String,
        /// Its address.
        address: IpAddr,
        /// Its hardware address.
        mac: MacAddress,
    },
    /// Adds a route by a link.
    AddRoute {
        /// The link.
        link: String,
        /// Destination.
        destination: IpAddr,
        /// Prefix length, bits.
        prefix: u8,
        /// Next hop.
        gateway: Option<IpAddr>,
    },
    /// Joins a multicast group at the link layer, as if a program did.
    JoinGroup {
        /// The link.
        link: String,
        /// The group.
        mac: MacAddress,
    },
    /// Leaves it.
    LeaveGroup {
        /// The link.
        link: String,
        /// The group.
        mac: MacAddress,
    },
    /// Waits until the link has carrier, at most `limit_ns`.
    AwaitCarrier {
        /// The link.
        link: String,
        /// Nanoseconds.
        limit_ns: u64,
    },
}

/// What a new link is.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "kebab-case")]
pub enum LinkKind {
    /// A VLAN of a link.
    Vlan {
        /// The link below.
        link: String,
        /// VLAN id.
        id: u16,
        /// TPID: 0x8100 or 0x88a8.
        protocol: u16,
    },
    /// A macvlan (bridge mode) of a link.
    Macvlan {
        /// The link below.
        link: String,
        /// Its address.
        mac: MacAddress,
    },
    /// A bridge.
    Bridge,
    /// A bond, active-backup.
    Bond,
    /// A pair of virtual links.
    Veth {
        /// Name of the other end.
        other: String,
    },
    /// A VXLAN over a link.
    Vxlan {
        /// The link below.
        link: String,
        /// Network identifier.
        id: u32,
        /// This end.
        local: IpAddr,
        /// The other end.
        remote: IpAddr,
        /// UDP port.
        port: u16,
        /// Checksums in the outer UDP header.
        checksum: bool,
    },
    /// A GRE, IPIP or SIT tunnel.
    Tunnel {
        /// `gre`, `ipip` or `sit`.
        protocol: String,
        /// The link below.
        link: String,
        /// This end.
        local: IpAddr,
        /// The other end.
        remote: IpAddr,
    },
}

/// Something to do with the device behind a link.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "act", rename_all = "kebab-case")]
pub enum DeviceAct {
    /// Takes the driver off the device (`/sys/bus/*/drivers/*/unbind`).
    Unbind {
        /// Bus address.
        device: String,
    },
    /// Gives the device to the driver (`bind`).
    Bind {
        /// Bus address.
        device: String,
        /// The driver.
        driver: String,
    },
    /// Unloads a module (delete_module(2)).
    Unload {
        /// The module.
        module: String,
    },
    /// Loads a module, with its parameters; the file that the kernel's modules.dep names, or the guest's own copy.
    Load {
        /// The module.
        module: String,
        /// Its parameters.
        parameters: String,
    },
    /// Resets the PCI function (`reset`).
    Reset {
        /// Bus address.
        device: String,
        /// Method to choose first (`reset_method`); `None` is the kernel's choice.
        method: Option<String>,
    },
    /// Removes a PCI device (`remove`).
    Remove {
        /// Bus address.
        device: String,
    },
    /// Looks for PCI devices again (`/sys/bus/pci/rescan`).
    Rescan,
    /// Suspends the machine to memory, and wakes it by its clock.
    Suspend {
        /// Seconds asleep.
        seconds: u32,
        /// `pm_test` level (`devices`, `platform` ...); `None` is a real suspend.
        test: Option<String>,
    },
    /// Runs the driver's self-test (`ethtool -t`).
    SelfTest {
        /// The link.
        link: String,
        /// The offline test, which takes the link down.
        offline: bool,
    },
}
