//! `struct virtio_net_hdr` (`linux/virtio_net.h`): what the stack leaves to a NIC, and what a NIC says of a frame.

pub(super) const BYTES: usize = 10;

pub(super) const NEEDS_CHECKSUM: u8 = 1;
pub(super) const DATA_VALID: u8 = 2;

pub(super) const TCP_V4: u8 = 1;
pub(super) const TCP_V6: u8 = 4;
pub(super) const UDP_SEGMENTS: u8 = 5;
const ECN: u8 = 0x80;

/// In the machine's own byte order.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct Header {
    pub(super) flags: u8,
    pub(super) kind: u8,
    pub(super) header_bytes: u16,
    pub(super) segment_bytes: u16,
    pub(super) sum_start: u16,
    pub(super) sum_offset: u16,
}

impl Header {
    /// The header and the frame behind it.
    pub(super) fn split(bytes: &[u8]) -> Option<(Self, &[u8])> {
        let (head, frame) = bytes.split_first_chunk::<BYTES>()?;
        let word = |at: usize| u16::from_ne_bytes([head[at], head[at + 1]]);
        let header = Self {
            flags: head[0],
            kind: head[1],
            header_bytes: word(2),
            segment_bytes: word(4),
            sum_start: word(6),
            sum_offset: word(8),
        };
        Some((header, frame))
    }

    pub(super) fn bytes(self) -> [u8; BYTES] {
        let [[a, b], [c, d], [e, f], [g, h]] =
            [self.header_bytes, self.segment_bytes, self.sum_start, self.sum_offset].map(u16::to_ne_bytes);
        [self.flags, self.kind, a, b, c, d, e, f, g, h]
    }

    /// How it is to be cut, without the ECN bit.
    pub(super) fn segmentation(self) -> u8 {
        self.kind & !ECN
    }
}
