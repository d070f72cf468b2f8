//! Parts of a node that change together. Each is read whole before the first change and put back whole.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::attributes::Attribute;
use super::made::Made;
use super::steering::Steering;
use super::value::{mac_bytes, mac_text};
use super::{features, flags, governor, ipv4, ipv6, irq, parameters, qdisc, sysctls, tunables};
use crate::error::{LinkError, Result};
use crate::ethtool::Group;
use crate::neighbour;

/// What a part holds: text by item.
pub(crate) type Values = BTreeMap<String, String>;

/// A part.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Part {
    Features,
    PrivateFlags,
    Parameters(Group),
    Tunables,
    Attribute(Attribute),
    Steering(Steering),
    IrqAffinity,
    Governor,
    Qdisc,
    /// Path below `/proc/sys`.
    Sysctl(String),
    Ipv6,
    /// Routes of IPv4 that someone made through the link.
    Ipv4Routes,
    /// Permanent neighbours, by address.
    Neighbours,
    /// Something that can be there or not.
    Made(Made),
}

/// What a part goes away with.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Scope {
    Link,
    Namespace,
    Machine,
}

impl Part {
    /// What it is called.
    pub(crate) fn label(&self) -> String {
        match self {
            Self::Features => "feature".to_owned(),
            Self::PrivateFlags => "private flag".to_owned(),
            Self::Parameters(group) => group.name().to_owned(),
            Self::Tunables | Self::Attribute(_) => String::new(),
            Self::Steering(steering) => steering.key().to_owned(),
            Self::IrqAffinity => "irq-affinity".to_owned(),
            Self::Governor => "governor".to_owned(),
            Self::Qdisc => "qdisc".to_owned(),
            Self::Sysctl(_) => "sysctl".to_owned(),
            Self::Ipv6 => "ipv6".to_owned(),
            Self::Ipv4Routes => "ipv4".to_owned(),
            Self::Neighbours => "neighbour".to_owned(),
            Self::Made(_) => String::new(),
        }
    }

    pub(crate) fn scope(&self) -> Scope {
        match self {
            Self::Governor | Self::IrqAffinity => Scope::Machine,
            Self::Sysctl(path) if sysctls::link_of(path).is_some() => Scope::Link,
            Self::Sysctl(path) if sysctls::is_of_network(path) => Scope::Namespace,
            Self::Sysctl(_) => Scope::Machine,
            Self::Made(Made::Link { .. }) => Scope::Namespace,
            _ => Scope::Link,
        }
    }

    /// What it holds now.
    pub(crate) fn values(&self, link: &str) -> Result<Values> {
        match self {
            Self::Features => features::values(link),
            Self::PrivateFlags => flags::values(link),
            Self::Parameters(group) => parameters::values(link, *group),
            Self::Tunables => tunables::values(link),
            Self::Attribute(attribute) => {
                Ok(Values::from([(attribute.key().to_owned(), attribute.read(link)?.0)]))
            }
            Self::Steering(steering) => steering.values(link),
            Self::IrqAffinity => irq::values(link),
            Self::Governor => governor::values(),
            Self::Qdisc => qdisc::values(link),
            Self::Sysctl(path) => sysctls::values(path, link),
            Self::Ipv6 if ipv6::is_there() => ipv6::values(link),
            Self::Ipv6 => Ok(Values::new()),
            Self::Ipv4Routes => ipv4::routes(link),
            Self::Neighbours => {
                let all = neighbour::all_permanent(link)?;
                Ok(all.into_iter().map(|(address, mac)| (address.to_string(), mac_text(&mac))).collect())
            }
            Self::Made(made) => made.values(link),
        }
    }

    /// Writes what differs from `before`.
    pub(crate) fn put_back(&self, link: &str, before: &Values, now: &Values) -> Result<()> {
        match self {
            Self::Features => features::put_back(link, before),
            Self::PrivateFlags => flags::put_back(link, before, now),
            Self::Parameters(group) => parameters::put_back(link, *group, before, now),
            Self::Tunables => tunables::put_back(link, before, now),
            Self::Attribute(attribute) => {
                let value = before.get(attribute.key());
                let lacking = || LinkError::unexpected("put back", format!("no {}", attribute.key()));
                attribute.write(link, value.ok_or_else(lacking)?)
            }
            Self::Steering(steering) => steering.put_back(link, before, now),
            Self::IrqAffinity => irq::put_back(link, before),
            Self::Governor => governor::put_back(before, now),
            Self::Qdisc => qdisc::put_back(link, before, now),
            Self::Sysctl(path) => sysctls::put_back(path, link, before),
            Self::Ipv6 => ipv6::put_back(link, before, now),
            Self::Ipv4Routes => ipv4::put_back_routes(link, before, now),
            Self::Neighbours => put_back_neighbours(link, before, now),
            Self::Made(made) => made.put_back(link, before),
        }
    }
}

/// Adds what is missing; nothing is taken away.
fn put_back_neighbours(link: &str, before: &Values, now: &Values) -> Result<()> {
    let missing = before.iter().filter(|(address, mac)| now.get(*address) != Some(*mac));
    let mut both = missing.filter_map(|(address, mac)| Some((address.parse().ok()?, mac_bytes(mac)?)));
    both.try_for_each(|(address, mac)| neighbour::add(link, address, mac))
}
