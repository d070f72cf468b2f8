//! Buffers for calls whose replies may be longer than the room that was announced.

use std::ffi::c_void;
use std::io;
use std::ptr;

use crate::error::{Result, SysError};

/// Memory for a system call's reply, with a page behind it that can't be touched: a reply that is longer than announced
/// runs into that page and fails with `EFAULT`, instead of overwriting what is not its own.
#[derive(Debug)]
pub(crate) struct GuardedBuffer {
    start: *mut u8,
    mapped: usize,
    capacity: usize,
}

// SAFETY: the mapping belongs to this value alone and is not tied to a thread.
unsafe impl Send for GuardedBuffer {}

impl GuardedBuffer {
    /// Maps zeroed memory for at least `capacity` bytes.
    ///
    /// # Errors
    /// No memory.
    pub(crate) fn new(capacity: usize) -> Result<Self> {
        const OPERATION: &str = "map memory for a reply";
        let object = || format!("{capacity} bytes");
        let page = page_size()?;
        let rounded = capacity.max(1).checked_next_multiple_of(page);
        let mapped = rounded.and_then(|rounded| rounded.checked_add(page));
        let mapped =
            mapped.ok_or_else(|| SysError::new(OPERATION, object(), io::ErrorKind::OutOfMemory.into()))?;
        let (protection, flags) =
            (libc::PROT_READ | libc::PROT_WRITE, libc::MAP_PRIVATE | libc::MAP_ANONYMOUS);
        // SAFETY: a new private mapping at an address of the kernel's choice touches no memory in use.
        let start = unsafe { libc::mmap(ptr::null_mut(), mapped, protection, flags, -1, 0) };
        if start == libc::MAP_FAILED {
            return Err(SysError::last(OPERATION, object()));
        }
        let buffer = Self { start: start.cast(), mapped, capacity: mapped - page };
        // SAFETY: the range is the last page of the mapping made above, and nothing refers to it.
        let code = unsafe { libc::mprotect(buffer.start.add(buffer.capacity).cast(), page, libc::PROT_NONE) };
        if code < 0 {
            return Err(SysError::last("protect the end of a reply", object()));
        }
        Ok(buffer)
    }

    /// Where it starts, for the kernel to write to.
    pub(crate) fn as_mut_ptr(&mut self) -> *mut u8 {
        self.start
    }

    /// The memory; its length is the capacity asked for, rounded up to pages.
    pub(crate) fn bytes(&self) -> &[u8] {
        // SAFETY: `capacity` bytes from `start` are mapped, readable and initialised for as long as `self` lives.
        unsafe { std::slice::from_raw_parts(self.start, self.capacity) }
    }

    /// The memory, to write.
    pub(crate) fn bytes_mut(&mut self) -> &mut [u8] {
        // SAFETY: as in `bytes`; `&mut self` makes the reference the only one.
        unsafe { std::slice::from_raw_parts_mut(self.start, self.capacity) }
    }
}

impl Drop for GuardedBuffer {
    fn drop(&mut self) {
        // SAFETY: the mapping was made by `new` with this length, and no reference to it outlives `self`.
        unsafe { libc::munmap(self.start.cast::<c_void>(), self.mapped) };
    }
}

fn page_size() -> Result<usize> {
    // SAFETY: the call takes an integer only.
    let size = unsafe { libc::sysconf(libc::_SC_PAGESIZE) };
    usize::try_from(size).map_err(|_| SysError::last("read _SC_PAGESIZE", ""))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs::File;
    use std::os::fd::AsRawFd;

    #[test]
    fn it_is_zeroed_and_at_least_as_long_as_asked() {
        let mut buffer = GuardedBuffer::new(5000).unwrap();
        assert!(buffer.bytes().len() >= 5000 && buffer.bytes().iter().all(|&byte| byte == 0));
        buffer.bytes_mut().fill(1);
        assert!(buffer.bytes().iter().all(|&byte| byte == 1));
        assert!(GuardedBuffer::new(usize::MAX).is_err());
    }

    #[test]
    fn a_reply_beyond_it_fails_instead_of_spilling() {
        let buffer = GuardedBuffer::new(1).unwrap();
        let zero = File::open("/dev/zero").unwrap();
        let behind = buffer.start.wrapping_add(buffer.capacity);
        // SAFETY: the address is the guard page of a live mapping, where the kernel writes nothing.
        let code = unsafe { libc::read(zero.as_raw_fd(), behind.cast(), 8) };
        assert_eq!((code, io::Error::last_os_error().raw_os_error()), (-1, Some(libc::EFAULT)));
    }
}
