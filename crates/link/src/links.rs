//! Links of the calling thread's network namespace over rtnetlink: list, change, remove.

use std::collections::BTreeMap;
use std::os::fd::AsRawFd;
use std::time::{Duration, Instant};

use linerate_model::environment::LinkInfo;
use netlink_packet_route::RouteNetlinkMessage as Message;
use netlink_packet_route::link::{LinkAttribute, LinkFlags, LinkInfo as Info, LinkLayerType, LinkMessage};

use crate::error::{LinkError, Result};
use crate::rtnl::Rtnl;
use crate::{address, netns};

/// Longest name of a link, bytes (`IFNAMSIZ - 1`, linux/if.h).
pub const MAX_NAME: usize = 15;

const POLL: Duration = Duration::from_millis(2);

/// All links with their addresses, in the order of their index. Only what rtnetlink tells; see
/// [`crate::inventory::describe`] for the driver's part.
///
/// # Errors
/// The kernel refuses the dump or it does not decode.
pub fn all() -> Result<Vec<LinkInfo>> {
    let mut rtnl = Rtnl::open()?;
    let mut links: Vec<_> = rtnl
        .dump("list links", Message::GetLink(LinkMessage::default()))?
        .iter()
        .filter_map(described)
        .collect();
    links.sort_by_key(|link| link.index);
    for (index, address) in address::all(&mut rtnl)? {
        if let Some(link) = links.iter_mut().find(|link| link.index == index) {
            link.addresses.push(address);
        }
    }
    Ok(links)
}

/// The link `name` with its addresses.
///
/// # Errors
/// [`LinkError::NoSuchLink`] with the links that are there.
pub fn named(name: &str) -> Result<LinkInfo> {
    let mut rtnl = Rtnl::open()?;
    let mut link = describe(&find(&mut rtnl, name)?);
    link.addresses =
        address::all(&mut rtnl)?.into_iter().filter(|(of, _)| *of == link.index).map(|(_, it)| it).collect();
    Ok(link)
}

/// The kernel's counters of a link by name (`rtnl_link_stats64`, linux/if_link.h), since it was made.
///
/// # Errors
/// [`LinkError::NoSuchLink`], or a reply without counters.
pub fn counters(name: &str) -> Result<BTreeMap<String, u64>> {
    let link = find(&mut Rtnl::open()?, name)?;
    let stats = link.attributes.iter().find_map(|attribute| match attribute {
        LinkAttribute::Stats64(stats) => Some(*stats),
        _ => None,
    });
    let stats =
        stats.ok_or_else(|| LinkError::unexpected(&format!("read counters of {name}"), "none in it"))?;
    let named = [
        ("rx_packets", stats.rx_packets),
        ("tx_packets", stats.tx_packets),
        ("rx_bytes", stats.rx_bytes),
        ("tx_bytes", stats.tx_bytes),
        ("rx_errors", stats.rx_errors),
        ("tx_errors", stats.tx_errors),
        ("rx_dropped", stats.rx_dropped),
        ("tx_dropped", stats.tx_dropped),
        ("multicast", stats.multicast),
        ("collisions", stats.collisions),
        ("rx_length_errors", stats.rx_length_errors),
        ("rx_over_errors", stats.rx_over_errors),
        ("rx_crc_errors", stats.rx_crc_errors),
        ("rx_frame_errors", stats.rx_frame_errors),
        ("rx_fifo_errors", stats.rx_fifo_errors),
        ("rx_missed_errors", stats.rx_missed_errors),
        ("tx_aborted_errors", stats.tx_aborted_errors),
        ("tx_carrier_errors", stats.tx_carrier_errors),
        ("tx_fifo_errors", stats.tx_fifo_errors),
        ("tx_heartbeat_errors", stats.tx_heartbeat_errors),
        ("tx_window_errors", stats.tx_window_errors),
        ("rx_compressed", stats.rx_compressed),
        ("tx_compressed", stats.tx_compressed),
        ("rx_nohandler", stats.rx_nohandler),
    ];
    Ok(named.into_iter().map(|(name, value)| (name.to_owned(), value)).collect())
}

/// The name of the link with this index, `None` when there is none.
///
/// # Errors
/// The kernel refuses the request for another reason than absence.
pub fn name_of(index: u32) -> Result<Option<String>> {
    let mut message = LinkMessage::default();
    message.header.index = index;
    let operation = format!("look up link {index}");
    match Rtnl::open()?.request(&operation, Message::GetLink(message), 0) {
        Ok(replies) => Ok(replies.iter().find_map(described).map(|link| link.name)),
        Err(error) if error.raw_os_error() == Some(nix::libc::ENODEV) => Ok(None),
        Err(error) => Err(error),
    }
}

/// Sets a link administratively up or down.
///
/// # Errors
/// [`LinkError::NoSuchLink`], or the kernel's refusal.
pub fn set_up(name: &str, up: bool) -> Result<()> {
    let operation = format!("set {name} {}", if up { "up" } else { "down" });
    change(name, &operation, |message| {
        message.header.change_mask = LinkFlags::Up;
        message.header.flags = if up { LinkFlags::Up } else { LinkFlags::empty() };
    })
}

/// Sets or clears a flag that is a link's by hand (`IFF_PROMISC`, `IFF_ALLMULTI`); `name` is what errors call it.
///
/// # Errors
/// [`LinkError::NoSuchLink`], or the kernel's refusal.
pub(crate) fn set_flag(link: &str, flag: LinkFlags, name: &str, on: bool) -> Result<()> {
    let operation = format!("set {name} of {link} {}", if on { "on" } else { "off" });
    change(link, &operation, |message| {
        message.header.change_mask = flag;
        message.header.flags = if on { flag } else { LinkFlags::empty() };
    })
}

/// Sets a link's hardware address.
///
/// # Errors
/// [`LinkError::NoSuchLink`], or the kernel's refusal: EADDRNOTAVAIL for an address that no host can have, EBUSY from
/// drivers that take one only while the link is down.
pub fn set_mac(name: &str, mac_address: [u8; 6]) -> Result<()> {
    let operation = format!("set mac of {name} to {}", mac(&mac_address));
    change(name, &operation, |message| {
        message.attributes.push(LinkAttribute::Address(mac_address.to_vec()));
    })
}

/// The link that this one is under (bridge or bond), if any.
///
/// # Errors
/// [`LinkError::NoSuchLink`].
pub fn master(name: &str) -> Result<Option<String>> {
    let message = find(&mut Rtnl::open()?, name)?;
    let index = message.attributes.iter().find_map(|attribute| match attribute {
        LinkAttribute::Controller(index) if *index != 0 => Some(*index),
        _ => None,
    });
    Ok(index.map(name_of).transpose()?.flatten())
}

/// Puts a link under a bridge or bond, or takes it out.
///
/// # Errors
/// [`LinkError::NoSuchLink`] for either, or the kernel's refusal.
pub fn set_master(name: &str, master: Option<&str>) -> Result<()> {
    let index = master.map(|master| index_of(&mut Rtnl::open()?, master)).transpose()?.unwrap_or(0);
    let operation = match master {
        Some(master) => format!("put {name} under {master}"),
        None => format!("take {name} from its master"),
    };
    change(name, &operation, |message| message.attributes.push(LinkAttribute::Controller(index)))
}

/// Sets a link's MTU, bytes.
///
/// # Errors
/// [`LinkError::NoSuchLink`], or the kernel's refusal of the value.
pub fn set_mtu(name: &str, mtu_bytes: u32) -> Result<()> {
    let operation = format!("set mtu of {name} to {mtu_bytes}");
    change(name, &operation, |message| message.attributes.push(LinkAttribute::Mtu(mtu_bytes)))
}

/// Sets how many packets a link's queue holds, where its discipline goes by that (`ip link set txqueuelen`).
///
/// # Errors
/// [`LinkError::NoSuchLink`], or the kernel's refusal of the value.
pub fn set_tx_queue_length(name: &str, packets: u32) -> Result<()> {
    let operation = format!("set txqueuelen of {name} to {packets}");
    change(name, &operation, |message| message.attributes.push(LinkAttribute::TxQueueLen(packets)))
}

/// Moves a link to the namespace that is registered as `netns`; its addresses stay behind.
///
/// # Errors
/// [`LinkError::NoSuchLink`], a namespace that is not there, or the kernel's refusal.
pub fn move_to_netns(name: &str, netns: &str) -> Result<()> {
    let there = linerate_sys::netns::open(netns)?;
    let operation = format!("move {name} to netns {netns}");
    change(name, &operation, |message| message.attributes.push(LinkAttribute::NetNsFd(there.as_raw_fd())))
}

/// Deletes a link; a veth goes with its other end.
///
/// # Errors
/// [`LinkError::NoSuchLink`], or the kernel's refusal (a link of a device can't be deleted).
pub fn remove(name: &str) -> Result<()> {
    let mut rtnl = Rtnl::open()?;
    let mut message = LinkMessage::default();
    message.header.index = find(&mut rtnl, name)?.header.index;
    rtnl.request(&format!("delete link {name}"), Message::DelLink(message), 0)?;
    Ok(())
}

/// Waits until a link is up and has carrier.
///
/// # Errors
/// [`LinkError::NoSuchLink`], or [`LinkError::Timeout`].
pub fn wait_for_carrier(name: &str, limit: Duration) -> Result<()> {
    let end = Instant::now() + limit;
    loop {
        let mut rtnl = Rtnl::open()?;
        let link = describe(&find(&mut rtnl, name)?);
        if link.up && link.carrier {
            return Ok(());
        }
        if Instant::now() >= end {
            return Err(LinkError::Timeout { what: format!("carrier on {name}{}", netns::place()), limit });
        }
        std::thread::sleep(POLL);
    }
}

pub(crate) fn change(name: &str, operation: &str, edit: impl FnOnce(&mut LinkMessage)) -> Result<()> {
    let mut rtnl = Rtnl::open()?;
    let mut message = LinkMessage::default();
    message.header.index = find(&mut rtnl, name)?.header.index;
    edit(&mut message);
    rtnl.request(operation, Message::SetLink(message), 0)?;
    Ok(())
}

/// The kernel's description of the link `name`.
pub(crate) fn find(rtnl: &mut Rtnl, name: &str) -> Result<LinkMessage> {
    let operation = format!("look up link {name}");
    if name.is_empty() || name.len() > MAX_NAME || name.contains('\0') {
        return Err(no_such_link(rtnl, name));
    }
    let mut message = LinkMessage::default();
    message.attributes.push(LinkAttribute::IfName(name.to_owned()));
    match rtnl.request(&operation, Message::GetLink(message), 0) {
        Ok(replies) => replies
            .into_iter()
            .find_map(|reply| if let Message::NewLink(link) = reply { Some(link) } else { None })
            .ok_or_else(|| LinkError::unexpected(&operation, "no link in it")),
        Err(error) if error.raw_os_error() == Some(nix::libc::ENODEV) => Err(no_such_link(rtnl, name)),
        Err(error) => Err(error),
    }
}

/// The index of the link `name`.
pub(crate) fn index_of(rtnl: &mut Rtnl, name: &str) -> Result<u32> {
    Ok(find(rtnl, name)?.header.index)
}

fn no_such_link(rtnl: &mut Rtnl, name: &str) -> LinkError {
    let known = match rtnl.dump("list links", Message::GetLink(LinkMessage::default())) {
        Ok(links) => links.iter().filter_map(described).map(|link| link.name).collect(),
        Err(error) => return error,
    };
    LinkError::NoSuchLink { link: name.to_owned(), place: netns::place(), known }
}

/// The link that a reply tells of, if it tells of one.
pub(crate) fn described(message: &Message) -> Option<LinkInfo> {
    if let Message::NewLink(link) = message { Some(describe(link)) } else { None }
}

/// What one `RTM_NEWLINK` message tells.
fn describe(message: &LinkMessage) -> LinkInfo {
    let flags = message.header.flags;
    let mut link = LinkInfo {
        index: message.header.index,
        up: flags.contains(LinkFlags::Up),
        carrier: flags.contains(LinkFlags::LowerUp),
        loopback: message.header.link_layer_type == LinkLayerType::Loopback,
        ..LinkInfo::default()
    };
    for attribute in &message.attributes {
        match attribute {
            LinkAttribute::IfName(name) => link.name.clone_from(name),
            LinkAttribute::Mtu(mtu) => link.mtu = *mtu,
            LinkAttribute::Address(bytes) if !bytes.is_empty() => link.mac = Some(mac(bytes)),
            LinkAttribute::Qdisc(name) => link.qdisc = Some(name.clone()),
            LinkAttribute::NumTxQueues(count) => link.tx_queues = *count,
            LinkAttribute::NumRxQueues(count) => link.rx_queues = *count,
            LinkAttribute::LinkInfo(infos) => link.kind = infos.iter().find_map(kind),
            _ => {}
        }
    }
    link
}

fn kind(info: &Info) -> Option<String> {
    if let Info::Kind(kind) = info { Some(kind.to_string()) } else { None }
}

fn mac(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect::<Vec<_>>().join(":")
}
