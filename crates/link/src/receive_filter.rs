//! What a link's driver was told to receive: its address, promiscuous mode, multicast groups. For a software NIC that
//! filters as a card does.

use std::fs;

use linerate_model::bench::frame::MacAddress;

use crate::error::{LinkError, Result};
use crate::raw::{Raw, word};
use crate::rtnl::Rtnl;

const RTM_GETLINK: u16 = 18;
const IFLA_ADDRESS: u16 = 1;
const IFLA_PROMISCUITY: u16 = 30;
const IFLA_ALLMULTI: u16 = 61;
const IFF_UP: u32 = 1;
const IFF_ALLMULTI: u32 = 0x200;
const HEAD_BYTES: usize = 16;

/// What to receive.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ReceiveFilter {
    /// The link is up.
    pub up: bool,
    /// Its address.
    pub mac: MacAddress,
    /// All frames: somebody asked for it, or addresses beside its own do not fit a filter.
    pub promiscuous: bool,
    /// All multicast frames.
    pub all_multicast: bool,
    /// Multicast groups.
    pub groups: Vec<MacAddress>,
}

/// Reads the filter of one link again and again, in the namespace of the thread that opened it.
pub struct FilterReader {
    netlink: Rtnl,
    link: String,
    index: u32,
}

impl FilterReader {
    /// For a link in the calling thread's network namespace.
    ///
    /// # Errors
    /// [`LinkError::NoSuchLink`], or the kernel's refusal.
    pub fn open(link: &str) -> Result<Self> {
        let index = crate::links::named(link)?.index;
        Ok(Self { netlink: Rtnl::open()?, link: link.to_owned(), index })
    }

    /// The filter as it is now. The calling thread must be in the namespace of the one that opened it.
    ///
    /// # Errors
    /// The link is gone, or the kernel's refusal.
    pub fn read(&mut self) -> Result<ReceiveFilter> {
        let mut payload = vec![0; HEAD_BYTES];
        payload[4..8].copy_from_slice(&self.index.to_ne_bytes());
        let reply = self.netlink.raw_get("read a link", Raw { kind: RTM_GETLINK, payload })?;
        let found = reply.iter().find_map(|message| parse(&message.payload));
        let mut filter =
            found.ok_or_else(|| LinkError::unexpected("read a link", "an answer without the link"))?;
        const GROUPS: &str = "/proc/thread-self/net/dev_mcast";
        let text = fs::read_to_string(GROUPS).map_err(|cause| LinkError::file("read", GROUPS, cause))?;
        filter.groups = groups(&text, &self.link);
        Ok(filter)
    }
}

fn parse(payload: &[u8]) -> Option<ReceiveFilter> {
    let flags = word(payload, 8)?;
    let mut filter = ReceiveFilter {
        up: flags & IFF_UP != 0,
        all_multicast: flags & IFF_ALLMULTI != 0,
        ..ReceiveFilter::default()
    };
    let mut rest = payload.get(HEAD_BYTES..)?;
    while let Some([a, b, c, d]) = rest.first_chunk::<4>().copied() {
        let (length, kind) = (usize::from(u16::from_ne_bytes([a, b])), u16::from_ne_bytes([c, d]));
        let value = rest.get(4..length)?;
        match kind & 0x3fff {
            IFLA_ADDRESS => filter.mac = value.try_into().ok()?,
            IFLA_PROMISCUITY => filter.promiscuous = word(value, 0)? > 0,
            IFLA_ALLMULTI => filter.all_multicast |= word(value, 0)? > 0,
            _ => {}
        }
        rest = rest.get(length.next_multiple_of(4)..).unwrap_or_default();
    }
    Some(filter)
}

/// Lines of `/proc/net/dev_mcast`: index, link, users, global users, address in hex.
fn groups(text: &str, link: &str) -> Vec<MacAddress> {
    let of_link = |line: &str| {
        let words: Vec<&str> = line.split_whitespace().collect();
        let address = (words.get(1) == Some(&link)).then(|| words.get(4)).flatten()?;
        crate::raw::unhex(address)?.try_into().ok()
    };
    text.lines().filter_map(of_link).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn groups_are_those_of_the_link() {
        let text = "3    lr-dut          1     0     333300000001\n4    lr-x            1     0     01005e000001\n\
                    3    lr-dut          2     0     01005e000001\n3    lr-dut  1 0 zz\n";
        assert_eq!(groups(text, "lr-dut"), [[0x33, 0x33, 0, 0, 0, 1], [1, 0, 0x5e, 0, 0, 1]]);
    }

    #[test]
    fn an_answer_cut_anywhere_is_no_panic() {
        let mut payload = vec![0; HEAD_BYTES];
        payload[8] = 1;
        crate::raw::push_attribute(&mut payload, IFLA_ADDRESS, &[2, 0, 0, 0, 0, 1]);
        crate::raw::push_attribute(&mut payload, IFLA_PROMISCUITY, &1_u32.to_ne_bytes());
        let whole = parse(&payload).unwrap();
        assert!(whole.up && whole.promiscuous && whole.mac == [2, 0, 0, 0, 0, 1]);
        for length in 0..payload.len() {
            let _ = parse(&payload[..length]);
        }
    }
}
