//! Pages of memory that go into a socket by reference (vmsplice(2), splice(2)), and files in memory whose pages do.
//!
//! The kernel refers to such pages until the last reader is done with them, which for a receiver on the same machine is
//! when its program has read. Nobody is told, so they are never written again: given back, they stay as they are for
//! whoever still refers to them.

use std::io;
use std::ops::{Deref, DerefMut};
use std::os::fd::{AsFd, AsRawFd, FromRawFd, OwnedFd};
use std::ptr;

use crate::error::{Result, SysError};

/// Fresh anonymous memory, zeroed, page by page; given back when dropped.
#[derive(Debug)]
pub struct Pages {
    start: *mut u8,
    length: usize,
}

// SAFETY: the mapping belongs to this value alone and is not tied to a thread.
unsafe impl Send for Pages {}

impl Pages {
    /// Maps `length` bytes (at least 1), from the start of a page on.
    ///
    /// # Errors
    /// No memory.
    pub fn new(length: usize) -> Result<Self> {
        let length = length.max(1);
        let (protection, flags) =
            (libc::PROT_READ | libc::PROT_WRITE, libc::MAP_PRIVATE | libc::MAP_ANONYMOUS);
        // SAFETY: a new private mapping at an address of the kernel's choice touches no memory in use.
        let start = unsafe { libc::mmap(ptr::null_mut(), length, protection, flags, -1, 0) };
        if start == libc::MAP_FAILED {
            return Err(SysError::last("map memory", format!("{length} bytes")));
        }
        Ok(Self { start: start.cast(), length })
    }
}

impl Deref for Pages {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        // SAFETY: `length` bytes from `start` are mapped, readable and initialised for as long as `self` lives.
        unsafe { std::slice::from_raw_parts(self.start, self.length) }
    }
}

impl DerefMut for Pages {
    fn deref_mut(&mut self) -> &mut [u8] {
        // SAFETY: as in `deref`; `&mut self` makes the reference the only one.
        unsafe { std::slice::from_raw_parts_mut(self.start, self.length) }
    }
}

impl Drop for Pages {
    fn drop(&mut self) {
        // SAFETY: the mapping was made by `new` with this length, and no reference to it outlives `self`. The kernel's own
        // references keep the pages, not the mapping.
        unsafe { libc::munmap(self.start.cast(), self.length) };
    }
}

/// A pipe that carries pages.
#[derive(Debug)]
pub struct PagePipe {
    reader: OwnedFd,
    writer: OwnedFd,
}

impl PagePipe {
    /// Makes a pipe, nonblocking at the end that pages go in.
    ///
    /// # Errors
    /// No descriptors left.
    pub fn new() -> Result<Self> {
        let mut ends = [0; 2];
        // SAFETY: the kernel writes two descriptors into the array, which outlives the call.
        if unsafe { libc::pipe2(ends.as_mut_ptr(), libc::O_CLOEXEC) } < 0 {
            return Err(SysError::last("make a pipe", ""));
        }
        // SAFETY: the kernel has just returned these descriptors and nothing else owns them.
        let [reader, writer] = ends.map(|fd| unsafe { OwnedFd::from_raw_fd(fd) });
        Ok(Self { reader, writer })
    }

    /// Puts pages in, from `from` on, as many bytes as there is room for; returns how many. The pages are given up for
    /// good: whoever reads refers to them from now on.
    ///
    /// # Errors
    /// EAGAIN without room.
    pub fn put(&self, pages: &Pages, from: usize) -> io::Result<usize> {
        let rest = &pages[from.min(pages.len())..];
        let vector = libc::iovec { iov_base: rest.as_ptr().cast_mut().cast(), iov_len: rest.len() };
        let fd = self.writer.as_raw_fd();
        // SAFETY: the vector describes mapped memory that outlives the call; the kernel takes references of its own to the
        // pages, and only reads them.
        let put = unsafe { libc::vmsplice(fd, &raw const vector, 1, libc::SPLICE_F_NONBLOCK) };
        if put < 0 { Err(io::Error::last_os_error()) } else { Ok(put as usize) }
    }

    /// Moves up to `count` bytes on into a socket; returns how many. Waits for room as long as the socket's send timeout.
    ///
    /// # Errors
    /// EAGAIN when there was no room in time, else what send(2) gives.
    pub fn send(&self, socket: impl AsFd, count: usize) -> io::Result<usize> {
        let (from, to) = (self.reader.as_raw_fd(), socket.as_fd().as_raw_fd());
        // SAFETY: no pointers are handed over; both descriptors are borrowed for the call.
        let sent =
            unsafe { libc::splice(from, ptr::null_mut(), to, ptr::null_mut(), count, libc::SPLICE_F_MOVE) };
        if sent < 0 { Err(io::Error::last_os_error()) } else { Ok(sent as usize) }
    }
}

/// Bytes of a page.
pub fn page_bytes() -> usize {
    // SAFETY: the call takes an integer only.
    let size = unsafe { libc::sysconf(libc::_SC_PAGESIZE) };
    usize::try_from(size).unwrap_or(4096)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Read;
    use std::net::{TcpListener, TcpStream};

    #[test]
    fn pages_arrive_as_they_were_although_they_were_given_back() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let sender = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        let (mut receiver, _) = listener.accept().unwrap();
        let pipe = PagePipe::new().unwrap();
        for round in 1..=8_u8 {
            let mut pages = Pages::new(3 * page_bytes()).unwrap();
            pages.fill(round);
            let put = pipe.put(&pages, 1 + usize::from(round)).unwrap();
            assert_eq!(put, pages.len() - 1 - usize::from(round));
            drop(pages);
            assert_eq!(pipe.send(&sender, put).unwrap(), put);
        }
        drop(sender);
        let mut got = Vec::new();
        receiver.read_to_end(&mut got).unwrap();
        let expected: Vec<u8> =
            (1..=8_u8).flat_map(|round| vec![round; 3 * page_bytes() - 1 - usize::from(round)]).collect();
        assert!(got == expected);
    }
}
