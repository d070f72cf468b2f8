//! `struct virtio_net_hdr` (linux/virtio_net.h), in the machine's byte order as packet sockets have it.

use linerate_model::bench::frame::{Offload, PartialChecksum, Segmentation, SegmentationKind};
use linerate_sys::packet::OFFLOAD_HEADER_BYTES;

const NEEDS_CSUM: u8 = 1;
const DATA_VALID: u8 = 2;
const GSO_NONE: u8 = 0;
const GSO_TCPV4: u8 = 1;
const GSO_TCPV6: u8 = 4;
const GSO_UDP_L4: u8 = 5;
const GSO_ECN: u8 = 0x80;

/// The header for what is asked for; zeroes for nothing.
pub(super) fn encode(offload: Option<&Offload>) -> [u8; OFFLOAD_HEADER_BYTES] {
    let mut header = [0; OFFLOAD_HEADER_BYTES];
    let Some(offload) = offload else { return header };
    let mut put = |at: usize, value: u16| header[at..at + 2].copy_from_slice(&value.to_ne_bytes());
    put(2, offload.header_bytes);
    if let Some(checksum) = offload.checksum {
        put(6, checksum.start);
        put(8, checksum.offset);
    }
    let mut kind = GSO_NONE;
    if let Some(segmentation) = offload.segmentation {
        put(4, segmentation.size_bytes);
        kind = match segmentation.kind {
            SegmentationKind::Tcp4 => GSO_TCPV4,
            SegmentationKind::Tcp6 => GSO_TCPV6,
            SegmentationKind::Udp => GSO_UDP_L4,
        };
        kind |= if segmentation.ecn { GSO_ECN } else { 0 };
    }
    header[0] = if offload.checksum.is_some() { NEEDS_CSUM } else { 0 };
    header[0] |= if offload.checksum_valid { DATA_VALID } else { 0 };
    header[1] = kind;
    header
}

/// What a header says; `None` where it says nothing. Kinds of segmentation that the kernel has no more (UFO) are not told.
pub(super) fn decode(header: &[u8; OFFLOAD_HEADER_BYTES]) -> Option<Offload> {
    let half = |at: usize| u16::from_ne_bytes([header[at], header[at + 1]]);
    let kind = match header[1] & !GSO_ECN {
        GSO_TCPV4 => Some(SegmentationKind::Tcp4),
        GSO_TCPV6 => Some(SegmentationKind::Tcp6),
        GSO_UDP_L4 => Some(SegmentationKind::Udp),
        _ => None,
    };
    let ecn = header[1] & GSO_ECN != 0;
    let offload = Offload {
        checksum: (header[0] & NEEDS_CSUM != 0).then(|| PartialChecksum { start: half(6), offset: half(8) }),
        segmentation: kind.map(|kind| Segmentation { kind, size_bytes: half(4), ecn }),
        header_bytes: half(2),
        checksum_valid: header[0] & DATA_VALID != 0,
    };
    (offload != Offload::default()).then_some(offload)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn headers_go_both_ways() {
        for kind in [SegmentationKind::Tcp4, SegmentationKind::Tcp6, SegmentationKind::Udp] {
            let offload = Offload {
                checksum: Some(PartialChecksum { start: 34, offset: 16 }),
                segmentation: Some(Segmentation {
                    kind,
                    size_bytes: 1448,
                    ecn: kind != SegmentationKind::Udp,
                }),
                header_bytes: 66,
                checksum_valid: false,
            };
            assert_eq!(decode(&encode(Some(&offload))), Some(offload));
        }
        assert_eq!(encode(None), [0; 10]);
        assert_eq!(decode(&[0; 10]), None);
        assert!(decode(&[DATA_VALID, 0, 0, 0, 0, 0, 0, 0, 0, 0]).is_some_and(|o| o.checksum_valid));
    }
}
