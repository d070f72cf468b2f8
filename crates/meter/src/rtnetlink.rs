//! The three rtnetlink questions that the meter asks each time, decoded no further than needed, so that a queueing
//! discipline or attribute that nobody here knows can't spoil an answer (rtnetlink(7), linux/rtnetlink.h).

use linerate_sys::netlink::{Netlink, ROUTE};
use linerate_sys::netlink_raw::RawMessage as Raw;

use crate::error::{MeterError, Result};

const RTM_GETLINK: u16 = 18;
const RTM_GETQDISC: u16 = 38;
const RTM_GETSTATS: u16 = 94;
const IFLA_IFNAME: u16 = 3;
const IFLA_CARRIER_CHANGES: u16 = 35;
const IFLA_STATS_LINK_64: u16 = 1;
/// `struct ifinfomsg`.
const IFINFOMSG: usize = 16;
/// `struct if_stats_msg`.
const IF_STATS_MSG: usize = 12;
/// `struct tcmsg`.
const TCMSG: usize = 20;

/// A queueing discipline as the kernel told it.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct QdiscMessage {
    pub(crate) index: u32,
    pub(crate) handle: u32,
    pub(crate) parent: u32,
    pub(crate) attributes: Vec<u8>,
}

/// A route socket of the namespace in which it was opened.
#[derive(Debug)]
pub(crate) struct RouteSocket {
    netlink: Netlink,
}

impl RouteSocket {
    pub(crate) fn open() -> Result<Self> {
        Ok(Self { netlink: Netlink::open(ROUTE)? })
    }

    /// Index of the link `name`.
    pub(crate) fn index(&mut self, name: &str) -> Result<u32> {
        Ok(self.link(name)?.0)
    }

    /// Index of the link `name`, and how often it lost or got its carrier, where the kernel tells.
    pub(crate) fn link(&mut self, name: &str) -> Result<(u32, Option<u64>)> {
        let object = format!("find link {name}");
        let mut payload = vec![0; IFINFOMSG];
        push_attribute(&mut payload, IFLA_IFNAME, &[name.as_bytes(), &[0]].concat());
        let reply = self.netlink.request(&object, Raw { kind: RTM_GETLINK, payload }, 0)?;
        let link: Option<&Raw> = reply.messages.first();
        let index = link.and_then(|link| word(&link.payload, 4));
        let index = index.ok_or_else(|| MeterError::malformed(object, "no index in the reply"))?;
        let attributes = link.and_then(|link| link.payload.get(IFINFOMSG..)).unwrap_or_default();
        let changes = attribute(attributes, IFLA_CARRIER_CHANGES).and_then(|value| word(value, 0));
        Ok((index, changes.map(u64::from)))
    }

    /// `struct rtnl_link_stats64` of a link, as bytes.
    pub(crate) fn statistics(&mut self, index: u32) -> Result<Vec<u8>> {
        let object = format!("read counters of link {index}");
        let mut payload = vec![0; IF_STATS_MSG];
        payload[4..8].copy_from_slice(&index.to_ne_bytes());
        let filter = 1u32 << (IFLA_STATS_LINK_64 - 1);
        payload[8..12].copy_from_slice(&filter.to_ne_bytes());
        let reply = self.netlink.request(&object, Raw { kind: RTM_GETSTATS, payload }, 0)?;
        let found =
            reply.messages.first().map(|message| message.payload.get(IF_STATS_MSG..).unwrap_or_default());
        let found = found.and_then(|attributes| attribute(attributes, IFLA_STATS_LINK_64));
        found.map(<[u8]>::to_vec).ok_or_else(|| MeterError::malformed(object, "no counters in the reply"))
    }

    /// The queueing disciplines of a link. The kernel lists those of all links, so the time grows with their number.
    pub(crate) fn qdiscs(&mut self, index: u32) -> Result<Vec<QdiscMessage>> {
        let object = format!("list queueing disciplines of link {index}");
        let mut payload = vec![0; TCMSG];
        payload[4..8].copy_from_slice(&index.to_ne_bytes());
        let messages = self.netlink.dump(&object, Raw { kind: RTM_GETQDISC, payload })?;
        let qdiscs: Option<Vec<_>> = messages.into_iter().map(|message| qdisc(&message.payload)).collect();
        let qdiscs =
            qdiscs.ok_or_else(|| MeterError::malformed(object, "a message shorter than struct tcmsg"))?;
        Ok(qdiscs.into_iter().filter(|qdisc| qdisc.index == index).collect())
    }
}

fn qdisc(payload: &[u8]) -> Option<QdiscMessage> {
    Some(QdiscMessage {
        index: word(payload, 4)?,
        handle: word(payload, 8)?,
        parent: word(payload, 12)?,
        attributes: payload.get(TCMSG..)?.to_vec(),
    })
}

/// The value of the first attribute of a kind; `None` where there is none before the first damaged one.
pub(crate) fn attribute(attributes: &[u8], kind: u16) -> Option<&[u8]> {
    all_attributes(attributes).find(|(found, _)| *found == kind).map(|(_, value)| value)
}

/// Kind and value of each attribute, up to the first damaged one.
pub(crate) fn all_attributes(attributes: &[u8]) -> impl Iterator<Item = (u16, &[u8])> {
    /// Length and kind; the kind's two high bits are flags (`NLA_F_NESTED`, `NLA_F_NET_BYTEORDER`).
    const HEADER: usize = 4;
    const KIND_MASK: u16 = 0x3fff;
    let mut rest = attributes;
    std::iter::from_fn(move || {
        let header = word(rest, 0)?.to_ne_bytes();
        let length = usize::from(u16::from_ne_bytes([header[0], header[1]]));
        let found = u16::from_ne_bytes([header[2], header[3]]) & KIND_MASK;
        let value = rest.get(HEADER..length)?;
        rest = rest.get(length.next_multiple_of(4)..).unwrap_or_default();
        Some((found, value))
    })
}

/// The 32-bit number at a byte offset.
pub(crate) fn word(bytes: &[u8], offset: usize) -> Option<u32> {
    let bytes = bytes.get(offset..offset.checked_add(4)?)?;
    Some(u32::from_ne_bytes(bytes.try_into().ok()?))
}

/// The 64-bit number at a byte offset.
pub(crate) fn long(bytes: &[u8], offset: usize) -> Option<u64> {
    let bytes = bytes.get(offset..offset.checked_add(8)?)?;
    Some(u64::from_ne_bytes(bytes.try_into().ok()?))
}

/// Appends an attribute, padded to 4 bytes; values here are far below 64 KiB.
pub(crate) fn push_attribute(payload: &mut Vec<u8>, kind: u16, value: &[u8]) {
    let length = u16::try_from(4 + value.len()).unwrap_or(u16::MAX);
    payload.extend_from_slice(&length.to_ne_bytes());
    payload.extend_from_slice(&kind.to_ne_bytes());
    payload.extend_from_slice(value);
    payload.resize(payload.len().next_multiple_of(4), 0);
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn loopback_answers() {
        let mut socket = RouteSocket::open().unwrap();
        let index = socket.index("lo").unwrap();
        assert_eq!(index, 1);
        assert!(socket.statistics(index).unwrap().len() >= 24 * 8);
        assert!(socket.qdiscs(index).unwrap().iter().all(|qdisc| qdisc.index == 1));
        let error = socket.index("lr-none").unwrap_err();
        assert!(error.to_string().starts_with("find link lr-none: No such device"), "{error}");
        assert!(socket.index(&"x".repeat(70_000)).is_err());
    }

    #[test]
    fn attributes_are_found_by_kind() {
        let mut bytes = Vec::new();
        push_attribute(&mut bytes, 1, b"abc");
        push_attribute(&mut bytes, 2, b"defg");
        assert_eq!(attribute(&bytes, 2), Some(b"defg".as_slice()));
        assert_eq!(attribute(&bytes, 3), None);
    }

    proptest! {
        #[test]
        fn hostile_bytes_never_panic(bytes in proptest::collection::vec(any::<u8>(), 0..64), kind in any::<u16>()) {
            let _ = attribute(&bytes, kind);
            let _ = qdisc(&bytes);
        }
    }
}
