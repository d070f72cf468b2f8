//! Frames built byte by byte: what a case sends.
//!
//! [`probe()`] makes a bare probe; [`Packet`] puts headers around a payload and can leave checksum and segmentation to the NIC.

mod ip;
mod packet;
mod transport;

use std::net::{Ipv4Addr, Ipv6Addr};

use linerate_model::bench::frame::{MacAddress, Tag};
use linerate_model::bench::probe::{self, ProbeId};
use linerate_model::bench::{FrameIn, FrameOut};

pub use ip::{Extension, Ipv4, Ipv6, Network};
pub use packet::{PORTS, Packet, Sum};
pub use transport::{Tcp, Transport, Udp, flags};

/// Bytes of an Ethernet header without tags.
pub const ETHERNET_BYTES: usize = 14;
/// Bytes of a VLAN tag.
pub const TAG_BYTES: usize = 4;
/// Shortest Ethernet frame without FCS (IEEE Std 802.3 section 4.4.2).
pub const SHORTEST_BYTES: usize = 60;
/// EtherType of IPv4.
pub const ETHER_TYPE_IPV4: u16 = 0x0800;
/// EtherType of IPv6.
pub const ETHER_TYPE_IPV6: u16 = 0x86dd;
/// TPID of a customer tag (IEEE Std 802.1Q).
pub const TPID_CUSTOMER: u16 = 0x8100;
/// TPID of a service tag (IEEE Std 802.1ad).
pub const TPID_SERVICE: u16 = 0x88a8;
/// All stations.
pub const BROADCAST: MacAddress = [0xff; 6];

/// Addresses of both ends of what is sent one way. The IP addresses belong to nobody, so that no stack answers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Hosts {
    /// Destination hardware address.
    pub to_mac: MacAddress,
    /// Source hardware address.
    pub from_mac: MacAddress,
    /// Destination IPv4 address.
    pub to_v4: Ipv4Addr,
    /// Source IPv4 address.
    pub from_v4: Ipv4Addr,
    /// Destination IPv6 address.
    pub to_v6: Ipv6Addr,
    /// Source IPv6 address.
    pub from_v6: Ipv6Addr,
}

impl Hosts {
    /// Addresses that no host has, in the networks for benchmarks (RFC 2544 appendix C.2.2, RFC 5180 section 8).
    pub fn nobody(to_mac: MacAddress, from_mac: MacAddress) -> Self {
        Self {
            to_mac,
            from_mac,
            to_v4: Ipv4Addr::new(198, 19, 251, 2),
            from_v4: Ipv4Addr::new(198, 19, 251, 1),
            to_v6: Ipv6Addr::new(0x2001, 2, 0, 0xfb, 0, 0, 0, 2),
            from_v6: Ipv6Addr::new(0x2001, 2, 0, 0xfb, 0, 0, 0, 1),
        }
    }
}

/// IPv4 or IPv6.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Version {
    /// IPv4.
    V4,
    /// IPv6.
    V6,
}

impl Version {
    /// `v4` or `v6`, as variants name it.
    pub fn word(self) -> &'static str {
        match self {
            Self::V4 => "v4",
            Self::V6 => "v6",
        }
    }
}

/// An Ethernet frame without FCS; not padded.
pub fn ethernet(to: MacAddress, from: MacAddress, tags: &[Tag], ether_type: u16, payload: &[u8]) -> Vec<u8> {
    let mut frame = Vec::with_capacity(ETHERNET_BYTES + tags.len() * TAG_BYTES + payload.len());
    frame.extend(to);
    frame.extend(from);
    for tag in tags {
        frame.extend(tag.protocol.to_be_bytes());
        frame.extend(tag.control.to_be_bytes());
    }
    frame.extend(ether_type.to_be_bytes());
    frame.extend(payload);
    frame
}

/// A bare probe frame of `length_bytes` without FCS, at least 14.
pub fn probe(hosts: &Hosts, id: ProbeId, length_bytes: usize) -> Vec<u8> {
    let payload = probe::payload(id, length_bytes.saturating_sub(ETHERNET_BYTES));
    ethernet(hosts.to_mac, hosts.from_mac, &[], probe::ETHER_TYPE, &payload)
}

/// A bare probe behind tags; `length_bytes` counts the tags.
pub fn tagged_probe(hosts: &Hosts, tags: &[Tag], id: ProbeId, length_bytes: usize) -> Vec<u8> {
    let headers = ETHERNET_BYTES + tags.len() * TAG_BYTES;
    let payload = probe::payload(id, length_bytes.saturating_sub(headers));
    ethernet(hosts.to_mac, hosts.from_mac, tags, probe::ETHER_TYPE, &payload)
}

/// A tag from its parts: TPID, priority (0 to 7), drop eligible, id (0 to 4095).
pub fn tag(protocol: u16, priority: u8, drop_eligible: bool, id: u16) -> Tag {
    let control = (u16::from(priority & 7) << 13) | (u16::from(drop_eligible) << 12) | (id & 0xfff);
    Tag { protocol, control }
}

/// Bytes to send as they are.
pub fn out(bytes: Vec<u8>) -> FrameOut {
    FrameOut { bytes: bytes.into(), offload: None }
}

/// A captured frame as it was on the wire: with the tag that the driver took out.
pub fn on_the_wire(frame: &FrameIn) -> Vec<u8> {
    let Some(tag) = frame.tag.filter(|_| frame.bytes.len() >= 12) else { return frame.bytes.0.clone() };
    let mut bytes = Vec::with_capacity(frame.bytes.len() + TAG_BYTES);
    bytes.extend(&frame.bytes[..12]);
    bytes.extend(tag.protocol.to_be_bytes());
    bytes.extend(tag.control.to_be_bytes());
    bytes.extend(&frame.bytes[12..]);
    bytes
}

#[cfg(test)]
mod tests {
    use super::*;
    use linerate_model::bench::frame::{Addressed, ChecksumWord};
    use linerate_model::bench::probe::Probe;

    #[test]
    fn a_probe_frame_has_its_length_and_is_known_again() {
        let hosts = Hosts::nobody([2; 6], [4; 6]);
        let id = ProbeId { run: 1, stream: 2, sequence: 3 };
        for length in [14, 45, 60, 1514] {
            assert_eq!(probe(&hosts, id, length).len(), length);
        }
        let frame = tagged_probe(&hosts, &[tag(TPID_CUSTOMER, 5, true, 100)], id, 100);
        assert_eq!(frame.len(), 100);
        assert_eq!(frame[12..18], [0x81, 0, 0xb0, 100, 0x88, 0xb5]);
        assert_eq!(linerate_model::bench::probe::read(&frame[18..]), Probe::Whole { id, bytes: 82 });
    }

    #[test]
    fn a_tag_that_was_taken_out_goes_back_to_its_place() {
        let hosts = Hosts::nobody([2; 6], [4; 6]);
        let sent = ethernet(hosts.to_mac, hosts.from_mac, &[tag(TPID_SERVICE, 1, false, 7)], 0x88b5, b"abc");
        let mut stripped = sent.clone();
        stripped.drain(12..16);
        let got = FrameIn {
            length_bytes: 17,
            bytes: stripped.into(),
            time_ns: 0,
            tag: Some(tag(TPID_SERVICE, 1, false, 7)),
            checksum: ChecksumWord::None,
            addressed: Addressed::Host,
            offload: None,
        };
        assert_eq!(on_the_wire(&got), sent);
    }
}
