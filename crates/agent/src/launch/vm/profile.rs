//! Profiles: which NIC a guest has, and what it needs around it.

use std::collections::BTreeMap;
use std::path::Path;

use serde::{Deserialize, Serialize};

use super::error::{Result, VmError};

macro_rules! shipped {
    ($($name:literal),+ $(,)?) => {
        [$(($name, include_str!(concat!("../../../../../profiles/", $name, ".toml")))),+]
    };
}

/// The profiles of the folder `profiles`, by name.
const SHIPPED: [(&str, &str); 13] = shipped![
    "e1000",
    "e1000e",
    "e100",
    "tulip",
    "pcnet",
    "8139cp",
    "ne2k_pci",
    "vmxnet3",
    "virtio-net",
    "igb",
    "toolbox",
    "usb-cdc",
    "usb-rndis",
];

/// A guest with one NIC under test.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct Profile {
    /// Its name, or the path of its file.
    #[serde(skip)]
    pub name: String,
    /// The card, in a few words.
    pub about: String,
    /// Other names of the profile.
    #[serde(default)]
    pub aliases: Vec<String>,
    /// QEMU's device (`qemu-system-x86_64 -device help`).
    pub nic: String,
    /// The kernel's driver for it.
    pub driver: String,
    /// Properties of the device (`qemu-system-x86_64 -device e1000,help`).
    #[serde(default)]
    pub properties: BTreeMap<String, String>,
    /// Devices that come before it, such as the bus it is on (`qemu-xhci`).
    #[serde(default)]
    pub devices: Vec<String>,
    /// What to write to which file below `/sys` once the modules are loaded.
    #[serde(default)]
    pub writes: BTreeMap<String, String>,
    /// Modules to load, what they need comes along.
    pub modules: Vec<String>,
    /// Modules to load where the kernel has them.
    #[serde(default)]
    pub optional_modules: Vec<String>,
    /// Parameters of modules, as modprobe(8) takes them.
    #[serde(default)]
    pub parameters: BTreeMap<String, String>,
    /// More words on the kernel's command line.
    #[serde(default)]
    pub kernel_arguments: Vec<String>,
    /// Pairs of queues, where the wire is a tap and the device takes a number; other devices have as many as CPUs.
    #[serde(default = "one")]
    pub queues: u32,
    /// CPUs of the guest.
    #[serde(default = "two")]
    pub cpus: u32,
    /// Memory of the guest, MiB.
    #[serde(default = "enough_memory")]
    pub memory_mib: u32,
    /// QEMU's machine: `pc`, or `q35`, which has PCI Express.
    #[serde(default = "plain_machine")]
    pub machine: String,
    /// Kernel version or folder; the newest where none is named.
    #[serde(default)]
    pub kernel: Option<String>,
    /// How the guest's instructions are run.
    #[serde(default)]
    pub acceleration: WantedAcceleration,
}

/// How the instructions of a guest shall be run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum WantedAcceleration {
    /// By KVM where a guest really boots with it, else by software.
    #[default]
    Auto,
    /// By KVM.
    Kvm,
    /// By software.
    Software,
}

const fn one() -> u32 {
    1
}

const fn two() -> u32 {
    2
}

const fn enough_memory() -> u32 {
    512
}

fn plain_machine() -> String {
    "pc".to_owned()
}

impl Profile {
    /// The shipped profile of this name, or that of a file.
    ///
    /// # Errors
    /// There is neither, or the file holds no profile.
    pub fn find(name: &str) -> Result<Self> {
        let all = shipped()?;
        let known = all.iter().map(|profile| profile.name.clone()).collect();
        let named =
            |profile: &Self| profile.name == name || profile.aliases.iter().any(|alias| alias == name);
        if let Some(profile) = all.into_iter().find(named) {
            return Ok(profile);
        }
        if !Path::new(name).is_file() {
            return Err(VmError::NoProfile { name: name.to_owned(), known });
        }
        let text =
            std::fs::read_to_string(name).map_err(|cause| VmError::file("read profile", name, cause))?;
        Self::parse(name, &text)
    }

    /// Reads a profile's text.
    ///
    /// # Errors
    /// What is wrong, and on which line.
    pub fn parse(name: &str, text: &str) -> Result<Self> {
        let bad = |why: String| VmError::BadProfile { name: name.to_owned(), why };
        let mut profile: Self = toml::from_str(text).map_err(|error| bad(error.to_string()))?;
        profile.name = name.to_owned();
        profile.check().map_err(bad)?;
        Ok(profile)
    }

    /// A comma would end a value on QEMU's command line and begin another.
    fn check(&self) -> std::result::Result<(), String> {
        let plain = |text: &str| {
            !text.is_empty() && text.bytes().all(|b| b.is_ascii_alphanumeric() || b"-_.:/+@".contains(&b))
        };
        let properties = self.properties.iter().flat_map(|(key, value)| [key, value]);
        for text in
            [&self.nic, &self.machine].into_iter().chain(properties).chain(&self.modules).chain(&self.devices)
        {
            if !plain(text) {
                return Err(format!("'{text}' has characters that no name or value here can have"));
            }
        }
        for (what, value, most) in
            [("cpus", self.cpus, 64), ("queues", self.queues, 64), ("memory-mib", self.memory_mib, 65_536)]
        {
            if value == 0 || value > most {
                return Err(format!("{what} = {value}: it takes 1 to {most}"));
            }
        }
        if let Some(path) = self.writes.keys().find(|path| !path.starts_with("/sys/")) {
            return Err(format!("writes: '{path}' is not below /sys"));
        }
        if self.memory_mib < 256 {
            return Err(format!("memory-mib = {}: the kernel and linerate need 256", self.memory_mib));
        }
        Ok(())
    }
}

/// All shipped profiles.
///
/// # Errors
/// Never, unless a shipped file is wrong.
pub fn shipped() -> Result<Vec<Profile>> {
    SHIPPED.iter().map(|(name, text)| Profile::parse(name, text)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_shipped_profiles_are_right_and_their_names_differ() {
        let all = shipped().unwrap();
        let mut names: Vec<_> = all.iter().flat_map(|p| p.aliases.iter().chain([&p.name])).collect();
        let count = names.len();
        names.sort();
        names.dedup();
        assert_eq!(names.len(), count);
        assert!(all.iter().all(|p| p.modules.contains(&p.driver.replace('-', "_")) || p.driver == "8139cp"));
    }

    #[test]
    fn profiles_are_found_by_name_alias_and_path() {
        assert_eq!(Profile::find("e1000").unwrap().driver, "e1000");
        assert_eq!(Profile::find("pcnet32").unwrap().name, "pcnet");
        let error = Profile::find("e2000").unwrap_err().to_string();
        assert!(error.starts_with("no profile e2000: there are e1000, "), "{error}");
    }

    #[test]
    fn a_wrong_profile_is_refused_with_its_reason() {
        let base = "about = 'x'\nnic = 'e1000'\ndriver = 'e1000'\nmodules = ['e1000']\n";
        assert!(Profile::parse("p", base).is_ok());
        for (line, words) in [
            ("cpus = 0\n", "it takes 1 to 64"),
            ("memory-mib = 8\n", "need 256"),
            ("nick = 1\n", "unknown field"),
            ("properties = { a = 'b,c' }\n", "'b,c'"),
            ("acceleration = 'warp'\n", "unknown variant"),
        ] {
            let error = Profile::parse("p", &format!("{base}{line}")).unwrap_err().to_string();
            assert!(error.contains(words), "{error}");
        }
    }
}
