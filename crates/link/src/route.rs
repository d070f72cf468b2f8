//! The way to an address, as the kernel would send; and routes made by hand.

use std::net::IpAddr;

use ipnet::IpNet;
use netlink_packet_core::{DecodeError, NLM_F_CREATE, NLM_F_EXCL};
use netlink_packet_route::AddressFamily;
use netlink_packet_route::RouteNetlinkMessage as Message;
use netlink_packet_route::route::{RouteAddress, RouteAttribute, RouteMessage, RouteMetric};

use crate::error::{LinkError, Result};
use crate::ethtool::attribute::Attributes;
use crate::links;
use crate::raw::{Raw, ip_bytes, push_attribute};
use crate::rtnl::Rtnl;

const RTM_NEWROUTE: u16 = 24;
const RTM_DELROUTE: u16 = 25;
const RTM_GETROUTE: u16 = 26;
/// `struct rtmsg` (linux/rtnetlink.h).
const RTMSG: usize = 12;
const RT_TABLE_MAIN: u8 = 254;
const RT_SCOPE_LINK: u8 = 253;
const RTPROT_BOOT: u8 = 3;
const RTN_UNICAST: u8 = 1;
const RTA_DST: u16 = 1;
const RTA_OIF: u16 = 4;
const RTA_GATEWAY: u16 = 5;

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

/// Adds a route by a link to the main table.
///
/// # Errors
/// [`LinkError::NoSuchLink`], or the kernel's refusal (`EEXIST`; `ENETUNREACH` for a next hop that is not on the link).
pub fn add(link: &str, destination: IpNet, gateway: Option<IpAddr>) -> Result<()> {
    let mut rtnl = Rtnl::open()?;
    let payload = by_hand(links::index_of(&mut rtnl, link)?, destination, gateway);
    let operation = format!("add a route to {destination} by {link}");
    rtnl.raw_request(&operation, Raw { kind: RTM_NEWROUTE, payload }, NLM_F_CREATE | NLM_F_EXCL)
}

/// Removes such a route.
///
/// # Errors
/// [`LinkError::NoSuchLink`], or the kernel's refusal (`ESRCH` where there is none).
pub fn remove(link: &str, destination: IpNet, gateway: Option<IpAddr>) -> Result<()> {
    let mut rtnl = Rtnl::open()?;
    let payload = by_hand(links::index_of(&mut rtnl, link)?, destination, gateway);
    let operation = format!("remove the route to {destination} by {link}");
    rtnl.raw_request(&operation, Raw { kind: RTM_DELROUTE, payload }, 0)
}

/// Whether the main table has such a route.
pub(crate) fn is_there(link: &str, destination: IpNet, gateway: Option<IpAddr>) -> Result<bool> {
    let mut rtnl = Rtnl::open()?;
    let index = links::index_of(&mut rtnl, link)?;
    let mut payload = vec![0; RTMSG];
    payload[0] = ip_bytes(destination.addr()).0;
    let operation = format!("list routes of {link}");
    for message in rtnl.raw_dump(&operation, Raw { kind: RTM_GETROUTE, payload })? {
        let matches = is_it(&message.payload, index, destination, gateway)
            .map_err(|error| LinkError::unexpected(&operation, error.to_string()))?;
        if matches {
            return Ok(true);
        }
    }
    Ok(false)
}

fn is_it(
    payload: &[u8],
    index: u32,
    destination: IpNet,
    gateway: Option<IpAddr>,
) -> std::result::Result<bool, DecodeError> {
    let [_, prefix, _, _, table, ..] = *payload else { return Err(DecodeError::from("a short message")) };
    let attributes = Attributes::parse(payload.get(RTMSG..).unwrap_or_default())?;
    let bytes = ip_bytes(destination.network()).1;
    let there = attributes.bytes(RTA_DST).unwrap_or_default();
    let same_destination = there == bytes || there.is_empty() && bytes.iter().all(|byte| *byte == 0);
    let gateway = gateway.map(|gateway| ip_bytes(gateway).1);
    Ok(table == RT_TABLE_MAIN
        && prefix == destination.prefix_len()
        && same_destination
        && attributes.u32(RTA_OIF)? == Some(index)
        && attributes.bytes(RTA_GATEWAY) == gateway.as_deref())
}

fn by_hand(index: u32, destination: IpNet, gateway: Option<IpAddr>) -> Vec<u8> {
    let (family, bytes) = ip_bytes(destination.network());
    let on_link = gateway.is_none() && destination.addr().is_ipv4();
    let scope = if on_link { RT_SCOPE_LINK } else { 0 };
    let prefix = destination.prefix_len();
    let mut payload = vec![family, prefix, 0, 0, RT_TABLE_MAIN, RTPROT_BOOT, scope, RTN_UNICAST, 0, 0, 0, 0];
    push_attribute(&mut payload, RTA_DST, &bytes);
    push_attribute(&mut payload, RTA_OIF, &index.to_ne_bytes());
    if let Some(gateway) = gateway {
        push_attribute(&mut payload, RTA_GATEWAY, &ip_bytes(gateway).1);
    }
    payload
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
