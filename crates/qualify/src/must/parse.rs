//! Reads a captured frame: where each header begins, whatever stands in it.

use linerate_model::bench::frame::Tag;

/// Why a frame can't be read.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ParseError {
    /// It ends within a header, or before the length that a header tells.
    #[error("the frame ends within its {what} at byte {at}")]
    Short {
        /// Which header.
        what: &'static str,
        /// Where it begins.
        at: usize,
    },
    /// A length or version field that cannot be.
    #[error("{what} has a {field} of {value}")]
    Field {
        /// Which header.
        what: &'static str,
        /// Which field.
        field: &'static str,
        /// Its value.
        value: usize,
    },
}

/// IP version of a header.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Network {
    /// IPv4.
    V4,
    /// IPv6.
    V6,
}

/// The IP header of a frame.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Header {
    /// IP version.
    pub network: Network,
    /// Where it begins, bytes from the start of the frame.
    pub at: usize,
    /// Bytes of the header itself: with options, without IPv6 extensions.
    pub base_bytes: usize,
    /// Protocol behind it and its extensions.
    pub protocol: u8,
    /// Where that begins.
    pub transport_at: usize,
    /// Where the datagram ends by its own length; padding is behind it.
    pub end: usize,
    /// It is a fragment.
    pub is_fragment: bool,
    /// Identification (IPv4).
    pub id: u16,
}

/// A frame's headers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Layers {
    /// VLAN tags in the frame, the outer first.
    pub tags: Vec<Tag>,
    /// EtherType behind the tags.
    pub ether_type: u16,
    /// Where that EtherType's payload begins.
    pub payload_at: usize,
    /// The IP header, where there is one.
    pub network: Option<Header>,
}

/// Reads a frame without FCS.
///
/// # Errors
/// Where a header does not fit, or contradicts itself.
pub fn parse(frame: &[u8]) -> Result<Layers, ParseError> {
    let mut tags = Vec::new();
    let mut at = 12;
    let ether_type = loop {
        let kind = word(frame, at, "Ethernet header")?;
        at += 2;
        if !matches!(kind, 0x8100 | 0x88a8 | 0x9100) {
            break kind;
        }
        tags.push(Tag { protocol: kind, control: word(frame, at, "VLAN tag")? });
        at += 2;
    };
    let network = match ether_type {
        0x0800 => Some(ipv4(frame, at)?),
        0x86dd => Some(ipv6(frame, at)?),
        _ => None,
    };
    Ok(Layers { tags, ether_type, payload_at: at, network })
}

fn ipv4(frame: &[u8], at: usize) -> Result<Header, ParseError> {
    const WHAT: &str = "IPv4 header";
    let fixed = frame.get(at..at + 20).ok_or(ParseError::Short { what: WHAT, at })?;
    let version = usize::from(fixed[0] >> 4);
    let base_bytes = usize::from(fixed[0] & 15) * 4;
    let total = usize::from(u16::from_be_bytes([fixed[2], fixed[3]]));
    if version != 4 {
        return Err(ParseError::Field { what: WHAT, field: "version", value: version });
    }
    if base_bytes < 20 || base_bytes > total {
        return Err(ParseError::Field { what: WHAT, field: "header length", value: base_bytes });
    }
    if at + total > frame.len() {
        return Err(ParseError::Short { what: "IPv4 datagram", at });
    }
    let fragment = u16::from_be_bytes([fixed[6], fixed[7]]);
    Ok(Header {
        network: Network::V4,
        at,
        base_bytes,
        protocol: fixed[9],
        transport_at: at + base_bytes,
        end: at + total,
        is_fragment: fragment & 0x3fff != 0,
        id: u16::from_be_bytes([fixed[4], fixed[5]]),
    })
}

fn ipv6(frame: &[u8], at: usize) -> Result<Header, ParseError> {
    const WHAT: &str = "IPv6 header";
    let fixed = frame.get(at..at + 40).ok_or(ParseError::Short { what: WHAT, at })?;
    let version = usize::from(fixed[0] >> 4);
    if version != 6 {
        return Err(ParseError::Field { what: WHAT, field: "version", value: version });
    }
    let end = at + 40 + usize::from(u16::from_be_bytes([fixed[4], fixed[5]]));
    if end > frame.len() {
        return Err(ParseError::Short { what: "IPv6 datagram", at });
    }
    let (mut protocol, mut next_at, mut is_fragment) = (fixed[6], at + 40, false);
    while matches!(protocol, 0 | 43 | 44 | 60) && !is_fragment {
        let extension = frame
            .get(next_at..end)
            .and_then(|rest| rest.get(..8))
            .ok_or(ParseError::Short { what: "IPv6 extension header", at: next_at })?;
        is_fragment = protocol == 44;
        let bytes = if is_fragment { 8 } else { (usize::from(extension[1]) + 1) * 8 };
        protocol = extension[0];
        next_at += bytes;
    }
    if next_at > end {
        return Err(ParseError::Short { what: "IPv6 extension header", at: next_at });
    }
    Ok(Header {
        network: Network::V6,
        at,
        base_bytes: 40,
        protocol,
        transport_at: next_at,
        end,
        is_fragment,
        id: 0,
    })
}

fn word(frame: &[u8], at: usize, what: &'static str) -> Result<u16, ParseError> {
    match frame.get(at..at + 2) {
        Some(bytes) => Ok(u16::from_be_bytes([bytes[0], bytes[1]])),
        None => Err(ParseError::Short { what, at }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::frame::{Extension, Hosts, Packet, TPID_CUSTOMER, TPID_SERVICE, Version, tag};

    #[test]
    fn headers_are_found_behind_tags_options_and_extensions() {
        let hosts = Hosts::nobody([2; 6], [4; 6]);
        for version in [Version::V4, Version::V6] {
            let mut packet = Packet::tcp(&hosts, version, vec![7; 33]);
            packet.tags = vec![tag(TPID_SERVICE, 0, false, 5), tag(TPID_CUSTOMER, 3, false, 6)];
            if let Some(ip) = packet.v4() {
                ip.options = vec![1; 5];
            }
            if let Some(ip) = packet.v6() {
                ip.extensions = vec![Extension::padding(0, 8), Extension::padding(60, 24)];
            }
            let frame = packet.frame();
            let layers = parse(&frame).unwrap();
            assert_eq!(layers.tags, packet.tags);
            let header = layers.network.unwrap();
            assert_eq!(header.transport_at, packet.transport_at());
            assert_eq!((header.protocol, header.end), (6, frame.len()));
        }
    }

    #[test]
    fn no_frame_makes_it_panic() {
        let hosts = Hosts::nobody([2; 6], [4; 6]);
        let mut packet = Packet::udp(&hosts, Version::V6, vec![0; 40]);
        packet.v6().unwrap().extensions = vec![Extension::padding(60, 16)];
        let frame = packet.frame();
        for length in 0..frame.len() {
            assert!(parse(&frame[..length]).is_err());
        }
        for at in 12..frame.len() {
            for value in [0, 1, 0x45, 0x60, 0x7f, 0xff] {
                let mut changed = frame.clone();
                changed[at] = value;
                let _ = crate::must::checksum::check(&changed);
            }
        }
    }
}
