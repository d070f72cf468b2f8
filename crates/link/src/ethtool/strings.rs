//! Names that the kernel and the driver give to what ethtool shows, and the driver's private flags.

use std::collections::BTreeMap;

use netlink_packet_core::DecodeError;

use super::attribute::{Attribute, Attributes};
use super::message::Command;
use super::{Ethtool, bitset};
use crate::error::Result;

const STRSET_STRINGSETS: u16 = 2;
const STRINGSETS_STRINGSET: u16 = 1;
const STRINGSET_ID: u16 = 1;
const STRINGSET_STRINGS: u16 = 3;
const STRINGS_STRING: u16 = 1;
const STRING_INDEX: u16 = 1;
const STRING_VALUE: u16 = 2;
const PRIVFLAGS_FLAGS: u16 = 2;

/// A set of names (`ETH_SS_*`, linux/ethtool.h).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u32)]
pub enum StringSet {
    /// Self-tests.
    Tests = 0,
    /// Driver statistics. Cut at 64 KiB here: [`super::statistics`] has them all.
    Statistics = 1,
    /// Private flags.
    PrivateFlags = 2,
    /// Features.
    Features = 4,
    /// Receive hash functions.
    HashFunctions = 5,
}

impl Ethtool {
    /// The names in a set, by their index.
    ///
    /// # Errors
    /// EOPNOTSUPP where the driver does not have the set.
    pub fn strings(&mut self, link: &str, set: StringSet) -> Result<BTreeMap<u32, String>> {
        let id = Attribute::u32(STRINGSET_ID, set as u32);
        let sets = vec![Attribute::nest(STRINGSETS_STRINGSET, vec![id])];
        let request = vec![Attribute::nest(STRSET_STRINGSETS, sets)];
        self.ask(&format!("read names of {set:?} of {link}"), Command::StrsetGet, link, request, decode)
    }

    /// The driver's private flags (`ethtool --show-priv-flags`).
    ///
    /// # Errors
    /// EOPNOTSUPP where the driver has none.
    pub fn private_flags(&mut self, link: &str) -> Result<BTreeMap<String, bool>> {
        let operation = format!("read private flags of {link}");
        self.ask(&operation, Command::PrivflagsGet, link, Vec::new(), |reply| {
            reply.nest(PRIVFLAGS_FLAGS)?.map_or_else(|| Ok(BTreeMap::new()), |set| bitset::decode(&set))
        })
    }

    /// Switches private flags; those not named stay.
    ///
    /// # Errors
    /// The kernel's refusal.
    pub fn set_private_flags(&mut self, link: &str, flags: &BTreeMap<String, bool>) -> Result<()> {
        let request = vec![bitset::encode(PRIVFLAGS_FLAGS, flags)];
        self.send(&format!("set private flags of {link}"), Command::PrivflagsSet, link, request).map(|_| ())
    }
}

pub(super) fn decode(reply: &Attributes<'_>) -> std::result::Result<BTreeMap<u32, String>, DecodeError> {
    let mut names = BTreeMap::new();
    let Some(sets) = reply.nest(STRSET_STRINGSETS)? else { return Ok(names) };
    for set in sets.all(STRINGSETS_STRINGSET) {
        let Some(strings) = Attributes::parse(set)?.nest(STRINGSET_STRINGS)? else { continue };
        for string in strings.all(STRINGS_STRING) {
            let string = Attributes::parse(string)?;
            if let (Some(index), Some(name)) = (string.u32(STRING_INDEX)?, string.text(STRING_VALUE)?) {
                names.insert(index, name);
            }
        }
    }
    Ok(names)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn hostile_bytes_never_panic(bytes in proptest::collection::vec(any::<u8>(), 0..256)) {
            if let Ok(reply) = Attributes::parse(&bytes) {
                let _ = decode(&reply);
            }
        }
    }
}
