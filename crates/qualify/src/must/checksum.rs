//! The Internet checksum (RFC 1071), and whether a frame's checksums are right.

use super::parse::{Layers, Network, ParseError, parse};

/// One's complement sum of 16-bit words on top of `start`, folded, not complemented. An odd last byte is the high one.
pub fn internet_sum(start: u16, bytes: &[u8]) -> u16 {
    let mut sum = u64::from(start);
    for word in bytes.chunks(2) {
        let low = word.get(1).copied().unwrap_or(0);
        sum += u64::from(u16::from_be_bytes([word[0], low]));
    }
    while sum > 0xffff {
        sum = (sum & 0xffff) + (sum >> 16);
    }
    sum as u16
}

/// What is wrong with a frame's checksums.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum SumError {
    /// The frame can't be read so far as to have one.
    #[error("{0}")]
    Unreadable(#[from] ParseError),
    /// The IPv4 header's.
    #[error("IPv4 header checksum is {found:#06x}, must be {right:#06x}")]
    Header {
        /// What stands there.
        found: u16,
        /// What must.
        right: u16,
        /// Where, bytes from the start of the frame.
        at: usize,
    },
    /// The transport's.
    #[error("{protocol} checksum is {found:#06x}, must be {right:#06x}")]
    Transport {
        /// `TCP`, `UDP`, `ICMP`, `ICMPv6`.
        protocol: &'static str,
        /// What stands there.
        found: u16,
        /// What must.
        right: u16,
        /// Where, bytes from the start of the frame.
        at: usize,
    },
}

impl SumError {
    /// Where the wrong checksum is, bytes from the start of the frame.
    pub fn offset(&self) -> Option<usize> {
        match self {
            Self::Unreadable(_) => None,
            Self::Header { at, .. } | Self::Transport { at, .. } => Some(*at),
        }
    }
}

/// Checks every checksum of a frame as it was on the wire. Padding behind the IP datagram is not part of any. A fragment has
/// no transport checksum of its own.
///
/// # Errors
/// The first that is wrong.
pub fn check(frame: &[u8]) -> Result<(), SumError> {
    let layers = parse(frame)?;
    if let Some(header) = &layers.network
        && header.network == Network::V4
    {
        let bytes = &frame[header.at..header.at + header.base_bytes];
        if internet_sum(0, bytes) != 0xffff {
            let at = header.at + 10;
            let found = u16::from_be_bytes([frame[at], frame[at + 1]]);
            let right = right_sum(0, bytes, 10);
            return Err(SumError::Header { found, right, at });
        }
    }
    check_transport(frame, &layers)
}

fn check_transport(frame: &[u8], layers: &Layers) -> Result<(), SumError> {
    let Some(header) = layers.network.as_ref().filter(|header| !header.is_fragment) else { return Ok(()) };
    let (name, offset, has_pseudo) = match (header.protocol, header.network) {
        (6, _) => ("TCP", 16, true),
        (17, _) => ("UDP", 6, true),
        (1, Network::V4) => ("ICMP", 2, false),
        (58, Network::V6) => ("ICMPv6", 2, true),
        _ => return Ok(()),
    };
    let segment = &frame[header.transport_at..header.end];
    let at = header.transport_at + offset;
    let Some(field) = segment.get(offset..offset + 2) else {
        return Err(ParseError::Short { what: name, at: header.transport_at }.into());
    };
    let found = u16::from_be_bytes([field[0], field[1]]);
    if header.protocol == 17 && header.network == Network::V4 && found == 0 {
        return Ok(()); // no checksum (RFC 768)
    }
    let pseudo = if has_pseudo { pseudo_sum(frame, header, segment.len()) } else { 0 };
    let right = match right_sum(pseudo, segment, offset) {
        0 if header.protocol == 17 => 0xffff,
        sum => sum,
    };
    // TCP's zero has two forms in one's complement.
    let same = found == right || (header.protocol != 17 && internet_sum(pseudo, segment) == 0xffff);
    if same { Ok(()) } else { Err(SumError::Transport { protocol: name, found, right, at }) }
}

fn pseudo_sum(frame: &[u8], header: &super::parse::Header, segment_bytes: usize) -> u16 {
    let addresses = match header.network {
        Network::V4 => &frame[header.at + 12..header.at + 20],
        Network::V6 => &frame[header.at + 8..header.at + 40],
    };
    let sum = internet_sum(u16::from(header.protocol), addresses);
    internet_sum(sum, &(segment_bytes as u32).to_be_bytes())
}

fn right_sum(start: u16, bytes: &[u8], field_at: usize) -> u16 {
    let mut bytes = bytes.to_vec();
    bytes[field_at..field_at + 2].fill(0);
    !internet_sum(start, &bytes)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::frame::{Extension, Hosts, Packet, Sum, Version};

    #[test]
    fn the_sum_is_that_of_rfc_1071() {
        assert_eq!(internet_sum(0, &[0x00, 0x01, 0xf2, 0x03, 0xf4, 0xf5, 0xf6, 0xf7]), 0xddf2);
        assert_eq!(internet_sum(0, &[0x12]), 0x1200);
    }

    #[test]
    fn a_header_known_from_elsewhere_is_right() {
        // The example of RFC 1071's explanations: 45 00 00 73 ... b861.
        let header =
            [0x45, 0, 0, 0x73, 0, 0, 0x40, 0, 0x40, 0x11, 0xb8, 0x61, 0xc0, 0xa8, 0, 1, 0xc0, 0xa8, 0, 0xc7];
        assert_eq!(internet_sum(0, &header), 0xffff);
    }

    #[test]
    fn built_packets_are_right_and_each_flipped_bit_shows() {
        let hosts = Hosts::nobody([2; 6], [4; 6]);
        for version in [Version::V4, Version::V6] {
            for length in 0..70 {
                let payload: Vec<u8> = (0..length).collect();
                let udp = Packet::udp(&hosts, version, payload.clone());
                let mut tcp = Packet::tcp(&hosts, version, payload);
                if let Some(ip) = tcp.v6() {
                    ip.extensions.push(Extension::padding(60, 16));
                }
                if let Some(ip) = tcp.v4() {
                    ip.options = vec![1; 8];
                }
                for packet in [&udp, &tcp] {
                    let mut frame = packet.frame();
                    frame.extend([0xa5; 9]); // padding is in no sum
                    assert_eq!(check(&frame), Ok(()), "{packet:?}");
                }
                let wrong = Packet { sum: Sum::Flipped(1 << (length % 16)), ..tcp };
                assert!(matches!(check(&wrong.frame()), Err(SumError::Transport { protocol: "TCP", .. })));
            }
        }
    }
}
