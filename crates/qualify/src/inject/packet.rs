//! Just enough of frames for a NIC: where headers are, and the internet checksum (RFC 1071). Its own code: the suite's
//! model must not be judged by itself.

/// Where the headers of an IP packet are, bytes from the start of the frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Places {
    pub(super) ip: usize,
    pub(super) is_v6: bool,
    pub(super) transport: usize,
    pub(super) protocol: u8,
    /// Where the datagram ends; padding is behind it.
    pub(super) end: usize,
    pub(super) is_fragment: bool,
}

pub(super) const TCP: u8 = 6;
pub(super) const UDP: u8 = 17;

/// Bytes of the tags behind the addresses.
pub(super) fn tag_bytes(frame: &[u8]) -> usize {
    let mut at = 12;
    while matches!(word(frame, at), Some(0x8100 | 0x88a8 | 0x9100)) && frame.len() >= at + 6 {
        at += 4;
    }
    at - 12
}

pub(super) fn places(frame: &[u8]) -> Option<Places> {
    let kind_at = 12 + tag_bytes(frame);
    let ip = kind_at + 2;
    match word(frame, kind_at)? {
        0x0800 => {
            let head = usize::from(frame.get(ip)? & 15) * 4;
            let total = usize::from(word(frame, ip + 2)?);
            let whole = frame[ip] >> 4 == 4 && head >= 20 && total >= head && ip + total <= frame.len();
            whole.then_some(Places {
                ip,
                is_v6: false,
                transport: ip + head,
                protocol: *frame.get(ip + 9)?,
                end: ip + total,
                is_fragment: word(frame, ip + 6)? & 0x3fff != 0,
            })
        }
        0x86dd => {
            let end = ip + 40 + usize::from(word(frame, ip + 4)?);
            if frame.get(ip)? >> 4 != 6 || end > frame.len() {
                return None;
            }
            let (mut protocol, mut at, mut is_fragment) = (*frame.get(ip + 6)?, ip + 40, false);
            while matches!(protocol, 0 | 43 | 44 | 60) {
                is_fragment |= protocol == 44;
                let length = if protocol == 44 { 8 } else { (usize::from(*frame.get(at + 1)?) + 1) * 8 };
                protocol = *frame.get(at)?;
                at += length;
            }
            (at <= end).then_some(Places { ip, is_v6: true, transport: at, protocol, end, is_fragment })
        }
        _ => None,
    }
}

pub(super) fn word(frame: &[u8], at: usize) -> Option<u16> {
    frame.get(at..at + 2).map(|bytes| u16::from_be_bytes([bytes[0], bytes[1]]))
}

pub(super) fn put(frame: &mut [u8], at: usize, value: u16) {
    if let Some(bytes) = frame.get_mut(at..at + 2) {
        bytes.copy_from_slice(&value.to_be_bytes());
    }
}

/// Ones' complement sum, not inverted.
pub(super) fn sum(bytes: &[u8], from: u32) -> u16 {
    let words = bytes.chunks(2).map(|pair| (u32::from(pair[0]) << 8) | u32::from(*pair.get(1).unwrap_or(&0)));
    let mut total = words.fold(from, u32::wrapping_add);
    while total > 0xffff {
        total = (total & 0xffff) + (total >> 16);
    }
    total as u16
}

/// Offset of the checksum within TCP or UDP.
fn sum_field(protocol: u8) -> Option<usize> {
    match protocol {
        TCP => Some(16),
        UDP => Some(6),
        _ => None,
    }
}

/// Puts right what a changed frame's checksums must be: of IPv4, and of TCP or UDP in a packet that is no fragment.
pub(super) fn mend(frame: &mut [u8]) {
    let Some(at) = places(frame) else { return };
    if !at.is_v6 {
        put(frame, at.ip + 10, 0);
        let header = !sum(&frame[at.ip..at.transport], 0);
        put(frame, at.ip + 10, header);
    }
    let Some(field) = sum_field(at.protocol).map(|offset| at.transport + offset) else { return };
    if at.is_fragment || field + 2 > at.end {
        return;
    }
    put(frame, field, 0);
    let pseudo = pseudo(frame, at);
    let value = !sum(&frame[at.transport..at.end], pseudo);
    put(frame, field, if at.protocol == UDP && value == 0 { 0xffff } else { value });
}

fn pseudo(frame: &[u8], at: Places) -> u32 {
    let addresses = if at.is_v6 { &frame[at.ip + 8..at.ip + 40] } else { &frame[at.ip + 12..at.ip + 20] };
    u32::from(sum(addresses, 0)) + u32::from(at.protocol) + (at.end - at.transport) as u32
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::frame::{Hosts, Packet, Sum, Version};

    #[test]
    fn what_is_mended_is_what_the_suite_builds() {
        let hosts = Hosts::nobody([2; 6], [4; 6]);
        for version in [Version::V4, Version::V6] {
            for packet in
                [Packet::udp(&hosts, version, vec![9; 33]), Packet::tcp(&hosts, version, vec![9; 33])]
            {
                let mut frame = Packet { sum: Sum::Flipped(0x10), ..packet.clone() }.frame();
                assert_ne!(frame, packet.frame());
                mend(&mut frame);
                assert_eq!(frame, packet.frame());
            }
        }
    }

    #[test]
    fn no_frame_makes_it_panic() {
        let hosts = Hosts::nobody([2; 6], [4; 6]);
        let frame = Packet::tcp(&hosts, Version::V6, vec![0; 40]).frame();
        for length in 0..frame.len() {
            mend(&mut frame[..length].to_vec());
        }
        for at in 0..frame.len() {
            for value in [0, 0x45, 0x60, 0xff] {
                let mut changed = frame.clone();
                changed[at] = value;
                mend(&mut changed);
            }
        }
    }
}
