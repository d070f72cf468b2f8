//! Files that live in memory, and sending from them without a copy (memfd_create(2), sendfile(2)).

use std::fs::File;
use std::io::{self, Write};
use std::os::fd::{AsFd, AsRawFd, FromRawFd, OwnedFd};

use crate::error::{Result, SysError};

/// Makes an anonymous file that holds `content`, closed on exec. `name` only shows in `/proc/self/fd`.
pub fn memfd_with(name: &str, content: &[u8]) -> Result<OwnedFd> {
    let text = std::ffi::CString::new(name)
        .map_err(|_| SysError::new("create memfd", name, io::ErrorKind::InvalidInput.into()))?;
    // SAFETY: `text` is a NUL-terminated string that outlives the call.
    let fd = unsafe { libc::memfd_create(text.as_ptr(), libc::MFD_CLOEXEC) };
    if fd < 0 {
        return Err(SysError::last("create memfd", name));
    }
    // SAFETY: the kernel has just given us `fd`, and nobody else owns it.
    let mut file = unsafe { File::from_raw_fd(fd) };
    file.write_all(content).map_err(|e| SysError::new("write memfd", name, e))?;
    Ok(file.into())
}

/// Gives back the pages of `count` bytes of a memfd from `offset` on: its length stays, they read as zeros, and whoever
/// was sent the pages keeps them as they were.
///
/// # Errors
/// The kernel's refusal.
pub fn punch(file: impl AsFd, offset: u64, count: u64) -> Result<()> {
    let fd = file.as_fd().as_raw_fd();
    let mode = libc::FALLOC_FL_PUNCH_HOLE | libc::FALLOC_FL_KEEP_SIZE;
    // SAFETY: the call takes integers only, and the descriptor is borrowed for its length.
    if unsafe { libc::fallocate(fd, mode, offset as libc::off_t, count as libc::off_t) } < 0 {
        return Err(SysError::last("punch a hole", format!("memfd {fd}")));
    }
    Ok(())
}

/// Sends `count` bytes of `file` from `offset` on; returns how many went. Plain `io::Result`: this is a hot call.
pub fn send_file(socket: impl AsFd, file: impl AsFd, offset: u64, count: usize) -> io::Result<usize> {
    let mut position = offset as libc::off_t;
    let (to, from) = (socket.as_fd().as_raw_fd(), file.as_fd().as_raw_fd());
    // SAFETY: `position` is writable and outlives the call; both descriptors are borrowed for its length.
    let sent = unsafe { libc::sendfile(to, from, &raw mut position, count) };
    if sent < 0 { Err(io::Error::last_os_error()) } else { Ok(sent as usize) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Read;
    use std::net::{TcpListener, TcpStream};

    #[test]
    fn a_slice_of_a_memfd_arrives() {
        let content: Vec<u8> = (0..200u8).collect();
        let file = memfd_with("lr-test", &content).unwrap();
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let client = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        let (mut server, _) = listener.accept().unwrap();
        assert_eq!(send_file(&client, &file, 50, 100).unwrap(), 100);
        assert_eq!(send_file(&client, &file, 190, 100).unwrap(), 10);
        drop(client);
        let mut got = Vec::new();
        server.read_to_end(&mut got).unwrap();
        assert_eq!(got[..100], content[50..150]);
        assert_eq!(got[100..], content[190..]);
    }

    #[test]
    fn a_name_with_nul_is_refused() {
        assert!(memfd_with("a\0b", &[]).is_err());
    }
}
