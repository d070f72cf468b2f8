//! Messages that make new links (linux/if_link.h, linux/if_tunnel.h).

use std::net::IpAddr;

use linerate_model::bench::act::LinkKind;
use netlink_packet_core::{NLM_F_CREATE, NLM_F_EXCL};

use crate::error::{LinkError, Result};
use crate::links;
use crate::raw::{Raw, ip_bytes, push_attribute};
use crate::rtnl::Rtnl;

const RTM_NEWLINK: u16 = 16;
/// `struct ifinfomsg`, all zero: the kernel chooses the index.
const IFINFOMSG: [u8; 16] = [0; 16];
const IFLA_ADDRESS: u16 = 1;
const IFLA_IFNAME: u16 = 3;
const IFLA_LINK: u16 = 5;
const IFLA_LINKINFO: u16 = 18;
const INFO_KIND: u16 = 1;
const INFO_DATA: u16 = 2;
const MACVLAN_MODE_BRIDGE: u32 = 4;
const BOND_MODE_ACTIVE_BACKUP: u8 = 1;
/// How often a bond looks for carrier, milliseconds.
const BOND_MIIMON_MS: u32 = 100;

/// Makes a link, down and without addresses.
///
/// # Errors
/// [`LinkError::NoSuchLink`] for the one below, [`LinkError::Invalid`], or the kernel's refusal: `EEXIST` for a name that
/// is taken, `EOPNOTSUPP` for a kind that it does not have.
pub(crate) fn make(name: &str, kind: &LinkKind) -> Result<()> {
    let mut rtnl = Rtnl::open()?;
    let mut payload = IFINFOMSG.to_vec();
    push_attribute(&mut payload, IFLA_IFNAME, &terminated(name));
    let (word, data) = match kind {
        LinkKind::Vlan { link, id, protocol } => {
            below(&mut payload, &mut rtnl, link)?;
            let mut data = Vec::new();
            push_attribute(&mut data, 1, &id.to_ne_bytes());
            push_attribute(&mut data, 5, &protocol.to_be_bytes());
            ("vlan", data)
        }
        LinkKind::Macvlan { link, mac } => {
            below(&mut payload, &mut rtnl, link)?;
            push_attribute(&mut payload, IFLA_ADDRESS, mac);
            ("macvlan", attribute(1, &MACVLAN_MODE_BRIDGE.to_ne_bytes()))
        }
        LinkKind::Bridge => ("bridge", Vec::new()),
        LinkKind::Bond => {
            let mut data = attribute(1, &[BOND_MODE_ACTIVE_BACKUP]);
            push_attribute(&mut data, 3, &BOND_MIIMON_MS.to_ne_bytes());
            ("bond", data)
        }
        LinkKind::Veth { other } => {
            let mut end = IFINFOMSG.to_vec();
            push_attribute(&mut end, IFLA_IFNAME, &terminated(other));
            ("veth", attribute(1, &end))
        }
        LinkKind::Vxlan { link, id, local, remote, port, checksum } => {
            let index = links::index_of(&mut rtnl, link)?;
            ("vxlan", vxlan(index, *id, (*local, *remote), *port, *checksum)?)
        }
        LinkKind::Tunnel { protocol, link, local, remote } => {
            tunnel(protocol, links::index_of(&mut rtnl, link)?, *local, *remote)?
        }
    };
    let mut info = attribute(INFO_KIND, word.as_bytes());
    push_attribute(&mut info, INFO_DATA, &data);
    push_attribute(&mut payload, IFLA_LINKINFO, &info);
    let operation = format!("make {word} link {name}");
    rtnl.raw_request(&operation, Raw { kind: RTM_NEWLINK, payload }, NLM_F_CREATE | NLM_F_EXCL)
}

fn vxlan(index: u32, id: u32, ends: (IpAddr, IpAddr), port: u16, checksum: bool) -> Result<Vec<u8>> {
    let (group, own) = match ends {
        (IpAddr::V4(_), IpAddr::V4(_)) => (2, 4),
        (IpAddr::V6(_), IpAddr::V6(_)) => (16, 17),
        _ => return Err(mixed("vxlan")),
    };
    let mut data = attribute(1, &id.to_ne_bytes());
    push_attribute(&mut data, group, &ip_bytes(ends.1).1);
    push_attribute(&mut data, 3, &index.to_ne_bytes());
    push_attribute(&mut data, own, &ip_bytes(ends.0).1);
    push_attribute(&mut data, 15, &port.to_be_bytes());
    push_attribute(&mut data, 18, &[checksum.into()]);
    // IPv6 wants a checksum unless told otherwise (RFC 6935).
    push_attribute(&mut data, 19, &[(!checksum).into()]);
    push_attribute(&mut data, 20, &[(!checksum).into()]);
    Ok(data)
}

fn tunnel(protocol: &str, index: u32, local: IpAddr, remote: IpAddr) -> Result<(&'static str, Vec<u8>)> {
    let both4 = local.is_ipv4() && remote.is_ipv4();
    if local.is_ipv4() != remote.is_ipv4() {
        return Err(mixed(protocol));
    }
    let (word, own, other) = match (protocol, both4) {
        ("gre", true) => ("gre", 6, 7),
        ("gre", false) => ("ip6gre", 6, 7),
        ("ipip", true) => ("ipip", 2, 3),
        ("sit", true) => ("sit", 2, 3),
        _ => {
            let why = "a tunnel is gre, or over IPv4 ipip or sit".to_owned();
            return Err(LinkError::Invalid { what: format!("tunnel {protocol:?} to {remote}"), why });
        }
    };
    let mut data = attribute(1, &index.to_ne_bytes());
    push_attribute(&mut data, own, &ip_bytes(local).1);
    push_attribute(&mut data, other, &ip_bytes(remote).1);
    Ok((word, data))
}

fn mixed(word: &str) -> LinkError {
    LinkError::Invalid { what: format!("{word} link"), why: "both ends must be of one family".to_owned() }
}

fn below(payload: &mut Vec<u8>, rtnl: &mut Rtnl, link: &str) -> Result<()> {
    push_attribute(payload, IFLA_LINK, &links::index_of(rtnl, link)?.to_ne_bytes());
    Ok(())
}

fn attribute(kind: u16, value: &[u8]) -> Vec<u8> {
    let mut bytes = Vec::new();
    push_attribute(&mut bytes, kind, value);
    bytes
}

fn terminated(name: &str) -> Vec<u8> {
    [name.as_bytes(), b"\0"].concat()
}
