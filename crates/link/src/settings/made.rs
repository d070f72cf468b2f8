//! What an owner makes or removes on a node, rather than turns: links, addresses, neighbours, routes, group memberships,
//! and what a link is under. Each is there or not, so that the journal can bring it back to what it was.

use std::net::IpAddr;

use ipnet::IpNet;
use serde::{Deserialize, Serialize};

use super::part::Values;
use super::value::{mac_bytes, mac_text};
use crate::error::{LinkError, Result};
use crate::{address, links, neighbour, route};
use linerate_sys::multicast;

const ABSENT: &str = "absent";
const THERE: &str = "there";

/// Something that can be there or not. The link that it belongs to is the entry's.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Made {
    /// A link of this name.
    Link {
        /// Its name.
        name: String,
    },
    /// An address.
    Address(IpNet),
    /// A permanent neighbour.
    Neighbour(IpAddr),
    /// A route in the main table.
    Route {
        /// Where it leads.
        destination: IpNet,
        /// Next hop.
        gateway: Option<IpAddr>,
    },
    /// Membership of a link-layer group.
    Group([u8; 6]),
    /// The bridge or bond that the link is under.
    Master,
}

impl Made {
    /// What is there now.
    pub(crate) fn values(&self, link: &str) -> Result<Values> {
        let there = |yes: bool| if yes { THERE.to_owned() } else { ABSENT.to_owned() };
        let value = match self {
            Self::Link { name } => there(links::all()?.iter().any(|link| link.name == *name)),
            Self::Address(address) => {
                let all = links::named(link)?.addresses;
                there(all.iter().any(|it| it.address == address.addr() && it.prefix == address.prefix_len()))
            }
            Self::Neighbour(address) => {
                neighbour::permanent(link, *address)?.map_or_else(|| there(false), |mac| mac_text(&mac))
            }
            Self::Route { destination, gateway } => there(route::is_there(link, *destination, *gateway)?),
            Self::Group(mac) => there(multicast::is_member(link, *mac)?),
            Self::Master => links::master(link)?.unwrap_or_else(|| ABSENT.to_owned()),
        };
        Ok(Values::from([(self.item(), value)]))
    }

    /// Makes it what it was.
    pub(crate) fn put_back(&self, link: &str, before: &Values) -> Result<()> {
        let item = self.item();
        let before = before.get(&item).ok_or_else(|| LinkError::unexpected("put back", item.clone()))?;
        let was_there = before != ABSENT;
        match self {
            // What removed it took it for one that the session had made.
            Self::Link { .. } if was_there => Ok(()),
            Self::Link { name } => links::remove(name),
            Self::Address(address) if was_there => address::add(link, *address),
            Self::Address(address) => address::remove(link, *address),
            Self::Neighbour(address) => match mac_bytes(before) {
                Some(mac) => neighbour::add(link, *address, mac),
                None => neighbour::remove(link, *address),
            },
            Self::Route { destination, gateway } if was_there => route::add(link, *destination, *gateway),
            Self::Route { destination, gateway } => route::remove(link, *destination, *gateway),
            Self::Group(mac) if was_there => Ok(multicast::join(link, *mac)?),
            Self::Group(mac) => Ok(multicast::leave(link, *mac)?),
            Self::Master => links::set_master(link, was_there.then_some(before.as_str())),
        }
    }

    /// What reports call it.
    pub(crate) fn item(&self) -> String {
        match self {
            Self::Link { name } => format!("link {name}"),
            Self::Address(address) => format!("address {address}"),
            Self::Neighbour(address) => format!("neighbour {address}"),
            Self::Route { destination, gateway: None } => format!("route to {destination}"),
            Self::Route { destination, gateway: Some(gateway) } => {
                format!("route to {destination} by {gateway}")
            }
            Self::Group(mac) => format!("group {}", mac_text(mac)),
            Self::Master => "master".to_owned(),
        }
    }
}
