//! A link's IPv6: an MTU below 1280 bytes, or disable_ipv6, takes its addresses, routes and parameters away for good.
//!
//! Sources: linux/if_addr.h, linux/rtnetlink.h, the kernel's net/ipv6/addrconf.c.

use std::collections::BTreeSet;
use std::fs;
use std::net::Ipv6Addr;

use netlink_packet_core::{DecodeError, NLM_F_CREATE, NLM_F_EXCL};

use super::part::Values;
use crate::error::{LinkError, Result};
use crate::ethtool::attribute::Attributes;
use crate::raw::{Raw, hex, push_attribute, unhex, word};
use crate::rtnl::Rtnl;
use crate::{links, sysctl};

const RTM_NEWADDR: u16 = 20;
const RTM_DELADDR: u16 = 21;
const RTM_GETADDR: u16 = 22;
const RTM_NEWROUTE: u16 = 24;
const RTM_GETROUTE: u16 = 26;
const AF_INET6: u8 = nix::libc::AF_INET6 as u8;
/// `struct ifaddrmsg`, `struct rtmsg`.
const IFADDRMSG: usize = 8;
const RTMSG: usize = 12;
const IFA_ADDRESS: u16 = 1;
const IFA_LOCAL: u16 = 2;
const IFA_FLAGS: u16 = 8;
const IFA_RT_PRIORITY: u16 = 9;
const IFA_F_NODAD: u32 = 0x02;
const IFA_F_HOMEADDRESS: u32 = 0x10;
const IFA_F_PERMANENT: u32 = 0x80;
const IFA_F_MANAGETEMPADDR: u32 = 0x100;
const IFA_F_NOPREFIXROUTE: u32 = 0x200;
/// Flags that someone chose; others are the state of the address.
const CHOSEN_FLAGS: u32 = IFA_F_HOMEADDRESS | IFA_F_MANAGETEMPADDR | IFA_F_NOPREFIXROUTE;
const RTA_OIF: u16 = 4;
const RTA_CACHEINFO: u16 = 12;
/// Made by the kernel with an address, or learnt from a router: they come back by themselves.
const RTPROT_KERNEL: u8 = 2;
const RTPROT_RA: u8 = 9;
const RTN_UNICAST: u8 = 1;
const RTM_F_CLONED: u32 = 0x200;
const ADDRESS: &str = "address ";
const ORDER: &str = "order ";
/// Pairs grow with the square of their number.
const MOST_IN_ORDER: usize = 32;

/// Whether there is IPv6 to lose at all.
pub(crate) fn is_there() -> bool {
    sysctl::exists("net.ipv6")
}

/// A link's parameters (`sysctl NAME`), permanent addresses (`address A/N`) and routes made by hand (`route BYTES`).
pub(crate) fn values(link: &str) -> Result<Values> {
    let mut rtnl = Rtnl::open()?;
    let index = links::index_of(&mut rtnl, link)?;
    let mut values = parameters(link);
    let addresses = addresses(&mut rtnl, index)?;
    values.extend(order(&addresses));
    values.extend(addresses.into_iter().map(|(name, value)| (format!("{ADDRESS}{name}"), value)));
    values.extend(routes(&mut rtnl, AF_INET6, index)?);
    Ok(values)
}

/// Adds what is missing and sets parameters that differ; nothing is taken away.
pub(crate) fn put_back(link: &str, before: &Values, now: &Values) -> Result<()> {
    let differs: Vec<_> = before.iter().filter(|(item, value)| now.get(*item) != Some(*value)).collect();
    let mut outcome = Ok(());
    for (item, value) in &differs {
        if let Some(name) = item.strip_prefix("sysctl ") {
            let written = sysctl::write(&format!("net/ipv6/conf/{link}/{name}"), value);
            outcome = outcome.and(written);
        }
    }
    if differs.iter().any(|(item, _)| item.starts_with(ADDRESS) || item.starts_with(ORDER)) {
        let added = put_back_addresses(link, before);
        outcome = outcome.and(added);
    }
    let routes = put_back_routes(link, differs.iter().map(|(item, _)| item.as_str()));
    outcome.and(routes)
}

/// The routes of a family through a link that someone made (`route BYTES`).
pub(super) fn routes(rtnl: &mut Rtnl, family: u8, index: u32) -> Result<Values> {
    let mut values = Values::new();
    for payload in list(rtnl, family, "routes", RTM_GETROUTE, RTMSG)? {
        values.extend(route(&payload, index).map_err(|error| malformed("routes", &error))?);
    }
    Ok(values)
}

/// Adds those routes among `items` that are missing.
pub(super) fn put_back_routes<'a>(link: &str, items: impl Iterator<Item = &'a str>) -> Result<()> {
    let mut rtnl = Rtnl::open()?;
    let mut outcome = Ok(());
    for item in items {
        let Some(payload) = item.strip_prefix("route ").and_then(unhex) else { continue };
        let message = Raw { kind: RTM_NEWROUTE, payload };
        match rtnl.raw_request(&format!("add {item} to {link}"), message, NLM_F_CREATE | NLM_F_EXCL) {
            Err(error) if error.raw_os_error() == Some(nix::libc::EEXIST) => {}
            done => outcome = outcome.and(done),
        }
    }
    outcome
}

/// What can be read and written; the rest are switches that show nothing, and keys that are not set.
fn parameters(link: &str) -> Values {
    let folder = format!("/proc/sys/net/ipv6/conf/{link}");
    let names = fs::read_dir(folder).into_iter().flatten().flatten();
    let value = |entry: fs::DirEntry| {
        let name = entry.file_name().into_string().ok()?;
        let value = fs::read_to_string(entry.path()).ok()?.trim_end().to_owned();
        Some((format!("sysctl {name}"), value))
    };
    names.filter_map(value).collect()
}

/// The permanent addresses of a link, in the kernel's order.
fn addresses(rtnl: &mut Rtnl, index: u32) -> Result<Vec<(String, String)>> {
    let listed = list(rtnl, AF_INET6, "addresses", RTM_GETADDR, IFADDRMSG)?;
    let ours = listed.iter().filter(|payload| word(payload, 4) == Some(index));
    let read = ours.filter_map(|payload| address(payload).transpose());
    read.collect::<std::result::Result<_, _>>().map_err(|error| malformed("addresses", &error))
}

/// Which address comes before which: the kernel picks the first of several that serve equally well. By pairs, so that an
/// address that someone adds in between does not matter.
fn order(addresses: &[(String, String)]) -> Values {
    if addresses.len() > MOST_IN_ORDER {
        return Values::new();
    }
    let pairs = addresses.iter().enumerate().flat_map(|(place, (first, _))| {
        addresses[place + 1..].iter().map(move |(then, _)| format!("{ORDER}{first} before {then}"))
    });
    pairs.map(|pair| (pair, String::new())).collect()
}

/// Adds what is missing so that the order becomes that of `before`. Kernels differ in whether a new address goes in front
/// of others or behind them, so where one way gives the wrong order, the other is taken.
fn put_back_addresses(link: &str, before: &Values) -> Result<()> {
    let mut rtnl = Rtnl::open()?;
    let index = links::index_of(&mut rtnl, link)?;
    let addresses_before =
        before.iter().filter_map(|(item, value)| Some((item.strip_prefix(ADDRESS)?, value)));
    let mut wanted: Vec<(&str, &String)> = addresses_before.collect();
    let after = |name: &str| {
        let end = format!(" before {name}");
        before.keys().filter(|item| item.starts_with(ORDER) && item.ends_with(&end)).count()
    };
    wanted.sort_by_key(|(name, _)| after(name));
    let mut outcome = Ok(());
    for attempt in 0..2 {
        outcome = wanted
            .iter()
            .try_for_each(|(name, value)| change_address(&mut rtnl, link, index, name, value, RTM_NEWADDR));
        let now = order(&addresses(&mut rtnl, index)?);
        let in_order =
            before.keys().filter(|item| item.starts_with(ORDER)).all(|pair| now.contains_key(pair));
        if in_order || attempt == 1 {
            break;
        }
        for (name, value) in &wanted {
            change_address(&mut rtnl, link, index, name, value, RTM_DELADDR)?;
        }
        wanted.reverse();
    }
    outcome
}

fn change_address(rtnl: &mut Rtnl, link: &str, index: u32, name: &str, value: &str, kind: u16) -> Result<()> {
    let Some(payload) = address_message(index, name, value) else { return Ok(()) };
    let (operation, flags, expected) = match kind {
        RTM_NEWADDR => {
            (format!("add address {name} to {link}"), NLM_F_CREATE | NLM_F_EXCL, nix::libc::EEXIST)
        }
        _ => (format!("remove address {name} from {link}"), 0, nix::libc::EADDRNOTAVAIL),
    };
    match rtnl.raw_request(&operation, Raw { kind, payload }, flags) {
        Err(error) if error.raw_os_error() == Some(expected) => Ok(()),
        done => done,
    }
}

fn list(rtnl: &mut Rtnl, family: u8, what: &str, kind: u16, head: usize) -> Result<Vec<Vec<u8>>> {
    let mut payload = vec![0; head];
    payload[0] = family;
    let listed = rtnl.raw_dump(&format!("list {what}"), Raw { kind, payload })?;
    Ok(listed.into_iter().map(|message| message.payload).collect())
}

fn malformed(what: &str, error: &DecodeError) -> LinkError {
    LinkError::unexpected(&format!("list {what}"), error.to_string())
}

/// A permanent address: `A/N` or `A peer B/N`, with scope, chosen flags and metric.
fn address(payload: &[u8]) -> std::result::Result<Option<(String, String)>, DecodeError> {
    let [_, prefix, flags, scope, ..] = *payload else { return Err(DecodeError::from("a short message")) };
    let attributes = Attributes::parse(payload.get(IFADDRMSG..).unwrap_or_default())?;
    let flags = attributes.u32(IFA_FLAGS)?.unwrap_or_else(|| flags.into());
    if flags & IFA_F_PERMANENT == 0 {
        return Ok(None);
    }
    let read = |kind| attributes.bytes(kind).and_then(|bytes| <[u8; 16]>::try_from(bytes).ok());
    let (local, remote) = (read(IFA_LOCAL).map(Ipv6Addr::from), read(IFA_ADDRESS).map(Ipv6Addr::from));
    let name = match (local, remote) {
        (Some(local), Some(remote)) if local != remote => format!("{local} peer {remote}/{prefix}"),
        (Some(local), _) | (None, Some(local)) => format!("{local}/{prefix}"),
        (None, None) => return Err(DecodeError::from("an address message without one")),
    };
    let metric = attributes.u32(IFA_RT_PRIORITY)?.unwrap_or(0);
    Ok(Some((name, format!("{scope} {:x} {metric}", flags & CHOSEN_FLAGS))))
}

fn address_message(index: u32, name: &str, value: &str) -> Option<Vec<u8>> {
    let (addresses, prefix) = name.rsplit_once('/')?;
    let (local, remote) = addresses.split_once(" peer ").unwrap_or((addresses, addresses));
    let (local, remote): (Ipv6Addr, Ipv6Addr) = (local.parse().ok()?, remote.parse().ok()?);
    let mut words = value.split(' ');
    let scope: u8 = words.next()?.parse().ok()?;
    let flags = u32::from_str_radix(words.next()?, 16).ok()?;
    let metric: u32 = words.next()?.parse().ok()?;
    let mut payload = vec![AF_INET6, prefix.parse().ok()?, 0, scope];
    payload.extend(index.to_ne_bytes());
    push_attribute(&mut payload, IFA_LOCAL, &local.octets());
    push_attribute(&mut payload, IFA_ADDRESS, &remote.octets());
    // It was in use a moment ago: no need to look for another owner.
    push_attribute(&mut payload, IFA_FLAGS, &(flags | IFA_F_PERMANENT | IFA_F_NODAD).to_ne_bytes());
    if metric != 0 {
        push_attribute(&mut payload, IFA_RT_PRIORITY, &metric.to_ne_bytes());
    }
    Some(payload)
}

/// A route through the link that someone made, as the bytes that make it again.
fn route(payload: &[u8], index: u32) -> std::result::Result<Option<(String, String)>, DecodeError> {
    let [_, _, _, _, _, protocol, _, kind, ..] = *payload else {
        return Err(DecodeError::from("a short message"));
    };
    let attributes = Attributes::parse(payload.get(RTMSG..).unwrap_or_default())?;
    let flags = word(payload, 8).unwrap_or_default();
    let made = BTreeSet::from([RTPROT_KERNEL, RTPROT_RA]).contains(&protocol)
        || kind != RTN_UNICAST
        || flags & RTM_F_CLONED != 0;
    if made || attributes.u32(RTA_OIF)? != Some(index) {
        return Ok(None);
    }
    let mut bytes = payload[..RTMSG - 4].to_vec();
    // Its flags tell the state of the next hop.
    bytes.extend([0; 4]);
    for (kind, value) in attributes.each().filter(|(kind, _)| *kind != RTA_CACHEINFO) {
        push_attribute(&mut bytes, kind, value);
    }
    Ok(Some((format!("route {}", hex(&bytes)), String::new())))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn an_address_is_made_again_as_it_was() {
        for name in ["fd00::1/64", "fd00::1 peer fd00::2/128"] {
            let payload = address_message(7, name, "0 200 5").unwrap();
            assert_eq!(word(&payload, 4), Some(7));
            let read = address(&payload).unwrap().unwrap();
            assert_eq!(read, (name.to_owned(), "0 200 5".to_owned()));
        }
    }

    proptest! {
        #[test]
        fn hostile_messages_never_panic(payload in proptest::collection::vec(any::<u8>(), 0..80), text in ".{0,30}") {
            let _ = address(&payload);
            let _ = route(&payload, 1);
            let _ = address_message(1, &text, &text);
        }
    }
}
