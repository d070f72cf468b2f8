//! A packet from its parts, with its checksum right, wrong, or left to the NIC.

use linerate_model::bench::FrameOut;
use linerate_model::bench::frame::{Offload, PartialChecksum, Segmentation, SegmentationKind, Tag};

use super::{ETHERNET_BYTES, Hosts, Ipv4, Ipv6, Network, TAG_BYTES, Tcp, Transport, Udp, Version, ethernet};
use crate::must::checksum::internet_sum;

/// Ports that the suite sends from and to where a case does not choose.
pub const PORTS: (u16, u16) = (50_321, 50_322);

/// What stands in the transport checksum.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Sum {
    /// The right one; for UDP never 0 (RFC 768).
    Right,
    /// The sum of the pseudo header, as a packet has it whose checksum the NIC is to finish.
    Pseudo,
    /// This.
    Value(u16),
    /// The right one with these bits flipped.
    Flipped(u16),
}

/// A packet in its parts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Packet {
    /// Hardware addresses.
    pub hosts: Hosts,
    /// VLAN tags, the outer first.
    pub tags: Vec<Tag>,
    /// IP header.
    pub network: Network,
    /// Transport header.
    pub transport: Transport,
    /// Payload.
    pub payload: Vec<u8>,
    /// Transport checksum.
    pub sum: Sum,
}

impl Packet {
    /// A UDP datagram between addresses of nobody.
    pub fn udp(hosts: &Hosts, version: Version, payload: Vec<u8>) -> Self {
        let (from, to) = PORTS;
        Self::new(hosts, version, Transport::Udp(Udp { from, to, wrong_length: None }), payload)
    }

    /// A TCP segment between addresses of nobody.
    pub fn tcp(hosts: &Hosts, version: Version, payload: Vec<u8>) -> Self {
        let (from, to) = PORTS;
        Self::new(hosts, version, Transport::Tcp(Tcp::new(from, to)), payload)
    }

    /// A packet with plain headers.
    pub fn new(hosts: &Hosts, version: Version, transport: Transport, payload: Vec<u8>) -> Self {
        let network = match version {
            Version::V4 => Network::V4(Ipv4::new(hosts.from_v4, hosts.to_v4)),
            Version::V6 => Network::V6(Ipv6::new(hosts.from_v6, hosts.to_v6)),
        };
        Self { hosts: *hosts, tags: Vec::new(), network, transport, payload, sum: Sum::Right }
    }

    /// Its IPv4 header, where it has one.
    pub fn v4(&mut self) -> Option<&mut Ipv4> {
        match &mut self.network {
            Network::V4(ip) => Some(ip),
            Network::V6(_) => None,
        }
    }

    /// Its IPv6 header, where it has one.
    pub fn v6(&mut self) -> Option<&mut Ipv6> {
        match &mut self.network {
            Network::V6(ip) => Some(ip),
            Network::V4(_) => None,
        }
    }

    /// Its TCP header, where it has one.
    pub fn tcp_header(&mut self) -> Option<&mut Tcp> {
        match &mut self.transport {
            Transport::Tcp(tcp) => Some(tcp),
            _ => None,
        }
    }

    /// Where the IP header begins in the frame.
    pub fn network_at(&self) -> usize {
        ETHERNET_BYTES + self.tags.len() * TAG_BYTES
    }

    /// Where the transport header begins in the frame.
    pub fn transport_at(&self) -> usize {
        self.network_at() + self.network.header_bytes()
    }

    /// Where the payload begins in the frame.
    pub fn payload_at(&self) -> usize {
        self.transport_at() + self.transport.header_bytes()
    }

    /// The frame, not padded.
    pub fn frame(&self) -> Vec<u8> {
        let protocol = self.transport.protocol();
        let mut segment = self.transport.header(self.payload.len());
        segment.extend(&self.payload);
        if let Some(at) = self.transport.sum_offset() {
            let sum = self.transport_sum(protocol, &segment);
            segment[at..at + 2].copy_from_slice(&sum.to_be_bytes());
        }
        let mut packet = self.network.header(protocol, segment.len());
        packet.extend(segment);
        ethernet(self.hosts.to_mac, self.hosts.from_mac, &self.tags, self.network.ether_type(), &packet)
    }

    fn transport_sum(&self, protocol: u8, segment: &[u8]) -> u16 {
        let pseudo = self.network.pseudo_sum(protocol, segment.len());
        let right = match !internet_sum(pseudo, segment) {
            0 if protocol == 17 => 0xffff,
            sum => sum,
        };
        match self.sum {
            Sum::Right => right,
            Sum::Pseudo => pseudo,
            Sum::Value(value) => value,
            Sum::Flipped(bits) => right ^ bits,
        }
    }

    /// To send as it is.
    pub fn out(&self) -> FrameOut {
        super::out(self.frame())
    }

    /// To send with the checksum left to the NIC.
    pub fn sum_left_to_nic(&self) -> FrameOut {
        let bytes = Self { sum: Sum::Pseudo, ..self.clone() }.frame();
        FrameOut { bytes: bytes.into(), offload: Some(self.offload(None)) }
    }

    /// To send with checksum and segmentation left to the NIC. CWR goes on the first segment alone (RFC 3168 section 6.1.2).
    pub fn segments_left_to_nic(&self, segment_bytes: u16) -> FrameOut {
        let bytes = Self { sum: Sum::Pseudo, ..self.clone() }.frame();
        let (kind, ecn) = match (&self.transport, &self.network) {
            (Transport::Tcp(tcp), Network::V4(_)) => {
                (SegmentationKind::Tcp4, tcp.flags & super::flags::CWR != 0)
            }
            (Transport::Tcp(tcp), Network::V6(_)) => {
                (SegmentationKind::Tcp6, tcp.flags & super::flags::CWR != 0)
            }
            _ => (SegmentationKind::Udp, false),
        };
        let segmentation = Segmentation { kind, size_bytes: segment_bytes, ecn };
        FrameOut { bytes: bytes.into(), offload: Some(self.offload(Some(segmentation))) }
    }

    fn offload(&self, segmentation: Option<Segmentation>) -> Offload {
        let checksum = self
            .transport
            .sum_offset()
            .map(|offset| PartialChecksum { start: self.transport_at() as u16, offset: offset as u16 });
        Offload { checksum, segmentation, header_bytes: self.payload_at() as u16, checksum_valid: false }
    }
}
