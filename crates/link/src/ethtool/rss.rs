//! Receive-side scaling: how a hash of a packet picks its queue.

use netlink_packet_core::DecodeError;
use serde::{Deserialize, Serialize};

use super::Ethtool;
use super::attribute::Attributes;
use super::message::Command;
use crate::error::Result;

const RSS_HFUNC: u16 = 3;
const RSS_INDIR: u16 = 4;
const RSS_HKEY: u16 = 5;

/// The state of receive-side scaling (`ethtool -x`).
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Rss {
    /// Hash functions in use, a bit each: 1 Toeplitz, 2 XOR, 4 CRC32 (`ETH_RSS_HASH_*`, linux/ethtool.h).
    pub hash_functions: Option<u32>,
    /// Queue for each value of the hash modulo the table's length.
    pub indirection: Vec<u32>,
    /// The hash key.
    pub key: Vec<u8>,
}

impl Ethtool {
    /// The main context's receive-side scaling.
    ///
    /// # Errors
    /// EOPNOTSUPP where the driver has none, or the kernel is older than 6.2.
    pub fn rss(&mut self, link: &str) -> Result<Rss> {
        self.ask(&format!("read receive-side scaling of {link}"), Command::RssGet, link, Vec::new(), decode)
    }
}

pub(super) fn decode(reply: &Attributes<'_>) -> std::result::Result<Rss, DecodeError> {
    let indirection = reply.bytes(RSS_INDIR).unwrap_or_default();
    let (words, rest) = indirection.as_chunks::<4>();
    if !rest.is_empty() {
        return Err(DecodeError::from("a table that is not of 32-bit numbers"));
    }
    Ok(Rss {
        hash_functions: reply.u32(RSS_HFUNC)?,
        indirection: words.iter().map(|word| u32::from_ne_bytes(*word)).collect(),
        key: reply.bytes(RSS_HKEY).unwrap_or_default().to_vec(),
    })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn hostile_bytes_never_panic(bytes in proptest::collection::vec(any::<u8>(), 0..128)) {
            if let Ok(reply) = Attributes::parse(&bytes) {
                let _ = decode(&reply);
            }
        }
    }
}
