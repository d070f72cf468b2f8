//! Permanent entries of the neighbour tables (linux/neighbour.h).

use std::collections::BTreeMap;
use std::net::IpAddr;

use netlink_packet_core::{DecodeError, NLM_F_CREATE, NLM_F_REPLACE};

use crate::error::{LinkError, Result};
use crate::ethtool::attribute::Attributes;
use crate::links;
use crate::raw::{Raw, ip_bytes, ip_of, push_attribute, word};
use crate::rtnl::Rtnl;

const RTM_NEWNEIGH: u16 = 28;
const RTM_DELNEIGH: u16 = 29;
const RTM_GETNEIGH: u16 = 30;
/// `struct ndmsg`: family, three bytes of padding, index, state, flags, type.
const NDMSG: usize = 12;
const NUD_PERMANENT: u16 = 0x80;
const NDA_DST: u16 = 1;
const NDA_LLADDR: u16 = 2;

/// Makes `address` a permanent neighbour at `mac`; an entry that is there is replaced.
pub(crate) fn add(link: &str, address: IpAddr, mac: [u8; 6]) -> Result<()> {
    let mut rtnl = Rtnl::open()?;
    let mut payload = head(links::index_of(&mut rtnl, link)?, address, NUD_PERMANENT);
    push_attribute(&mut payload, NDA_LLADDR, &mac);
    let operation = format!("add neighbour {address} to {link}");
    rtnl.raw_request(&operation, Raw { kind: RTM_NEWNEIGH, payload }, NLM_F_CREATE | NLM_F_REPLACE)
}

/// Removes an entry.
pub(crate) fn remove(link: &str, address: IpAddr) -> Result<()> {
    let mut rtnl = Rtnl::open()?;
    let payload = head(links::index_of(&mut rtnl, link)?, address, 0);
    let operation = format!("remove neighbour {address} from {link}");
    rtnl.raw_request(&operation, Raw { kind: RTM_DELNEIGH, payload }, 0)
}

/// The hardware address of a permanent neighbour; `None` where there is none.
pub(crate) fn permanent(link: &str, address: IpAddr) -> Result<Option<[u8; 6]>> {
    Ok(all_permanent(link)?.remove(&address))
}

/// The permanent neighbours of a link that have hardware addresses of six bytes.
pub(crate) fn all_permanent(link: &str) -> Result<BTreeMap<IpAddr, [u8; 6]>> {
    let mut rtnl = Rtnl::open()?;
    let index = links::index_of(&mut rtnl, link)?;
    let operation = format!("list neighbours of {link}");
    let messages = rtnl.raw_dump(&operation, Raw { kind: RTM_GETNEIGH, payload: vec![0; NDMSG] })?;
    let found = messages.iter().filter_map(|message| described(&message.payload, index).transpose());
    found
        .collect::<std::result::Result<_, _>>()
        .map_err(|error: DecodeError| LinkError::unexpected(&operation, error.to_string()))
}

fn head(index: u32, address: IpAddr, state: u16) -> Vec<u8> {
    let (family, bytes) = ip_bytes(address);
    let mut payload = vec![family, 0, 0, 0];
    payload.extend(index.to_ne_bytes());
    payload.extend(state.to_ne_bytes());
    payload.extend([0, 0]);
    push_attribute(&mut payload, NDA_DST, &bytes);
    payload
}

fn described(payload: &[u8], index: u32) -> std::result::Result<Option<(IpAddr, [u8; 6])>, DecodeError> {
    let state = payload.get(8..10).map_or(0, |state| u16::from_ne_bytes([state[0], state[1]]));
    if word(payload, 4) != Some(index) || state & NUD_PERMANENT == 0 {
        return Ok(None);
    }
    let attributes = Attributes::parse(payload.get(NDMSG..).unwrap_or_default())?;
    let address = attributes.bytes(NDA_DST).and_then(ip_of);
    let mac = attributes.bytes(NDA_LLADDR).and_then(|mac| mac.try_into().ok());
    Ok(address.zip(mac))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn hostile_messages_never_panic(payload in proptest::collection::vec(any::<u8>(), 0..80)) {
            let _ = described(&payload, 1);
        }
    }
}
