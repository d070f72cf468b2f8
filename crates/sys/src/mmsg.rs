//! Many datagrams in one system call (sendmmsg(2), recvmmsg(2)), with buffers that are reused.
//!
//! Headers are written afresh before each call: the kernel overwrites lengths, and a control length that is not reset
//! loses control messages for good.

use std::io;
use std::mem;
use std::os::fd::{AsFd, AsRawFd};
use std::ptr;

/// Room for the control messages of one datagram, in 8-byte words: drop count, timestamp and segment size.
const CONTROL_WORDS: usize = 16;

/// Whether a receive waits for the first datagram.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Wait {
    /// Wait for one (up to the socket's receive timeout), then take what else is there.
    ForOne,
    /// Take what is there.
    No,
}

/// What the kernel said beside one datagram. Each part is there only if its socket option is on.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Control {
    /// Datagrams that this socket has dropped since it was made (`SO_RXQ_OVFL`); absent until the first drop.
    pub drops: Option<u32>,
    /// Size of each datagram in a merged message, bytes (`UDP_GRO`); absent when the message is one datagram.
    pub segment: Option<u16>,
    /// Arrival on CLOCK_REALTIME, nanoseconds (`SO_TIMESTAMPNS`).
    pub timestamp_ns: Option<u64>,
    /// The message was longer than its buffer, or the control room too small.
    pub truncated: bool,
}

/// Datagrams of one size to send together on a connected socket.
pub struct SendBatch {
    buffers: Vec<u8>,
    size: usize,
    iovecs: Vec<libc::iovec>,
    headers: Vec<libc::mmsghdr>,
}

// SAFETY: the raw pointers in `iovecs` and `headers` are only used during `send`, which sets them first.
unsafe impl Send for SendBatch {}

impl SendBatch {
    /// Room for `count` datagrams of `size` bytes, zeroed. Panics if `size` is 0.
    pub fn new(count: usize, size: usize) -> Self {
        assert!(size > 0, "a datagram buffer of 0 bytes");
        Self {
            buffers: vec![0; count * size],
            size,
            iovecs: vec![EMPTY_IOVEC; count],
            headers: vec![empty_header(); count],
        }
    }

    /// How many datagrams there is room for.
    pub fn capacity(&self) -> usize {
        self.headers.len()
    }

    /// Payload of datagram `index`, to be filled.
    pub fn datagram(&mut self, index: usize) -> &mut [u8] {
        &mut self.buffers[index * self.size..][..self.size]
    }

    /// Sends the datagrams from `first` to `end` (excluded) in order; returns how many went. Hot call: plain
    /// `io::Result`. An error tells about the first one; later ones are simply not sent.
    pub fn send(&mut self, socket: impl AsFd, first: usize, end: usize) -> io::Result<usize> {
        let iovecs = &mut self.iovecs[first..end];
        point_iovecs(iovecs, &mut self.buffers[first * self.size..end * self.size], self.size);
        let headers = &mut self.headers[first..end];
        point_headers(headers, iovecs);
        let headers = headers.as_mut_ptr();
        // SAFETY: `headers` holds `end - first` records whose vectors point into `buffers`; all outlive the call.
        let sent = unsafe { libc::sendmmsg(socket.as_fd().as_raw_fd(), headers, (end - first) as u32, 0) };
        if sent < 0 { Err(io::Error::last_os_error()) } else { Ok(sent as usize) }
    }
}

/// Buffers for datagrams received together.
pub struct RecvBatch {
    buffers: Vec<u8>,
    size: usize,
    control: Vec<[u64; CONTROL_WORDS]>,
    iovecs: Vec<libc::iovec>,
    headers: Vec<libc::mmsghdr>,
    received: usize,
}

// SAFETY: the raw pointers in `iovecs` and `headers` are only used during `recv` (which sets them first) and `control`
// (which reads a buffer that this struct owns).
unsafe impl Send for RecvBatch {}

impl RecvBatch {
    /// Room for `count` datagrams of at most `size` bytes. Panics if `size` is 0.
    pub fn new(count: usize, size: usize) -> Self {
        assert!(size > 0, "a datagram buffer of 0 bytes");
        Self {
            buffers: vec![0; count * size],
            size,
            control: vec![[0; CONTROL_WORDS]; count],
            iovecs: vec![EMPTY_IOVEC; count],
            headers: vec![empty_header(); count],
            received: 0,
        }
    }

    /// Receives up to the capacity; returns how many came. Hot call: plain `io::Result`. A socket without input gives
    /// `WouldBlock`, at once or after its receive timeout.
    pub fn recv(&mut self, socket: impl AsFd, wait: Wait) -> io::Result<usize> {
        self.received = 0;
        point_iovecs(&mut self.iovecs, &mut self.buffers, self.size);
        point_headers(&mut self.headers, &mut self.iovecs);
        for (header, control) in self.headers.iter_mut().zip(&mut self.control) {
            header.msg_hdr.msg_control = control.as_mut_ptr().cast();
            header.msg_hdr.msg_controllen = mem::size_of_val(control) as _;
        }
        let flags = match wait {
            Wait::ForOne => libc::MSG_WAITFORONE,
            Wait::No => libc::MSG_DONTWAIT,
        };
        let (headers, count) = (self.headers.as_mut_ptr(), self.headers.len() as u32);
        // SAFETY: `headers` holds `count` records that point into buffers of this struct, which outlive the call.
        let received = unsafe {
            libc::recvmmsg(socket.as_fd().as_raw_fd(), headers, count, flags as _, ptr::null_mut())
        };
        if received < 0 {
            return Err(io::Error::last_os_error());
        }
        self.received = received as usize;
        Ok(self.received)
    }

    /// Payload of message `index` of the last receive, as much of it as the buffer held.
    pub fn message(&self, index: usize) -> &[u8] {
        assert!(index < self.received, "message {index} of {}", self.received);
        let length = (self.headers[index].msg_len as usize).min(self.size);
        &self.buffers[index * self.size..][..length]
    }

    /// What the kernel said beside message `index` of the last receive.
    pub fn control(&self, index: usize) -> Control {
        assert!(index < self.received, "message {index} of {}", self.received);
        let header = &self.headers[index].msg_hdr;
        let truncated = header.msg_flags & (libc::MSG_TRUNC | libc::MSG_CTRUNC) != 0;
        let mut control = Control { truncated, ..Control::default() };
        // SAFETY: `header` is as the kernel left it: its control part lies in our own aligned buffer of this index.
        let mut message = unsafe { libc::CMSG_FIRSTHDR(header) };
        while !message.is_null() {
            // SAFETY: CMSG_FIRSTHDR and CMSG_NXTHDR return only headers that lie whole in the control buffer.
            let (level, kind) = unsafe { ((*message).cmsg_level, (*message).cmsg_type) };
            // SAFETY: as above; the kernel writes the payload of the named type behind its header.
            let data = unsafe { libc::CMSG_DATA(message) };
            match (level, kind) {
                (libc::SOL_SOCKET, libc::SO_RXQ_OVFL) => {
                    // SAFETY: the payload of SO_RXQ_OVFL is one u32; the read needs no alignment.
                    control.drops = Some(unsafe { ptr::read_unaligned(data.cast::<u32>()) });
                }
                (libc::SOL_UDP, libc::UDP_GRO) => {
                    // SAFETY: the payload of UDP_GRO is one int; the read needs no alignment.
                    let size = unsafe { ptr::read_unaligned(data.cast::<libc::c_int>()) };
                    control.segment = u16::try_from(size).ok();
                }
                (libc::SOL_SOCKET, libc::SCM_TIMESTAMPNS) => {
                    // SAFETY: the payload of SCM_TIMESTAMPNS is one timespec; the read needs no alignment.
                    let time = unsafe { ptr::read_unaligned(data.cast::<libc::timespec>()) };
                    control.timestamp_ns = Some(time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64);
                }
                _ => {}
            }
            // SAFETY: `message` came from this header's control buffer.
            message = unsafe { libc::CMSG_NXTHDR(header, message) };
        }
        control
    }
}

const EMPTY_IOVEC: libc::iovec = libc::iovec { iov_base: ptr::null_mut(), iov_len: 0 };

fn empty_header() -> libc::mmsghdr {
    // SAFETY: all zero bits are a valid mmsghdr: null pointers and zero lengths.
    unsafe { mem::zeroed() }
}

/// Points each vector at its own `size` bytes of `buffers`.
fn point_iovecs(iovecs: &mut [libc::iovec], buffers: &mut [u8], size: usize) {
    for (iovec, buffer) in iovecs.iter_mut().zip(buffers.chunks_exact_mut(size)) {
        *iovec = libc::iovec { iov_base: buffer.as_mut_ptr().cast(), iov_len: buffer.len() };
    }
}

/// Points each header at its vector and clears what the kernel left in it.
fn point_headers(headers: &mut [libc::mmsghdr], iovecs: &mut [libc::iovec]) {
    for (header, iovec) in headers.iter_mut().zip(iovecs) {
        *header = empty_header();
        header.msg_hdr.msg_iov = iovec;
        header.msg_hdr.msg_iovlen = 1;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sockopt;
    use std::net::UdpSocket;
    use std::time::Duration;

    fn pair() -> (UdpSocket, UdpSocket) {
        let a = UdpSocket::bind("127.0.0.1:0").unwrap();
        let b = UdpSocket::bind("127.0.0.1:0").unwrap();
        a.connect(b.local_addr().unwrap()).unwrap();
        b.connect(a.local_addr().unwrap()).unwrap();
        b.set_read_timeout(Some(Duration::from_secs(5))).unwrap();
        (a, b)
    }

    #[test]
    fn a_batch_arrives_in_order() {
        let (a, b) = pair();
        let mut send = SendBatch::new(8, 100);
        let mut recv = RecvBatch::new(16, 200);
        assert_eq!(send.capacity(), 8);
        for round in 0..3u8 {
            for index in 0..8 {
                send.datagram(index).fill(round * 8 + index as u8);
            }
            assert_eq!(send.send(&a, 0, 3).unwrap(), 3);
            assert_eq!(send.send(&a, 3, 8).unwrap(), 5);
            let mut got = 0;
            while got < 8 {
                let count = recv.recv(&b, Wait::ForOne).unwrap();
                for index in 0..count {
                    assert_eq!(recv.message(index), [round * 8 + got as u8; 100]);
                    assert!(!recv.control(index).truncated);
                    got += 1;
                }
            }
        }
    }

    #[test]
    fn nothing_there_would_block() {
        let (_a, b) = pair();
        let mut recv = RecvBatch::new(4, 100);
        assert_eq!(recv.recv(&b, Wait::No).unwrap_err().kind(), io::ErrorKind::WouldBlock);
        b.set_read_timeout(Some(Duration::from_millis(5))).unwrap();
        assert_eq!(recv.recv(&b, Wait::ForOne).unwrap_err().kind(), io::ErrorKind::WouldBlock);
    }

    #[test]
    fn drops_are_reported_for_every_message() {
        let (a, b) = pair();
        sockopt::set_report_drops(&b, true).unwrap();
        sockopt::set_receive_timestamps(&b, true).unwrap();
        sockopt::set_receive_buffer(&b, 20_000).unwrap();
        let mut recv = RecvBatch::new(4, 2000);
        let mut last = 0;
        for _ in 0..3 {
            for _ in 0..200 {
                a.send(&[0; 1000]).unwrap();
            }
            let mut received = 0;
            while let Ok(count) = recv.recv(&b, Wait::No) {
                received += count;
                for index in 0..count {
                    let control = recv.control(index);
                    assert!(control.timestamp_ns.is_some());
                    last = control.drops.unwrap_or(last);
                }
            }
            assert!(received > 0 && received < 200);
        }
        // The count that a datagram carries was taken when it was queued: the drops of the last round come with the next.
        a.send(&[0; 10]).unwrap();
        recv.recv(&b, Wait::ForOne).unwrap();
        let total = recv.control(0).drops.unwrap();
        assert!(total >= last && total > 100, "{last} then {total}");
    }

    #[test]
    fn a_long_datagram_is_marked_truncated() {
        let (a, b) = pair();
        a.send(&[1; 100]).unwrap();
        let mut recv = RecvBatch::new(2, 10);
        assert_eq!(recv.recv(&b, Wait::ForOne).unwrap(), 1);
        assert_eq!(recv.message(0), [1; 10]);
        assert!(recv.control(0).truncated);
    }

    #[test]
    fn merged_segments_tell_their_size_each_time() {
        let (a, b) = pair();
        sockopt::set_udp_gro(&b, true).unwrap();
        let mut recv = RecvBatch::new(2, 65_535);
        for _ in 0..3 {
            let segment = [0x10u8; 1];
            a.send(&segment).unwrap();
            assert_eq!(recv.recv(&b, Wait::ForOne).unwrap(), 1);
            assert_eq!(recv.control(0).segment.unwrap_or(1), 1);
        }
    }

    #[test]
    #[should_panic(expected = "message 0 of 0")]
    fn a_message_that_did_not_come_is_a_bug() {
        RecvBatch::new(1, 10).message(0);
    }
}
