//! The segments that a packet must be cut in (TSO, USO).

use crate::frame::{Network, Packet, Sum, Transport, flags};

/// Cuts a packet as the stack's own segmentation does: `segment_bytes` of payload each, sequence numbers and IPv4
/// identification counting on, FIN and PSH on the last alone, CWR on the first alone.
pub fn segments(packet: &Packet, segment_bytes: usize) -> Vec<Packet> {
    let segment_bytes = segment_bytes.max(1);
    let count = packet.payload.len().div_ceil(segment_bytes).max(1);
    (0..count).map(|index| segment(packet, index, count, segment_bytes)).collect()
}

fn segment(packet: &Packet, index: usize, count: usize, segment_bytes: usize) -> Packet {
    let from = index * segment_bytes;
    let to = (from + segment_bytes).min(packet.payload.len());
    let mut cut = Packet { payload: packet.payload[from..to].to_vec(), sum: Sum::Right, ..packet.clone() };
    if let Network::V4(ip) = &mut cut.network {
        ip.id = ip.id.wrapping_add(index as u16);
    }
    if let Transport::Tcp(tcp) = &mut cut.transport {
        tcp.sequence = tcp.sequence.wrapping_add(from as u32);
        if index + 1 < count {
            tcp.flags &= !(flags::FIN | flags::PSH);
        }
        if index > 0 {
            tcp.flags &= !flags::CWR;
        }
    }
    cut
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::frame::{Hosts, Version};
    use crate::must::checksum::check;

    #[test]
    fn segments_hold_all_bytes_once_and_flags_where_they_belong() {
        let hosts = Hosts::nobody([2; 6], [4; 6]);
        let payload: Vec<u8> = (0..2500_u32).map(|n| n as u8).collect();
        let mut packet = Packet::tcp(&hosts, Version::V4, payload.clone());
        packet.tcp_header().unwrap().flags = flags::ACK | flags::PSH | flags::FIN | flags::CWR;
        let cut = segments(&packet, 1000);
        assert_eq!(cut.len(), 3);
        let joined: Vec<u8> = cut.iter().flat_map(|segment| segment.payload.clone()).collect();
        assert_eq!(joined, payload);
        let seen: Vec<u8> = cut.into_iter().map(|mut segment| segment.tcp_header().unwrap().flags).collect();
        assert_eq!(seen, [flags::ACK | flags::CWR, flags::ACK, flags::ACK | flags::PSH | flags::FIN]);
        assert!(segments(&packet, 500).iter().all(|segment| check(&segment.frame()).is_ok()));
    }
}
