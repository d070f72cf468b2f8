//! Frames out, many in one system call (sendmmsg(2)).

use std::io;
use std::mem;
use std::os::fd::{AsFd, AsRawFd};
use std::ptr;

use super::{OFFLOAD_HEADER_BYTES, PacketSocket, link_address};

/// What sending needs besides the frames; its arrays are reused.
pub struct FrameSender {
    address: libc::sockaddr_ll,
    offload: bool,
    vectors: Vec<libc::iovec>,
    messages: Vec<libc::mmsghdr>,
}

// SAFETY: the raw pointers in `vectors` and `messages` are only used during `send`, which sets them first.
unsafe impl Send for FrameSender {}

impl FrameSender {
    /// A sender by a socket's link; with `offload` a header goes before each frame.
    pub fn new(socket: &PacketSocket, offload: bool) -> Self {
        let address = link_address(socket.index(), 0);
        Self { address, offload, vectors: Vec::new(), messages: Vec::new() }
    }

    /// Sends frames in order; returns how many the kernel took. `headers` has one for each frame if the sender has
    /// `offload`, and is not looked at otherwise. Hot call: plain `io::Result`. An error tells about the first one;
    /// where a later one is refused, the count ends there and the next call, which begins with it, tells why.
    ///
    /// # Panics
    /// Where a header is missing.
    pub fn send<F: AsRef<[u8]>>(
        &mut self,
        socket: &PacketSocket,
        headers: &[[u8; OFFLOAD_HEADER_BYTES]],
        frames: &[F],
    ) -> io::Result<usize> {
        assert!(!self.offload || headers.len() >= frames.len(), "a frame without its header");
        let parts = if self.offload { 2 } else { 1 };
        self.vectors.clear();
        for (index, frame) in frames.iter().enumerate() {
            if self.offload {
                self.vectors.push(vector(&headers[index]));
            }
            self.vectors.push(vector(frame.as_ref()));
        }
        self.messages.clear();
        for pieces in self.vectors.chunks_exact_mut(parts) {
            // SAFETY: all zero bits are a valid mmsghdr: null pointers and zero lengths.
            let mut message: libc::mmsghdr = unsafe { mem::zeroed() };
            message.msg_hdr.msg_name = (&raw mut self.address).cast();
            message.msg_hdr.msg_namelen = mem::size_of::<libc::sockaddr_ll>() as libc::socklen_t;
            message.msg_hdr.msg_iov = pieces.as_mut_ptr();
            message.msg_hdr.msg_iovlen = parts as _;
            self.messages.push(message);
        }
        let (messages, count) = (self.messages.as_mut_ptr(), self.messages.len() as u32);
        // SAFETY: `messages` holds `count` records that point to our address and to vectors of the caller's bytes, which
        // the kernel only reads; all outlive the call.
        let sent = unsafe { libc::sendmmsg(socket.as_fd().as_raw_fd(), messages, count, 0) };
        if sent < 0 { Err(io::Error::last_os_error()) } else { Ok(sent as usize) }
    }
}

fn vector(bytes: &[u8]) -> libc::iovec {
    let base = if bytes.is_empty() { ptr::null_mut() } else { bytes.as_ptr().cast_mut().cast() };
    libc::iovec { iov_base: base, iov_len: bytes.len() }
}
