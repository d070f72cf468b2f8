//! The physical side: port, speed, duplex, negotiation.

use std::collections::BTreeMap;

use netlink_packet_core::DecodeError;
use serde::{Deserialize, Serialize};

use super::attribute::{Attribute, Attributes};
use super::message::Command;
use super::{Ethtool, bitset};
use crate::error::{LinkError, Result};

const LINKINFO_PORT: u16 = 2;
const LINKMODES_AUTONEG: u16 = 2;
const LINKMODES_OURS: u16 = 3;
const LINKMODES_PEER: u16 = 4;
const LINKMODES_SPEED: u16 = 5;
const LINKMODES_DUPLEX: u16 = 6;
const LINKMODES_LANES: u16 = 9;
const LINKSTATE_LINK: u16 = 2;
const SPEED_UNKNOWN: u32 = u32::MAX;
const DUPLEX_HALF: u64 = 0;
const DUPLEX_FULL: u64 = 1;

/// What a link is on the wire. `None` where the driver does not say.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Physical {
    /// The driver sees a link.
    pub link: Option<bool>,
    /// Kind of port (`PORT_*`, linux/ethtool.h): `twisted pair`, `fibre`, `direct attach` ...
    pub port: Option<String>,
    /// Megabits a second.
    pub speed_mbit: Option<u32>,
    /// `full` or `half`.
    pub duplex: Option<String>,
    /// Lanes in use.
    pub lanes: Option<u32>,
    /// Negotiates with the other end.
    pub autonegotiation: Option<bool>,
    /// Modes that it can do; true for those that it offers.
    pub modes: BTreeMap<String, bool>,
    /// Modes that the other end offers.
    pub peer_modes: Vec<String>,
}

impl Ethtool {
    /// Port, speed, duplex and modes (`ethtool DEV`).
    ///
    /// # Errors
    /// EOPNOTSUPP where the driver has no such thing.
    pub fn physical(&mut self, link: &str) -> Result<Physical> {
        let operation = format!("read link modes of {link}");
        let mut physical = self.ask(&operation, Command::LinkmodesGet, link, Vec::new(), decode_modes)?;
        let operation = format!("read link information of {link}");
        physical.port = self.ask(&operation, Command::LinkinfoGet, link, Vec::new(), |reply| {
            Ok(reply.number(LINKINFO_PORT)?.and_then(port))
        })?;
        let operation = format!("read link state of {link}");
        physical.link = self.ask(&operation, Command::LinkstateGet, link, Vec::new(), |reply| {
            Ok(reply.number(LINKSTATE_LINK)?.map(|link| link != 0))
        })?;
        Ok(physical)
    }

    /// Sets speed (megabits a second), duplex and negotiation; `None` leaves one as it is.
    ///
    /// # Errors
    /// [`LinkError::Invalid`] for a duplex other than `full` and `half`, else the kernel's refusal.
    pub fn set_modes(
        &mut self,
        link: &str,
        speed_mbit: Option<u32>,
        duplex: Option<&str>,
        autonegotiation: Option<bool>,
    ) -> Result<()> {
        let duplex = match duplex {
            None => None,
            Some("full") => Some(DUPLEX_FULL as u8),
            Some("half") => Some(DUPLEX_HALF as u8),
            Some(other) => {
                let why = "duplex is full or half".to_owned();
                return Err(LinkError::Invalid { what: format!("duplex {other:?}"), why });
            }
        };
        let attributes = [
            autonegotiation.map(|on| Attribute::u8(LINKMODES_AUTONEG, on.into())),
            speed_mbit.map(|speed| Attribute::u32(LINKMODES_SPEED, speed)),
            duplex.map(|duplex| Attribute::u8(LINKMODES_DUPLEX, duplex)),
        ];
        let attributes = attributes.into_iter().flatten().collect();
        self.send(&format!("set link modes of {link}"), Command::LinkmodesSet, link, attributes).map(|_| ())
    }
}

pub(super) fn decode_modes(reply: &Attributes<'_>) -> std::result::Result<Physical, DecodeError> {
    let set = |kind| reply.nest(kind)?.map(|set| bitset::decode(&set)).transpose();
    Ok(Physical {
        // 0 and -1 both stand for unknown (SPEED_UNKNOWN, linux/ethtool.h).
        speed_mbit: reply.u32(LINKMODES_SPEED)?.filter(|speed| *speed != 0 && *speed != SPEED_UNKNOWN),
        duplex: reply.number(LINKMODES_DUPLEX)?.and_then(duplex),
        lanes: reply.u32(LINKMODES_LANES)?.filter(|lanes| *lanes != 0),
        autonegotiation: reply.number(LINKMODES_AUTONEG)?.map(|on| on != 0),
        modes: set(LINKMODES_OURS)?.unwrap_or_default(),
        peer_modes: set(LINKMODES_PEER)?.unwrap_or_default().into_keys().collect(),
        ..Physical::default()
    })
}

fn duplex(value: u64) -> Option<String> {
    match value {
        DUPLEX_HALF => Some("half".to_owned()),
        DUPLEX_FULL => Some("full".to_owned()),
        _ => None,
    }
}

/// `PORT_*` of linux/ethtool.h; 0xef is "none" and 0xff "other", which say nothing.
fn port(value: u64) -> Option<String> {
    let name = match value {
        0 => "twisted pair",
        1 => "AUI",
        2 => "MII",
        3 => "fibre",
        4 => "BNC",
        5 => "direct attach",
        _ => return None,
    };
    Some(name.to_owned())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn hostile_bytes_never_panic(bytes in proptest::collection::vec(any::<u8>(), 0..256)) {
            if let Ok(reply) = Attributes::parse(&bytes) {
                let _ = decode_modes(&reply);
            }
        }
    }
}
