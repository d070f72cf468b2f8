//! What a record keeps of a node that is a guest, seen from the machine that runs it.

use serde::{Deserialize, Serialize};

/// A guest and its emulator. The CPU figures of the node's reading are the guest's own, on its own clock; those here are
/// what it cost the machine outside. They are never added up.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct GuestRecord {
    /// Name of its profile, or the profile's file.
    pub profile: String,
    /// The emulator, with its version.
    pub emulator: String,
    /// Its instructions are translated by software: absolute rates mean little.
    pub emulated: bool,
    /// Why they are.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub why_emulated: Option<String>,
    /// CPU time of the emulator during the window; `None` where it is not known, or where it is told with the dut, since
    /// both nodes are in one guest.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub host_cpu: Option<HostCpu>,
    /// Lines that came on its console during the trial.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub console: Vec<String>,
}

/// CPU time of an emulator on the machine that runs it, the guest's own work included.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct HostCpu {
    /// Over this time by that machine's clock, nanoseconds.
    pub window_ns: u64,
    /// In the emulator's own code, nanoseconds; by software this includes the guest's whole work.
    pub user_ns: u64,
    /// In that machine's kernel, nanoseconds.
    pub system_ns: u64,
}

impl HostCpu {
    /// CPUs in use, in percent of one.
    pub fn percent(&self) -> f64 {
        crate::summary::percent(self.user_ns + self.system_ns, self.window_ns)
    }
}
