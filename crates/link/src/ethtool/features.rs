//! Features (offloads) by their kernel names.

use std::collections::BTreeMap;

use netlink_packet_core::DecodeError;
use serde::{Deserialize, Serialize};

use super::attribute::Attributes;
use super::message::{Command, EthtoolMessage};
use super::{Ethtool, bitset};
use crate::error::{LinkError, Result};

const FEATURES_HW: u16 = 2;
const FEATURES_WANTED: u16 = 3;
const FEATURES_ACTIVE: u16 = 4;
const FEATURES_NOCHANGE: u16 = 5;

/// One feature's state.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct FeatureState {
    /// It is on.
    pub active: bool,
    /// Someone asked for it to be on. It can be wanted and off, when another feature that it needs is off.
    pub wanted: bool,
    /// The driver can switch it.
    pub hardware: bool,
    /// It can be switched: the driver can, and the kernel allows it.
    pub changeable: bool,
}

impl Ethtool {
    /// Every feature that the kernel knows, by its name (`tx-tcp-segmentation`).
    ///
    /// # Errors
    /// The kernel's refusal.
    pub fn features(&mut self, link: &str) -> Result<BTreeMap<String, FeatureState>> {
        self.ask(&format!("read features of {link}"), Command::FeaturesGet, link, Vec::new(), decode)
    }

    /// Switches features and returns all whose state changed, which may be more: one can drag another along (TSO takes
    /// `tx-tcp-mangleid-segmentation` with it). Keep the whole of [`Self::features`] to put things back.
    ///
    /// # Errors
    /// [`LinkError::FeatureKept`] when one stays as it was, with what did change by then; EOPNOTSUPP or EINVAL with the
    /// kernel's words for a name that it does not know.
    pub fn set_features(
        &mut self,
        link: &str,
        wanted: &BTreeMap<String, bool>,
    ) -> Result<BTreeMap<String, bool>> {
        let list: Vec<_> =
            wanted.iter().map(|(name, on)| format!("{name}={}", if *on { "on" } else { "off" })).collect();
        let operation = format!("set {} on {link}", list.join(" "));
        let request = vec![bitset::encode(FEATURES_WANTED, wanted)];
        let replies = self.send(&operation, Command::FeaturesSet, link, request)?;
        let (mut kept, mut changed) = (BTreeMap::new(), BTreeMap::new());
        // No reply means that everything is as wanted already and nothing changed.
        for reply in &replies {
            let EthtoolMessage::Reply(payload) = reply else { continue };
            let read = || -> std::result::Result<_, DecodeError> {
                let reply = Attributes::parse(payload)?;
                Ok((set(&reply, FEATURES_WANTED)?, set(&reply, FEATURES_ACTIVE)?))
            };
            (kept, changed) = read().map_err(|error| LinkError::unexpected(&operation, error.to_string()))?;
        }
        if kept.is_empty() {
            return Ok(changed);
        }
        let place = crate::netns::place();
        Err(LinkError::FeatureKept {
            operation: operation + &place,
            kept: kept.into_keys().collect(),
            changed,
        })
    }
}

fn set(reply: &Attributes<'_>, kind: u16) -> std::result::Result<BTreeMap<String, bool>, DecodeError> {
    reply.nest(kind)?.map_or_else(|| Ok(BTreeMap::new()), |set| bitset::decode(&set))
}

pub(super) fn decode(
    reply: &Attributes<'_>,
) -> std::result::Result<BTreeMap<String, FeatureState>, DecodeError> {
    // Only this set lists every feature that there is.
    let mut features: BTreeMap<_, _> = set(reply, FEATURES_HW)?
        .into_iter()
        // The kernel keeps the places of features that it had once, without names.
        .filter(|(name, _)| !name.is_empty())
        .map(|(name, hardware)| {
            (name, FeatureState { hardware, changeable: hardware, ..FeatureState::default() })
        })
        .collect();
    for (kind, mark) in [
        (FEATURES_WANTED, (|state| state.wanted = true) as fn(&mut FeatureState)),
        (FEATURES_ACTIVE, |state| state.active = true),
        (FEATURES_NOCHANGE, |state| state.changeable = false),
    ] {
        for (name, _) in set(reply, kind)?.into_iter().filter(|(_, on)| *on) {
            mark(features.entry(name).or_default());
        }
    }
    Ok(features)
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
