//! A guest from the inside: linerate is its first process and its only program.
//!
//! The launcher writes a [`GuestPlan`] in the guest's initramfs; [`init`] carries it out and then starts an agent for each
//! end of the wire that is in the guest, each on a virtio-serial port of its own.

pub mod init;
pub mod modprobe;

use std::collections::BTreeMap;

use linerate_model::trial::Side;
use serde::{Deserialize, Serialize};

/// Where the plan is in the guest.
pub const PLAN: &str = "/plan.json";
/// Where the program is in the guest.
pub const PROGRAM: &str = "/linerate";
/// The word that makes the program the guest's first process.
pub const COMMAND: &str = "guest";
/// The namespace in the guest that has the other end of the wire.
pub const PEER_NETNS: &str = "peer";
/// What the kernel runs when it asks for a module (`kernel.modprobe`): a link to the program.
pub const MODPROBE: &str = "/sbin/modprobe";
/// Port of the prompt.
pub const PROMPT_PORT: &str = "linerate.prompt";

/// What the first process of a guest has to do.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct GuestPlan {
    /// The guest's host name.
    pub host_name: String,
    /// Modules to load, in this order.
    pub modules: Vec<PlannedModule>,
    /// What to write to which file, once it is there.
    pub writes: BTreeMap<String, String>,
    /// The ends of the wire that are in the guest.
    pub ends: Vec<PlannedEnd>,
}

/// A module to load.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PlannedModule {
    /// Its name, with underscores.
    pub name: String,
    /// Its file in the guest.
    pub file: String,
    /// Its parameters.
    pub parameters: String,
    /// When it is loaded.
    pub load: Load,
    /// By which names the kernel may ask for it.
    pub aliases: Vec<String>,
}

/// When a module is loaded.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Load {
    /// At the start, and the guest is of no use without it.
    Needed,
    /// At the start, where that goes.
    Wanted,
    /// When the kernel asks for it.
    WhenAsked,
}

/// An end of the wire.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PlannedEnd {
    /// Whether it is the dut's or the peer's.
    pub side: Side,
    /// Hardware address of its NIC, as `aa:bb:..`.
    pub mac: String,
    /// In the namespace [`PEER_NETNS`] instead of the first one.
    pub apart: bool,
}

/// Name of the virtio-serial port of an agent.
pub const fn port_of(side: Side) -> &'static str {
    match side {
        Side::Dut => "linerate.dut",
        Side::Peer => "linerate.peer",
    }
}

/// Hardware address of an emulated NIC: locally administered, and told apart by its end.
pub const fn mac_of(side: Side) -> &'static str {
    match side {
        Side::Dut => "02:6c:69:6e:65:01",
        Side::Peer => "02:6c:69:6e:65:02",
    }
}
