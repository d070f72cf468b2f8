//! A link in full: what rtnetlink, ethtool, `/sys` and `/proc` tell of it.

use std::collections::BTreeMap;

use linerate_model::environment::{Feature, LinkInfo};
use serde::{Deserialize, Serialize};

use crate::error::{LinkError, Result};
use crate::ethtool::{self, Ethtool, FeatureState, Group, Parameter, Physical, Rss};
use crate::{links, settings, sysfs};

/// Everything about a link that `linerate links` shows. What the driver does not have is empty or `None`, and
/// `link.unavailable` has the kernel's reason.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Inventory {
    /// What goes into a record.
    pub link: LinkInfo,
    /// Port, modes and negotiation.
    pub physical: Option<Physical>,
    /// Features with what is wanted and what the hardware can.
    pub features: BTreeMap<String, FeatureState>,
    /// Rings, channels, coalescing and pause, by [`Group::name`] and then by parameter.
    pub parameters: BTreeMap<String, BTreeMap<String, Parameter>>,
    /// Receive-side scaling.
    pub rss: Option<Rss>,
    /// Private flags of the driver.
    pub private_flags: BTreeMap<String, bool>,
    /// RPS and XPS by queue and file.
    pub steering: BTreeMap<String, String>,
    /// How NAPI polls it, by the key of the setting.
    #[serde(default)]
    pub napi: BTreeMap<String, String>,
    /// The kernel's counters since the link was made (`rtnl_link_stats64`, linux/if_link.h).
    pub counters: BTreeMap<String, u64>,
    /// The driver's own counters, in its order.
    pub statistics: Vec<(String, u64)>,
}

/// The part of a link's inventory that goes into a record's environment.
///
/// # Errors
/// [`LinkError::NoSuchLink`], or a failure that is not merely a lack of the driver.
pub fn describe(name: &str) -> Result<LinkInfo> {
    Ok(Collector::new(name)?.essential()?.inventory.link)
}

/// A link in full.
///
/// # Errors
/// As [`describe`].
pub fn in_full(name: &str) -> Result<Inventory> {
    Ok(Collector::new(name)?.essential()?.rest()?.inventory)
}

/// All links in full.
///
/// # Errors
/// As [`describe`]; a link that goes away meanwhile is left out.
pub fn all() -> Result<Vec<Inventory>> {
    let mut inventories = Vec::new();
    for link in links::all()? {
        match in_full(&link.name) {
            Ok(inventory) => inventories.push(inventory),
            Err(LinkError::NoSuchLink { .. }) => {}
            Err(error) => return Err(error),
        }
    }
    Ok(inventories)
}

struct Collector {
    ethtool: Ethtool,
    inventory: Inventory,
}

impl Collector {
    fn new(name: &str) -> Result<Self> {
        let inventory = Inventory { link: links::named(name)?, ..Inventory::default() };
        Ok(Self { ethtool: Ethtool::open()?, inventory })
    }

    fn name(&self) -> String {
        self.inventory.link.name.clone()
    }

    /// Keeps what is there, notes what the driver lacks, and passes on what is wrong.
    fn optional<T>(&mut self, what: &str, result: Result<T>) -> Result<Option<T>> {
        match result {
            Ok(value) => Ok(Some(value)),
            Err(error) if error.is_unsupported() || error.is_forbidden() => {
                self.inventory.link.unavailable.push(format!("{what}: {}", error.cause_text()));
                Ok(None)
            }
            Err(error) if error.raw_os_error() == Some(nix::libc::ENODEV) => {
                Err(links::named(&self.name()).err().unwrap_or(error))
            }
            Err(error) => Err(error),
        }
    }

    fn essential(mut self) -> Result<Self> {
        let name = self.name();
        let features = self.ethtool.features(&name);
        self.inventory.features = self.optional("features", features)?.unwrap_or_default();
        let physical = self.ethtool.physical(&name);
        self.inventory.physical = self.optional("link modes", physical)?;
        let driver = self.optional("driver information", ethtool::driver_info(&name))?.unwrap_or_default();
        let slot = sysfs::slot(&name);
        let link = &mut self.inventory.link;
        let physical = self.inventory.physical.as_ref();
        let told = |text: String| if text.is_empty() { None } else { Some(text) };
        link.speed_mbit = physical.and_then(|physical| physical.speed_mbit);
        link.duplex = physical.and_then(|physical| physical.duplex.clone());
        link.driver = told(driver.driver);
        link.driver_version = told(driver.version);
        link.firmware = told(driver.firmware);
        link.bus = told(driver.bus);
        link.pci_speed = slot.pci_speed;
        link.pci_lanes = slot.pci_lanes;
        link.numa_node = slot.numa_node;
        link.irqs = sysfs::irqs(&name)?;
        let feature = |state: &FeatureState| Feature { on: state.active, changeable: state.changeable };
        link.features =
            self.inventory.features.iter().map(|(name, state)| (name.clone(), feature(state))).collect();
        Ok(self)
    }

    fn rest(mut self) -> Result<Self> {
        let name = self.name();
        for group in Group::ALL {
            let parameters = self.ethtool.parameters(&name, group);
            if let Some(parameters) = self.optional(group.name(), parameters)? {
                self.inventory.parameters.insert(group.name().to_owned(), parameters);
            }
        }
        let rss = self.ethtool.rss(&name);
        self.inventory.rss = self.optional("receive-side scaling", rss)?;
        let flags = self.ethtool.private_flags(&name);
        self.inventory.private_flags = self.optional("private flags", flags)?.unwrap_or_default();
        let statistics = ethtool::statistics(&name);
        self.inventory.statistics = self.optional("driver statistics", statistics)?.unwrap_or_default();
        self.inventory.steering = sysfs::steering(&name);
        self.inventory.napi = settings::napi(&name);
        self.inventory.counters = links::counters(&name)?;
        Ok(self)
    }
}
