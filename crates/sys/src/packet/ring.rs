//! The ring in which the kernel leaves captured frames (`TPACKET_V2`).
//!
//! Layout of a slot (tpacket_rcv in net/packet/af_packet.c): `struct tpacket2_hdr`, `struct sockaddr_ll`, then the frame
//! at `tp_mac`; where the socket has `PACKET_VNET_HDR`, the header stands right before the frame.

use std::mem;
use std::os::fd::{AsRawFd, BorrowedFd};
use std::ptr::{self, NonNull};
use std::sync::atomic::{AtomicU32, Ordering};

use super::OFFLOAD_HEADER_BYTES;
use super::layout::RingSize;
use crate::error::{Result, SysError};

const ADDRESS_OFFSET: usize = mem::size_of::<libc::tpacket2_hdr>().next_multiple_of(16);
/// Bits of `tp_status`.
const TO_USER: u32 = 1;
const CHECKSUM_NOT_READY: u32 = 1 << 3;
const TAG_VALID: u32 = 1 << 4;
const TAG_PROTOCOL_VALID: u32 = 1 << 6;
const CHECKSUM_VALID: u32 = 1 << 7;

/// A captured frame, as it lies in the ring.
#[derive(Debug, Clone, Copy)]
pub struct Captured<'a> {
    /// As much of it as the slot holds, without a tag that was stripped.
    pub bytes: &'a [u8],
    /// `struct virtio_net_hdr`; means something only with [`super::PacketSocket::set_offload`].
    pub offload: [u8; OFFLOAD_HEADER_BYTES],
    /// Length on arrival, bytes.
    pub length: u32,
    /// `CLOCK_REALTIME`, nanoseconds.
    pub time_ns: u64,
    /// The stripped tag: TPID, 0 where the kernel does not tell it, and TCI.
    pub tag: Option<(u16, u16)>,
    /// The checksum is good (`TP_STATUS_CSUM_VALID`).
    pub checksum_valid: bool,
    /// The checksum is not filled in yet (`TP_STATUS_CSUMNOTREADY`).
    pub checksum_not_ready: bool,
    /// `sll_pkttype`.
    pub packet_type: u8,
}

/// A mapped ring. It stays valid after its socket is closed.
#[derive(Debug)]
pub struct Ring {
    base: NonNull<u8>,
    size: RingSize,
    next: u32,
}

// SAFETY: the mapping belongs to this value alone and is not bound to a thread.
unsafe impl Send for Ring {}

impl Ring {
    pub(super) fn map(socket: BorrowedFd<'_>, size: RingSize, link: &str) -> Result<Self> {
        let protection = libc::PROT_READ | libc::PROT_WRITE;
        // SAFETY: a new shared mapping of the socket's ring, at an address that the kernel chooses.
        let base = unsafe {
            libc::mmap(ptr::null_mut(), size.bytes(), protection, libc::MAP_SHARED, socket.as_raw_fd(), 0)
        };
        if base == libc::MAP_FAILED {
            return Err(SysError::last("map the ring of a packet socket", link));
        }
        let base = NonNull::new(base.cast()).ok_or_else(|| {
            SysError::new("map the ring of a packet socket", link, std::io::ErrorKind::OutOfMemory.into())
        })?;
        Ok(Self { base, size, next: 0 })
    }

    /// Gives the next captured frame to `take` and its slot back to the kernel; `None` where there is none yet.
    pub fn next<T>(&mut self, take: impl FnOnce(Captured<'_>) -> T) -> Option<T> {
        let begin = self.size.offset(self.next);
        // SAFETY: `offset` lies `slot_bytes` or more before the mapping's end; slots are aligned to 16 bytes. The kernel
        // writes `tp_status`, the first field, while we look at it, so it is only used as an atomic.
        let (slot, status) = unsafe {
            let slot = self.base.as_ptr().add(begin);
            (slot, AtomicU32::from_ptr(slot.cast()))
        };
        let flags = status.load(Ordering::Acquire);
        if flags & TO_USER == 0 {
            return None;
        }
        // SAFETY: the status says that the kernel has left the slot to us until we write it back; all of it is mapped.
        let bytes = unsafe { std::slice::from_raw_parts(slot, self.size.slot_bytes() as usize) };
        let taken = take(captured(bytes, flags));
        status.store(0, Ordering::Release);
        self.next = (self.next + 1) % self.size.slots();
        Some(taken)
    }
}

impl Drop for Ring {
    fn drop(&mut self) {
        // SAFETY: the mapping was made by `map` with this length, and no reference into it outlives a call of `next`.
        unsafe { libc::munmap(self.base.as_ptr().cast(), self.size.bytes()) };
    }
}

/// Reads a slot. Offsets that lie outside of it give an empty frame.
fn captured(slot: &[u8], flags: u32) -> Captured<'_> {
    let word = |at: usize| u32::from_ne_bytes(slot[at..at + 4].try_into().expect("four bytes"));
    let half = |at: usize| u16::from_ne_bytes(slot[at..at + 2].try_into().expect("two bytes"));
    // struct tpacket2_hdr: status, len, snaplen, mac, net, sec, nsec, vlan_tci, vlan_tpid.
    let (length, kept, begin) = (word(4), word(8) as usize, usize::from(half(12)));
    let time_ns = u64::from(word(16)) * 1_000_000_000 + u64::from(word(20));
    let protocol = if flags & TAG_PROTOCOL_VALID == 0 { 0 } else { half(26) };
    let mut offload = [0; OFFLOAD_HEADER_BYTES];
    if let Some(header) = begin.checked_sub(OFFLOAD_HEADER_BYTES).and_then(|at| slot.get(at..begin)) {
        offload.copy_from_slice(header);
    }
    let bytes = begin.checked_add(kept).and_then(|end| slot.get(begin..end)).unwrap_or_default();
    Captured {
        bytes,
        offload,
        length,
        time_ns,
        tag: (flags & TAG_VALID != 0).then(|| (protocol, half(24))),
        checksum_valid: flags & CHECKSUM_VALID != 0,
        checksum_not_ready: flags & CHECKSUM_NOT_READY != 0,
        // struct sockaddr_ll: family, protocol, ifindex, hatype, pkttype.
        packet_type: slot[ADDRESS_OFFSET + 10],
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn the_headers_have_the_kernels_layout() {
        assert_eq!(mem::offset_of!(libc::tpacket2_hdr, tp_snaplen), 8);
        assert_eq!(mem::offset_of!(libc::tpacket2_hdr, tp_mac), 12);
        assert_eq!(mem::offset_of!(libc::tpacket2_hdr, tp_sec), 16);
        assert_eq!(mem::offset_of!(libc::tpacket2_hdr, tp_vlan_tci), 24);
        assert_eq!(mem::offset_of!(libc::tpacket2_hdr, tp_vlan_tpid), 26);
        assert_eq!(mem::offset_of!(libc::sockaddr_ll, sll_pkttype), 10);
        assert_eq!(ADDRESS_OFFSET, 32);
    }

    proptest! {
        #[test]
        fn any_slot_is_read_without_a_panic(
            slot in proptest::collection::vec(any::<u8>(), 128..400), flags in any::<u32>(),
        ) {
            let _ = captured(&slot, flags);
        }
    }
}
