//! The way to an address, as the kernel would send.

use std::net::IpAddr;

use netlink_packet_route::AddressFamily;
use netlink_packet_route::RouteNetlinkMessage as Message;
use netlink_packet_route::route::{RouteAddress, RouteAttribute, RouteMessage, RouteMetric};

use crate::error::{LinkError, Result};
use crate::links;
use crate::rtnl::Rtnl;

/// How packets to a destination leave.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Route {
    /// The link they leave by; `lo` for an address of this namespace itself.
    pub link: String,
    /// The source address that the kernel picks, where it says so.
    pub source: Option<IpAddr>,
    /// The next hop; `None` when the destination is on the link.
    pub gateway: Option<IpAddr>,
    /// Largest packet, bytes: the route's own limit, else the link's MTU.
    pub mtu: u32,
}

/// Asks the kernel for the route to `destination` (`RTM_GETROUTE`, rtnetlink(7)).
///
/// # Errors
/// [`LinkError::NoRoute`] with the kernel's answer.
pub fn route_to(destination: IpAddr) -> Result<Route> {
    lookup(destination, None)
}

/// The same, over a given link: which is what a link-local destination needs.
///
/// # Errors
/// [`LinkError::NoSuchLink`] or [`LinkError::NoRoute`].
pub fn route_over(destination: IpAddr, link: &str) -> Result<Route> {
    lookup(destination, Some(link))
}

fn lookup(destination: IpAddr, link: Option<&str>) -> Result<Route> {
    let mut rtnl = Rtnl::open()?;
    let mut request = RouteMessage::default();
    (request.header.address_family, request.header.destination_prefix_length) = match destination {
        IpAddr::V4(_) => (AddressFamily::Inet, 32),
        IpAddr::V6(_) => (AddressFamily::Inet6, 128),
    };
    request.attributes.push(RouteAttribute::Destination(destination.into()));
    if let Some(link) = link {
        request.attributes.push(RouteAttribute::Oif(links::index_of(&mut rtnl, link)?));
    }
    let operation = format!("find the route to {destination}");
    let replies = match rtnl.request(&operation, Message::GetRoute(request), 0) {
        Err(LinkError::Netlink(cause)) if cause.refusal().is_some() => {
            return Err(LinkError::NoRoute { destination, cause });
        }
        other => other?,
    };
    let reply = replies
        .iter()
        .find_map(|reply| if let Message::NewRoute(route) = reply { Some(route) } else { None })
        .ok_or_else(|| LinkError::unexpected(&operation, "no route in it"))?;
    describe(&operation, reply)
}

fn describe(operation: &str, message: &RouteMessage) -> Result<Route> {
    let (mut index, mut source, mut gateway, mut mtu) = (None, None, None, None);
    for attribute in &message.attributes {
        match attribute {
            RouteAttribute::Oif(oif) => index = Some(*oif),
            RouteAttribute::PrefSource(address) => source = ip(address),
            RouteAttribute::Gateway(address) => gateway = ip(address),
            RouteAttribute::Metrics(metrics) => mtu = metrics.iter().find_map(mtu_of),
            _ => {}
        }
    }
    let index = index.ok_or_else(|| LinkError::unexpected(operation, "a route without a link"))?;
    let link = links::name_of(index)?
        .ok_or_else(|| LinkError::unexpected(operation, format!("its link {index} is gone")))?;
    let mtu = match mtu {
        Some(mtu) => mtu,
        None => links::named(&link)?.mtu,
    };
    Ok(Route { link, source, gateway, mtu })
}

fn mtu_of(metric: &RouteMetric) -> Option<u32> {
    if let RouteMetric::Mtu(mtu) = metric { Some(*mtu) } else { None }
}

fn ip(address: &RouteAddress) -> Option<IpAddr> {
    match address {
        RouteAddress::Inet(address) => Some((*address).into()),
        RouteAddress::Inet6(address) => Some((*address).into()),
        _ => None,
    }
}
