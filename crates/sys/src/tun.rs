//! TAP devices: links whose other side is a file of this process (Documentation/networking/tuntap.rst, `linux/if_tun.h`).

use std::fs::OpenOptions;
use std::io::{self, Read as _, Write as _};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd};
use std::os::unix::fs::OpenOptionsExt;

use crate::error::{Result, SysError};

const TUNSETIFF: libc::c_ulong = 0x4004_54ca;
const TUNSETOFFLOAD: libc::c_ulong = 0x4004_54d0;
const TUNSETCARRIER: libc::c_ulong = 0x4004_54e2;
const IFF_TAP: libc::c_short = 0x0002;
const IFF_NO_PI: libc::c_short = 0x1000;
const IFF_VNET_HDR: libc::c_short = 0x4000;

/// What the link leaves to this side (`TUN_F_*`).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TapOffload(libc::c_uint);

impl TapOffload {
    /// Nothing: frames come whole.
    pub const NONE: Self = Self(0);
    /// Checksums, and segments of TCP over IPv4 and IPv6, with ECN as well.
    pub const CHECKSUM_TSO: Self = Self(0x01 | 0x02 | 0x04 | 0x08);
    /// The same and datagrams of UDP (`TUN_F_USO4`, `TUN_F_USO6`; Linux 6.2 and later).
    pub const CHECKSUM_TSO_USO: Self = Self(0x01 | 0x02 | 0x04 | 0x08 | 0x20 | 0x40);
}

/// A TAP link, which is there as long as this is.
#[derive(Debug)]
pub struct Tap {
    file: std::fs::File,
    name: String,
}

impl Tap {
    /// Makes the link in the calling thread's network namespace. With `vnet_header` each frame carries a
    /// `struct virtio_net_hdr` of 10 bytes before it, both ways. Reads and writes do not block.
    ///
    /// # Errors
    /// ENOENT without `/dev/net/tun`, EPERM without `CAP_NET_ADMIN`, EBUSY where there is such a link, EINVAL for a bad name.
    pub fn create(name: &str, vnet_header: bool) -> Result<Self> {
        let refuse = |cause| SysError::new("make a TAP link", name, cause);
        let fits = !name.is_empty() && name.len() < libc::IFNAMSIZ && !name.bytes().any(|byte| byte == 0);
        if !fits {
            return Err(refuse(io::Error::from_raw_os_error(libc::EINVAL)));
        }
        let file = OpenOptions::new()
            .read(true)
            .write(true)
            .custom_flags(libc::O_NONBLOCK | libc::O_CLOEXEC)
            .open("/dev/net/tun")
            .map_err(refuse)?;
        // SAFETY: `ifreq` is plain data, for which zeros are valid.
        let mut request: libc::ifreq = unsafe { std::mem::zeroed() };
        for (to, from) in request.ifr_name.iter_mut().zip(name.bytes()) {
            *to = from as libc::c_char;
        }
        request.ifr_ifru.ifru_flags = IFF_TAP | IFF_NO_PI | if vnet_header { IFF_VNET_HDR } else { 0 };
        // SAFETY: the descriptor is open, and the kernel reads and writes one `ifreq`, which lives on this stack.
        let done = unsafe { libc::ioctl(file.as_raw_fd(), TUNSETIFF, &raw mut request) };
        if done < 0 {
            Err(SysError::last("make a TAP link", name))
        } else {
            Ok(Self { file, name: name.to_owned() })
        }
    }

    /// Says what the link may leave to this side; it offers the features to the stack.
    ///
    /// # Errors
    /// EINVAL for what the kernel does not know.
    pub fn set_offload(&self, offload: TapOffload) -> Result<()> {
        // SAFETY: the descriptor is open; the argument is a number, not an address.
        let done =
            unsafe { libc::ioctl(self.file.as_raw_fd(), TUNSETOFFLOAD, libc::c_ulong::from(offload.0)) };
        if done < 0 { Err(SysError::last("set the offloads of a TAP link", &self.name)) } else { Ok(()) }
    }

    /// Gives the link its carrier, or takes it.
    ///
    /// # Errors
    /// The kernel's refusal (EINVAL before Linux 5.0).
    pub fn set_carrier(&self, on: bool) -> Result<()> {
        let on = libc::c_uint::from(on);
        // SAFETY: the descriptor is open, and the kernel reads one number, which lives on this stack.
        let done = unsafe { libc::ioctl(self.file.as_raw_fd(), TUNSETCARRIER, &raw const on) };
        if done < 0 { Err(SysError::last("set the carrier of a TAP link", &self.name)) } else { Ok(()) }
    }

    /// Takes the next frame that the link sends; what does not fit the buffer is cut.
    ///
    /// # Errors
    /// `WouldBlock` where there is none.
    pub fn read(&self, buffer: &mut [u8]) -> io::Result<usize> {
        (&self.file).read(buffer)
    }

    /// Hands the link a frame as received.
    ///
    /// # Errors
    /// EIO where the link is down, EINVAL for a frame that can't be.
    pub fn write(&self, frame: &[u8]) -> io::Result<usize> {
        (&self.file).write(frame)
    }
}

impl AsFd for Tap {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.file.as_fd()
    }
}
