//! A case of the catalogue: what it does, what must hold, and the code that judges it.

use linerate_model::qualification::Level;

use crate::bench::Bench;
use crate::trouble::Trouble;

/// One case.
#[derive(Debug)]
pub struct Case {
    /// `CSUM-03`.
    pub id: &'static str,
    /// In a few words.
    pub title: &'static str,
    /// What it does.
    pub does: &'static str,
    /// What must hold.
    pub holds: &'static str,
    /// When it is skipped; empty where it never is.
    pub skipped: &'static str,
    /// Where the idea comes from.
    pub source: &'static str,
    /// What it needs to be allowed.
    pub privilege: Privilege,
    /// Where it means something.
    pub shown_on: &'static str,
    /// From which level on it is run.
    pub level: Level,
    /// It takes the link down, or changes it so that others on it are disturbed.
    pub disruptive: bool,
    /// It can do harm, and is run only where that is allowed.
    pub opt_in: Option<OptIn>,
    /// The injector's faults that it must catch.
    pub faults: &'static [&'static str],
    /// The code.
    pub run: Run,
}

/// The code of a case.
#[derive(Debug, Clone, Copy)]
pub enum Run {
    /// Runs once for each variant; no variants are one run without a name.
    Offered {
        /// Names of the variants: `v4_udp`.
        variants: &'static [&'static str],
        /// Seconds that each may take on a fast machine.
        limit_s: u32,
        /// Judges one variant ([`Bench::variant`]).
        judge: fn(&mut Bench) -> Result<(), Trouble>,
    },
    /// The suite does not have it, with the reason.
    NotOffered(&'static str),
}

/// What a case needs to be allowed, on both nodes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Privilege {
    /// Nothing.
    None,
    /// Raw packets (`CAP_NET_RAW`).
    Raw,
    /// Changing links as well (`CAP_NET_ADMIN`).
    Admin,
    /// Loading BPF programs (`CAP_BPF` in the first user namespace).
    Bpf,
    /// Root in the first namespaces.
    Root,
}

impl Privilege {
    /// In words.
    pub fn words(self) -> &'static str {
        match self {
            Self::None => "none",
            Self::Raw => "CAP_NET_RAW in the namespace",
            Self::Admin => "CAP_NET_ADMIN and CAP_NET_RAW in the namespace",
            Self::Bpf => "CAP_BPF and CAP_NET_ADMIN in the first user namespace",
            Self::Root => "root in the first namespaces",
        }
    }
}

/// Harm that must be allowed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum OptIn {
    /// Writes to the NIC's own memory.
    Nvm,
    /// Suspends the machine.
    Pm,
    /// Resets or removes the PCI function.
    PciReset,
    /// Writes firmware.
    Firmware,
}

impl OptIn {
    /// All.
    pub const ALL: [Self; 4] = [Self::Nvm, Self::Pm, Self::PciReset, Self::Firmware];

    /// As `--allow` takes it.
    pub fn word(self) -> &'static str {
        match self {
            Self::Nvm => "nvm",
            Self::Pm => "pm",
            Self::PciReset => "pci-reset",
            Self::Firmware => "firmware",
        }
    }
}

impl std::str::FromStr for OptIn {
    type Err = String;

    fn from_str(word: &str) -> Result<Self, Self::Err> {
        let known = || Self::ALL.map(Self::word).join(", ");
        Self::ALL
            .into_iter()
            .find(|one| one.word() == word)
            .ok_or_else(|| format!("'{word}' cannot be allowed; there are: {}", known()))
    }
}

impl Case {
    /// Its area: `csum`.
    pub fn area(&self) -> String {
        self.id.split('-').next().unwrap_or(self.id).to_lowercase()
    }

    /// Names of its variants; one without a name where it has none.
    pub fn variants(&self) -> &'static [&'static str] {
        match self.run {
            Run::Offered { variants: [], .. } | Run::NotOffered(_) => &[""],
            Run::Offered { variants, .. } => variants,
        }
    }

    /// Name of a variant as globs and KTAP have it: `csum.csum-03.v6_udp`.
    pub fn name(&self, variant: &str) -> String {
        let dot = if variant.is_empty() { "" } else { "." };
        format!("{}.{}{dot}{variant}", self.area(), self.id.to_lowercase())
    }
}
