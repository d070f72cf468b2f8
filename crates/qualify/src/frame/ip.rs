//! IPv4 (RFC 791) and IPv6 (RFC 8200) headers.

use std::net::{Ipv4Addr, Ipv6Addr};

use crate::must::checksum::internet_sum;

/// A network header.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Network {
    /// IPv4.
    V4(Ipv4),
    /// IPv6.
    V6(Ipv6),
}

/// An IPv4 header.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Ipv4 {
    /// Source.
    pub from: Ipv4Addr,
    /// Destination.
    pub to: Ipv4Addr,
    /// Type of service.
    pub tos: u8,
    /// Identification.
    pub id: u16,
    /// Do not fragment.
    pub dont_fragment: bool,
    /// More fragments follow.
    pub more_fragments: bool,
    /// Place of a fragment, in units of 8 bytes.
    pub fragment_offset: u16,
    /// Time to live.
    pub ttl: u8,
    /// Options, padded to a multiple of 4 with zeros; at most 40 bytes.
    pub options: Vec<u8>,
    /// Header checksum instead of the right one.
    pub wrong_sum: Option<u16>,
}

impl Ipv4 {
    /// A plain header.
    pub fn new(from: Ipv4Addr, to: Ipv4Addr) -> Self {
        Self {
            from,
            to,
            tos: 0,
            id: 1,
            dont_fragment: true,
            more_fragments: false,
            fragment_offset: 0,
            ttl: 64,
            options: Vec::new(),
            wrong_sum: None,
        }
    }

    /// Bytes of the header.
    pub fn header_bytes(&self) -> usize {
        20 + self.options.len().min(40).next_multiple_of(4)
    }

    /// The header before a payload of `payload_bytes` of `protocol`.
    pub fn header(&self, protocol: u8, payload_bytes: usize) -> Vec<u8> {
        let length = self.header_bytes();
        let mut bytes = vec![0; length];
        bytes[0] = 0x40 | (length / 4) as u8;
        bytes[1] = self.tos;
        bytes[2..4].copy_from_slice(&((length + payload_bytes) as u16).to_be_bytes());
        bytes[4..6].copy_from_slice(&self.id.to_be_bytes());
        let fragment = (u16::from(self.dont_fragment) << 14)
            | (u16::from(self.more_fragments) << 13)
            | (self.fragment_offset & 0x1fff);
        bytes[6..8].copy_from_slice(&fragment.to_be_bytes());
        bytes[8] = self.ttl;
        bytes[9] = protocol;
        bytes[12..16].copy_from_slice(&self.from.octets());
        bytes[16..20].copy_from_slice(&self.to.octets());
        let options = &self.options[..self.options.len().min(40)];
        bytes[20..20 + options.len()].copy_from_slice(options);
        let sum = self.wrong_sum.unwrap_or_else(|| !internet_sum(0, &bytes));
        bytes[10..12].copy_from_slice(&sum.to_be_bytes());
        bytes
    }
}

/// An IPv6 extension header.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Extension {
    /// Its protocol number: 0 hop-by-hop, 43 routing, 44 fragment, 60 destination options.
    pub kind: u8,
    /// What follows its next-header and length bytes; padded with zeros to a multiple of 8 in all. A fragment header's
    /// body is its offset, flags and identification (6 bytes).
    pub body: Vec<u8>,
}

impl Extension {
    /// Destination options of `bytes` in all (a multiple of 8), filled with PadN (RFC 8200 section 4.2).
    pub fn padding(kind: u8, bytes: usize) -> Self {
        let bytes = bytes.next_multiple_of(8).max(8);
        let mut body = vec![0; bytes - 2];
        let mut at = 0;
        while at < body.len() {
            let rest = body.len() - at;
            if rest == 1 {
                break; // Pad1 is a zero
            }
            let data = (rest - 2).min(255);
            body[at] = 1;
            body[at + 1] = data as u8;
            at += 2 + data;
        }
        Self { kind, body }
    }

    fn bytes(&self, next: u8) -> Vec<u8> {
        let length = (self.body.len() + 2).next_multiple_of(8);
        let mut bytes = vec![0; length];
        bytes[0] = next;
        if self.kind != 44 {
            bytes[1] = (length / 8 - 1) as u8;
        }
        let at = 2;
        bytes[at..at + self.body.len()].copy_from_slice(&self.body);
        bytes
    }
}

/// An IPv6 header with its extensions.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Ipv6 {
    /// Source.
    pub from: Ipv6Addr,
    /// Destination.
    pub to: Ipv6Addr,
    /// Traffic class.
    pub traffic_class: u8,
    /// Flow label, 20 bits.
    pub flow_label: u32,
    /// Hop limit.
    pub hop_limit: u8,
    /// Extension headers, in order.
    pub extensions: Vec<Extension>,
}

impl Ipv6 {
    /// A plain header.
    pub fn new(from: Ipv6Addr, to: Ipv6Addr) -> Self {
        Self { from, to, traffic_class: 0, flow_label: 0, hop_limit: 64, extensions: Vec::new() }
    }

    /// Bytes of the header with its extensions.
    pub fn header_bytes(&self) -> usize {
        40 + self.extensions.iter().map(|e| (e.body.len() + 2).next_multiple_of(8)).sum::<usize>()
    }

    /// The headers before a payload of `payload_bytes` of `protocol`.
    pub fn header(&self, protocol: u8, payload_bytes: usize) -> Vec<u8> {
        let length = self.header_bytes() - 40 + payload_bytes;
        let first = self.extensions.first().map_or(protocol, |e| e.kind);
        let mut bytes = Vec::with_capacity(self.header_bytes());
        let word = (6 << 28) | (u32::from(self.traffic_class) << 20) | (self.flow_label & 0xf_ffff);
        bytes.extend(word.to_be_bytes());
        bytes.extend((length as u16).to_be_bytes());
        bytes.extend([first, self.hop_limit]);
        bytes.extend(self.from.octets());
        bytes.extend(self.to.octets());
        for (index, extension) in self.extensions.iter().enumerate() {
            let next = self.extensions.get(index + 1).map_or(protocol, |e| e.kind);
            bytes.extend(extension.bytes(next));
        }
        bytes
    }
}

impl Network {
    /// Its EtherType.
    pub fn ether_type(&self) -> u16 {
        match self {
            Self::V4(_) => super::ETHER_TYPE_IPV4,
            Self::V6(_) => super::ETHER_TYPE_IPV6,
        }
    }

    /// Bytes of its headers.
    pub fn header_bytes(&self) -> usize {
        match self {
            Self::V4(ip) => ip.header_bytes(),
            Self::V6(ip) => ip.header_bytes(),
        }
    }

    /// Its headers before a payload.
    pub fn header(&self, protocol: u8, payload_bytes: usize) -> Vec<u8> {
        match self {
            Self::V4(ip) => ip.header(protocol, payload_bytes),
            Self::V6(ip) => ip.header(protocol, payload_bytes),
        }
    }

    /// The pseudo header that a transport checksum covers (RFC 9293 section 3.1, RFC 8200 section 8.1), summed, not
    /// complemented.
    pub fn pseudo_sum(&self, protocol: u8, payload_bytes: usize) -> u16 {
        let mut bytes = Vec::with_capacity(40);
        match self {
            Self::V4(ip) => {
                bytes.extend(ip.from.octets());
                bytes.extend(ip.to.octets());
            }
            Self::V6(ip) => {
                bytes.extend(ip.from.octets());
                bytes.extend(ip.to.octets());
            }
        }
        bytes.extend((payload_bytes as u32).to_be_bytes());
        bytes.extend([0, protocol]);
        internet_sum(0, &bytes)
    }
}
