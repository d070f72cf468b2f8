//! Addresses of links.

use std::net::IpAddr;

use ipnet::IpNet;
use linerate_model::environment::LinkAddress;
use netlink_packet_core::{NLM_F_CREATE, NLM_F_EXCL};
use netlink_packet_route::AddressFamily;
use netlink_packet_route::RouteNetlinkMessage as Message;
use netlink_packet_route::address::{
    AddressAttribute, AddressFlags, AddressHeaderFlags, AddressMessage, AddressScope,
};

use crate::error::Result;
use crate::links;
use crate::rtnl::Rtnl;

/// Adds an address with its prefix to a link. An IPv6 address is usable at once: duplicate detection is off for it.
///
/// # Errors
/// [`crate::LinkError::NoSuchLink`], or the kernel's refusal (`EEXIST` when the link has it).
pub fn add(link: &str, address: IpNet) -> Result<()> {
    let mut rtnl = Rtnl::open()?;
    let message = message(links::index_of(&mut rtnl, link)?, address);
    let operation = format!("add address {address} to {link}");
    rtnl.request(&operation, Message::NewAddress(message), NLM_F_CREATE | NLM_F_EXCL)?;
    Ok(())
}

/// Removes an address from a link.
///
/// # Errors
/// [`crate::LinkError::NoSuchLink`], or the kernel's refusal (`EADDRNOTAVAIL` when the link does not have it).
pub fn remove(link: &str, address: IpNet) -> Result<()> {
    let mut rtnl = Rtnl::open()?;
    let message = message(links::index_of(&mut rtnl, link)?, address);
    rtnl.request(&format!("remove address {address} from {link}"), Message::DelAddress(message), 0)?;
    Ok(())
}

fn message(index: u32, address: IpNet) -> AddressMessage {
    let mut message = AddressMessage::default();
    message.header.index = index;
    message.header.prefix_len = address.prefix_len();
    message.header.family = match address {
        IpNet::V4(_) => AddressFamily::Inet,
        IpNet::V6(_) => AddressFamily::Inet6,
    };
    if matches!(address, IpNet::V6(_)) {
        message.header.flags = AddressHeaderFlags::Nodad;
    }
    message.attributes.push(AddressAttribute::Local(address.addr()));
    message.attributes.push(AddressAttribute::Address(address.addr()));
    message
}

/// Every address with the index of its link, in the kernel's order (IPv4 before IPv6).
pub(crate) fn all(rtnl: &mut Rtnl) -> Result<Vec<(u32, LinkAddress)>> {
    let replies = rtnl.dump("list addresses", Message::GetAddress(AddressMessage::default()))?;
    Ok(replies.iter().filter_map(described).collect())
}

/// The address that a reply tells of, with the index of its link.
pub(crate) fn described(message: &Message) -> Option<(u32, LinkAddress)> {
    let Message::NewAddress(message) = message else { return None };
    let (mut local, mut remote, mut flags) = (None, None, u32::from(message.header.flags.bits()));
    for attribute in &message.attributes {
        match attribute {
            AddressAttribute::Local(address) => local = Some(*address),
            AddressAttribute::Address(address) => remote = Some(*address),
            AddressAttribute::Flags(all) => flags = all.bits(),
            _ => {}
        }
    }
    // On a point-to-point link IFA_ADDRESS is the other end; IPv6 gives IFA_ADDRESS alone (linux/if_addr.h).
    let address: IpAddr = local.or(remote)?;
    let unusable = AddressFlags::Tentative | AddressFlags::Dadfailed;
    Some((
        message.header.index,
        LinkAddress {
            address,
            prefix: message.header.prefix_len,
            scope: scope(message.header.scope),
            tentative: AddressFlags::from_bits_retain(flags).intersects(unusable),
        },
    ))
}

fn scope(scope: AddressScope) -> String {
    match scope {
        AddressScope::Universe => "global".to_owned(),
        AddressScope::Site => "site".to_owned(),
        AddressScope::Link => "link".to_owned(),
        AddressScope::Host => "host".to_owned(),
        AddressScope::Nowhere => "nowhere".to_owned(),
        other => u8::from(other).to_string(),
    }
}
