//! Sending without a copy, and the error queue in which the kernel tells that it is done with the bytes
//! (`MSG_ZEROCOPY`, Documentation/networking/msg_zerocopy.rst; the error queue: ip(7), `IP_RECVERR`).
//!
//! Each send that hands over bytes has a number, from 0 in 32 bits. A completion names a range of them.

use std::io;
use std::mem;
use std::os::fd::{AsFd, AsRawFd};

use crate::error::Result;
use crate::sockopt;

/// `SO_EE_ORIGIN_ZEROCOPY` (include/uapi/linux/errqueue.h).
const ORIGIN_ZEROCOPY: u8 = 5;
/// `SO_EE_CODE_ZEROCOPY_COPIED`: the kernel made a copy after all.
const CODE_COPIED: u8 = 1;
/// Room for one `sock_extended_err` with the offender's address behind it, in words for alignment.
const CONTROL_WORDS: usize = 32;

/// Sends that the kernel is done with.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Completed {
    /// Number of the first.
    pub first: u32,
    /// Number of the last.
    pub last: u32,
    /// The kernel copied their bytes.
    pub copied: bool,
}

impl Completed {
    /// How many they are; numbers wrap at 2^32.
    pub fn calls(&self) -> u64 {
        u64::from(self.last.wrapping_sub(self.first)) + 1
    }
}

/// Lets a socket send without a copy (`SO_ZEROCOPY`); kernels before 4.14 refuse.
pub fn enable(socket: impl AsFd) -> Result<()> {
    sockopt::set_zerocopy(socket, true)
}

/// `send(2)` with `MSG_ZEROCOPY`, waiting for room; returns how many bytes went. The kernel reads `bytes` until the
/// completion is told: they are only right at the receiver if they stay as they are until then. Hot call: plain
/// `io::Result`. `ENOBUFS`: too many completions are not yet read.
pub fn send(socket: impl AsFd, bytes: &[u8]) -> io::Result<usize> {
    let flags = libc::MSG_ZEROCOPY | libc::MSG_NOSIGNAL;
    let fd = socket.as_fd().as_raw_fd();
    // SAFETY: `bytes` is readable for its length during the call. Afterwards the kernel holds the pages by reference
    // counts of its own: were they given back or written to, other bytes would be sent, and nothing else happen.
    let sent = unsafe { libc::send(fd, bytes.as_ptr().cast(), bytes.len(), flags) };
    if sent < 0 { Err(io::Error::last_os_error()) } else { Ok(sent as usize) }
}

/// Takes one completion from the error queue, without waiting; `None` where it is empty.
///
/// # Errors
/// The kernel's refusal. Entries of another origin are passed over.
pub fn completed(socket: impl AsFd) -> io::Result<Option<Completed>> {
    let fd = socket.as_fd().as_raw_fd();
    loop {
        let mut control = [0_u64; CONTROL_WORDS];
        // SAFETY: all zeros are a valid msghdr: null pointers with lengths of 0.
        let mut header: libc::msghdr = unsafe { mem::zeroed() };
        header.msg_control = control.as_mut_ptr().cast();
        header.msg_controllen = mem::size_of_val(&control) as _;
        // SAFETY: the header points at `control`, which is writable for the length told; no data is asked for.
        let code = unsafe { libc::recvmsg(fd, &raw mut header, libc::MSG_ERRQUEUE | libc::MSG_DONTWAIT) };
        if code < 0 {
            let error = io::Error::last_os_error();
            match error.raw_os_error() {
                Some(libc::EAGAIN) => return Ok(None),
                Some(libc::EINTR) => continue,
                _ => return Err(error),
            }
        }
        if let Some(completed) = zerocopy_of(&header) {
            return Ok(Some(completed));
        }
    }
}

fn zerocopy_of(header: &libc::msghdr) -> Option<Completed> {
    // SAFETY: the kernel has filled the control buffer that the header points at, and told its length there.
    let mut message = unsafe { libc::CMSG_FIRSTHDR(header) };
    while !message.is_null() {
        // SAFETY: `message` is within the control buffer: CMSG_FIRSTHDR and CMSG_NXTHDR give nothing else.
        let head = unsafe { message.read_unaligned() };
        let is_error = matches!(
            (head.cmsg_level, head.cmsg_type),
            (libc::SOL_IP, libc::IP_RECVERR) | (libc::SOL_IPV6, libc::IPV6_RECVERR)
        );
        // SAFETY: CMSG_LEN only computes.
        let long_enough = head.cmsg_len as usize
            >= unsafe { libc::CMSG_LEN(mem::size_of::<libc::sock_extended_err>() as u32) } as usize;
        if is_error && long_enough {
            // SAFETY: the message's data is at least a sock_extended_err long, and any bits are one.
            let error =
                unsafe { libc::CMSG_DATA(message).cast::<libc::sock_extended_err>().read_unaligned() };
            if error.ee_origin == ORIGIN_ZEROCOPY && error.ee_errno == 0 {
                let copied = error.ee_code & CODE_COPIED != 0;
                return Some(Completed { first: error.ee_info, last: error.ee_data, copied });
            }
        }
        // SAFETY: as for CMSG_FIRSTHDR; `message` came from it or from here.
        message = unsafe { libc::CMSG_NXTHDR(header, message) };
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::poll::{PollSet, Readiness};
    use std::io::Read;
    use std::net::{TcpListener, TcpStream};

    #[test]
    fn every_send_over_loopback_completes_and_was_copied() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let sender = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        let (mut receiver, _) = listener.accept().unwrap();
        enable(&sender).unwrap();
        assert_eq!(completed(&sender).unwrap(), None);
        let bytes = vec![7_u8; 65536];
        let reader = std::thread::spawn(move || {
            let mut all = Vec::new();
            receiver.read_to_end(&mut all).unwrap();
            all.len()
        });
        let (mut sends, mut total) = (0, 0);
        for _ in 0..4 {
            total += send(&sender, &bytes).unwrap();
            sends += 1;
        }
        let mut told = 0;
        while told < sends {
            let mut set = PollSet::new();
            set.add(sender.as_fd(), Readiness::NONE);
            assert!(set.wait(Some(2_000_000_000)).unwrap() > 0, "{told} of {sends} completed");
            while let Some(done) = completed(&sender).unwrap() {
                assert_eq!(u64::from(done.first), told);
                // The receiver is on this machine: its kernel has to copy (skb_orphan_frags_rx).
                assert!(done.copied);
                told += done.calls();
            }
        }
        drop(sender);
        assert_eq!(reader.join().unwrap(), total);
    }

    #[test]
    fn numbers_wrap() {
        let done = Completed { first: u32::MAX, last: 1, copied: false };
        assert_eq!(done.calls(), 3);
    }
}
