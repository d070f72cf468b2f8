//! How a ring of `TPACKET_V2` slots is cut into blocks (Documentation/networking/packet_mmap.rst).

/// Bytes of a slot before the frame, at most: `struct tpacket2_hdr` (32), `struct sockaddr_ll` (20), room for alignment and
/// for the offload header (tpacket_rcv in net/packet/af_packet.c).
const OVERHEAD: u32 = 128;
const SLOT_ALIGNMENT: u32 = 16;
/// The largest page size among the machines that we run on.
const PAGE_BYTES: u32 = 65_536;
/// Few large allocations rather than many: each block is one.
const BLOCK_BYTES: u32 = 4 * PAGE_BYTES;

/// Size of a ring.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RingSize {
    slot_bytes: u32,
    slots_per_block: u32,
    blocks: u32,
}

impl RingSize {
    /// Room for at least `slots` frames of up to `frame_bytes`; `None` where it would take more than `most_bytes`.
    pub fn new(frame_bytes: u32, slots: u32, most_bytes: u64) -> Option<Self> {
        let slot_bytes = frame_bytes.checked_add(OVERHEAD)?.checked_next_multiple_of(SLOT_ALIGNMENT)?;
        let slots_per_block = (BLOCK_BYTES / slot_bytes).max(1);
        let blocks = slots.max(1).div_ceil(slots_per_block);
        let size = Self { slot_bytes, slots_per_block, blocks };
        slot_bytes.checked_mul(slots_per_block)?.checked_next_multiple_of(PAGE_BYTES)?;
        blocks.checked_mul(slots_per_block)?;
        (size.bytes() as u64 <= most_bytes).then_some(size)
    }

    /// As many slots as fit in `most_bytes`, but no more than `slots`, and at least one.
    pub fn fitting(frame_bytes: u32, slots: u32, most_bytes: u64) -> Option<Self> {
        let per_slot = u64::from(frame_bytes).saturating_add(u64::from(OVERHEAD)).max(1);
        let mut wanted = slots.min(u32::try_from(most_bytes / per_slot).unwrap_or(u32::MAX)).max(1);
        loop {
            if let Some(size) = Self::new(frame_bytes, wanted, most_bytes) {
                return Some(size);
            }
            if wanted == 1 {
                return None;
            }
            wanted /= 2;
        }
    }

    pub(super) fn slot_bytes(self) -> u32 {
        self.slot_bytes
    }

    pub(super) fn block_bytes(self) -> u32 {
        (self.slot_bytes * self.slots_per_block).next_multiple_of(PAGE_BYTES)
    }

    pub(super) fn blocks(self) -> u32 {
        self.blocks
    }

    /// Slots, at least those asked for.
    pub fn slots(self) -> u32 {
        self.blocks * self.slots_per_block
    }

    /// Bytes of the whole ring.
    pub fn bytes(self) -> usize {
        self.block_bytes() as usize * self.blocks as usize
    }

    /// Where slot `index` begins.
    pub(super) fn offset(self, index: u32) -> usize {
        let (block, within) = (index / self.slots_per_block, index % self.slots_per_block);
        block as usize * self.block_bytes() as usize + within as usize * self.slot_bytes as usize
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn what_is_too_large_is_refused_or_made_smaller() {
        assert_eq!(RingSize::new(1 << 20, 4096, 1 << 26), None);
        assert_eq!(RingSize::new(u32::MAX, 1, u64::MAX), None);
        assert!(RingSize::fitting(1 << 16, 4096, 1 << 26).is_some_and(|size| size.slots() >= 256));
        assert_eq!(RingSize::fitting(1 << 27, 4096, 1 << 26), None);
    }

    proptest! {
        #[test]
        fn slots_lie_whole_in_the_ring(frame in 0u32..300_000, slots in 1u32..5000, at in 0.0f64..1.0) {
            let Some(size) = RingSize::new(frame, slots, 1 << 32) else { return Ok(()) };
            prop_assert!(size.slots() >= slots);
            let index = ((f64::from(size.slots()) * at) as u32).min(size.slots() - 1);
            let begin = size.offset(index);
            prop_assert!(begin + size.slot_bytes() as usize <= size.bytes());
            prop_assert!(begin.is_multiple_of(16));
            if index > 0 {
                prop_assert!(size.offset(index - 1) + size.slot_bytes() as usize <= begin);
            }
        }
    }
}
