//! Packet sockets (packet(7)): whole frames in and out of a link, with what the driver said of them.
//!
//! A socket is made deaf (protocol 0), gets its options and its ring, and hears only once it is bound: no frame of
//! another link or from before the options gets in.

mod layout;
mod ring;
mod send;

use std::ffi::{c_int, c_uint};
use std::mem;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd};

use nix::net::if_::if_nametoindex;

use crate::error::{Result, SysError};

pub use layout::RingSize;
pub use ring::{Captured, Ring};
pub use send::FrameSender;

/// All protocols (`ETH_P_ALL`).
pub const ALL_PROTOCOLS: u16 = 3;
/// Bytes of `struct virtio_net_hdr` before each frame of a socket with [`PacketSocket::set_offload`].
pub const OFFLOAD_HEADER_BYTES: usize = 10;

// Kernel 5.10's linux/if_packet.h; not all are in libc.
const PACKET_IGNORE_OUTGOING: c_int = 23;
const SO_NOFCS: c_int = 43;

/// What a membership lets in as long as the socket is open (`PACKET_MR_*`).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Membership {
    /// Everything on the wire.
    Promiscuous,
    /// Every multicast frame.
    AllMulticast,
    /// One multicast group.
    Group([u8; 6]),
    /// One more unicast address.
    Unicast([u8; 6]),
}

/// A packet socket for one link. Closing it ends its memberships.
#[derive(Debug)]
pub struct PacketSocket {
    fd: OwnedFd,
    link: String,
    index: u32,
}

impl PacketSocket {
    /// Opens a socket for `link` in the calling thread's network namespace, which hears nothing before [`Self::bind`].
    ///
    /// # Errors
    /// No such link; `EPERM` without `CAP_NET_RAW`.
    pub fn open(link: &str) -> Result<Self> {
        let index = if_nametoindex(link).map_err(|errno| SysError::new("find link", link, errno.into()))?;
        // SAFETY: socket(2) takes no pointers.
        let fd = unsafe { libc::socket(libc::AF_PACKET, libc::SOCK_RAW | libc::SOCK_CLOEXEC, 0) };
        if fd < 0 {
            return Err(SysError::last("open a packet socket", link));
        }
        // SAFETY: the kernel has just given us `fd`, and nobody else owns it.
        let fd = unsafe { OwnedFd::from_raw_fd(fd) };
        Ok(Self { fd, link: link.to_owned(), index })
    }

    /// The link's index.
    pub fn index(&self) -> u32 {
        self.index
    }

    /// The link's name when the socket was opened.
    pub fn link(&self) -> &str {
        &self.link
    }

    /// Puts a `struct virtio_net_hdr` before each frame, both ways (`PACKET_VNET_HDR`); before the ring is made.
    ///
    /// # Errors
    /// The kernel's refusal.
    pub fn set_offload(&self) -> Result<()> {
        self.set("set PACKET_VNET_HDR", libc::SOL_PACKET, libc::PACKET_VNET_HDR, &1)
    }

    /// Does not capture what the link sends (`PACKET_IGNORE_OUTGOING`, kernel 4.20).
    ///
    /// # Errors
    /// The kernel's refusal.
    pub fn set_ignore_outgoing(&self) -> Result<()> {
        self.set("set PACKET_IGNORE_OUTGOING", libc::SOL_PACKET, PACKET_IGNORE_OUTGOING, &1)
    }

    /// Sends straight to the driver, past the queueing discipline (`PACKET_QDISC_BYPASS`).
    ///
    /// # Errors
    /// The kernel's refusal.
    pub fn set_bypass_qdisc(&self) -> Result<()> {
        self.set("set PACKET_QDISC_BYPASS", libc::SOL_PACKET, libc::PACKET_QDISC_BYPASS, &1)
    }

    /// Frames that are sent end with their own FCS (`SO_NOFCS`). A driver without support refuses each send
    /// (`EPROTONOSUPPORT`).
    ///
    /// # Errors
    /// The kernel's refusal.
    pub fn set_own_fcs(&self) -> Result<()> {
        self.set("set SO_NOFCS", libc::SOL_SOCKET, SO_NOFCS, &1)
    }

    /// Captures only frames of this EtherType behind a stripped tag, if there is one (`SO_ATTACH_FILTER`); for a socket that is
    /// bound to [`ALL_PROTOCOLS`]. One that is bound to the EtherType itself is given frames later, when the kernel has
    /// forgotten their tags (__netif_receive_skb_core in net/core/dev.c).
    ///
    /// # Errors
    /// The kernel's refusal.
    pub fn filter_ether_type(&self, ether_type: u16) -> Result<()> {
        const LOAD_HALF: u16 = (libc::BPF_LD | libc::BPF_H | libc::BPF_ABS) as u16;
        const JUMP_IF_EQUAL: u16 = (libc::BPF_JMP | libc::BPF_JEQ | libc::BPF_K) as u16;
        const RETURN: u16 = (libc::BPF_RET | libc::BPF_K) as u16;
        let step = |code, jt, jf, k| libc::sock_filter { code, jt, jf, k };
        let mut program = [
            step(LOAD_HALF, 0, 0, 12),
            step(JUMP_IF_EQUAL, 0, 1, u32::from(ether_type)),
            step(RETURN, 0, 0, u32::MAX),
            step(RETURN, 0, 0, 0),
        ];
        let program = libc::sock_fprog { len: program.len() as u16, filter: program.as_mut_ptr() };
        self.set("set SO_ATTACH_FILTER", libc::SOL_SOCKET, libc::SO_ATTACH_FILTER, &program)
    }

    /// How long a send waits for room (`SO_SNDTIMEO`); then it gives `EAGAIN`.
    ///
    /// # Errors
    /// The kernel's refusal.
    pub fn set_send_timeout(&self, milliseconds: u32) -> Result<()> {
        let time =
            libc::timeval { tv_sec: (milliseconds / 1000) as _, tv_usec: (milliseconds % 1000 * 1000) as _ };
        self.set("set SO_SNDTIMEO", libc::SOL_SOCKET, libc::SO_SNDTIMEO, &time)
    }

    /// Lets more frames in as long as the socket is open (`PACKET_ADD_MEMBERSHIP`).
    ///
    /// # Errors
    /// The kernel's refusal, as for a multicast address among unicast ones.
    pub fn join(&self, membership: Membership) -> Result<()> {
        let (kind, address) = match membership {
            Membership::Promiscuous => (libc::PACKET_MR_PROMISC, None),
            Membership::AllMulticast => (libc::PACKET_MR_ALLMULTI, None),
            Membership::Group(address) => (libc::PACKET_MR_MULTICAST, Some(address)),
            Membership::Unicast(address) => (libc::PACKET_MR_UNICAST, Some(address)),
        };
        let mut mr_address = [0; 8];
        if let Some(address) = address {
            mr_address[..6].copy_from_slice(&address);
        }
        let request = libc::packet_mreq {
            mr_ifindex: self.index as c_int,
            mr_type: kind as u16,
            mr_alen: if address.is_some() { 6 } else { 0 },
            mr_address,
        };
        self.set("set PACKET_ADD_MEMBERSHIP", libc::SOL_PACKET, libc::PACKET_ADD_MEMBERSHIP, &request)
    }

    /// Makes the ring in which captured frames lie (`PACKET_RX_RING`, `TPACKET_V2`); before [`Self::bind`], after
    /// [`Self::set_offload`].
    ///
    /// # Errors
    /// Too little memory; the kernel's refusal.
    pub fn ring(&self, size: RingSize) -> Result<Ring> {
        let version = libc::tpacket_versions::TPACKET_V2 as c_int;
        self.set("set PACKET_VERSION", libc::SOL_PACKET, libc::PACKET_VERSION, &version)?;
        let request = libc::tpacket_req {
            tp_block_size: size.block_bytes(),
            tp_block_nr: size.blocks(),
            tp_frame_size: size.slot_bytes(),
            tp_frame_nr: size.slots(),
        };
        self.set("set PACKET_RX_RING", libc::SOL_PACKET, libc::PACKET_RX_RING, &request)?;
        Ring::map(self.fd.as_fd(), size, &self.link)
    }

    /// Begins to capture frames of this EtherType, or of [`ALL_PROTOCOLS`]; 0 captures none.
    ///
    /// # Errors
    /// The link is gone or down.
    pub fn bind(&self, protocol: u16) -> Result<()> {
        let address = link_address(self.index, protocol);
        let length = mem::size_of_val(&address) as libc::socklen_t;
        // SAFETY: `address` is a sockaddr_ll of `length` bytes that outlives the call.
        let code = unsafe { libc::bind(self.fd.as_raw_fd(), (&raw const address).cast(), length) };
        if code < 0 { Err(SysError::last("bind a packet socket", self.link.as_str())) } else { Ok(()) }
    }

    /// Frames for which the ring had no room since the last call (`PACKET_STATISTICS`).
    ///
    /// # Errors
    /// The kernel's refusal.
    pub fn take_drops(&self) -> Result<u32> {
        let mut statistics = libc::tpacket_stats { tp_packets: 0, tp_drops: 0 };
        let mut length = mem::size_of_val(&statistics) as libc::socklen_t;
        // SAFETY: `statistics` is writable for `length` bytes and both outlive the call.
        let code = unsafe {
            libc::getsockopt(
                self.fd.as_raw_fd(),
                libc::SOL_PACKET,
                libc::PACKET_STATISTICS,
                (&raw mut statistics).cast(),
                &raw mut length,
            )
        };
        if code < 0 {
            return Err(SysError::last("read PACKET_STATISTICS", self.link.as_str()));
        }
        Ok(statistics.tp_drops as c_uint)
    }

    fn set<T>(&self, operation: &'static str, level: c_int, name: c_int, value: &T) -> Result<()> {
        let length = mem::size_of::<T>() as libc::socklen_t;
        let fd = self.fd.as_raw_fd();
        // SAFETY: `value` is readable for `length` bytes and outlives the call; the kernel copies it.
        let code = unsafe { libc::setsockopt(fd, level, name, std::ptr::from_ref(value).cast(), length) };
        if code < 0 { Err(SysError::last(operation, self.link.as_str())) } else { Ok(()) }
    }
}

impl AsFd for PacketSocket {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }
}

/// The address of a link for bind(2) and sendmsg(2); protocol 0 makes the kernel read it from the frame it sends.
fn link_address(index: u32, protocol: u16) -> libc::sockaddr_ll {
    libc::sockaddr_ll {
        sll_family: libc::AF_PACKET as u16,
        sll_protocol: protocol.to_be(),
        sll_ifindex: index as c_int,
        sll_hatype: 0,
        sll_pkttype: 0,
        sll_halen: 0,
        sll_addr: [0; 8],
    }
}

#[cfg(test)]
mod tests;
