//! Which network namespace this is, told apart from one that later gets its name.

use std::fs;
use std::io;
use std::os::fd::AsRawFd;
use std::os::unix::fs::MetadataExt;

use crate::error::{Result, SysError};
use crate::ethtool_ioctl;

const THREAD_NAMESPACE: &str = "/proc/thread-self/ns/net";

/// A network namespace of this boot.
///
/// Equal identities mean the same namespace: the cookie is never given twice in a boot (kernel 5.14 and later). Without
/// one, device and inode number tell, which the kernel may give again once the namespace is gone.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct NetnsIdentity {
    /// Device of the namespace's file (namespaces(7)).
    pub device: u64,
    /// Its inode number.
    pub inode: u64,
    /// `SO_NETNS_COOKIE` (linux/net_namespace.h); `None` where the kernel has none.
    pub cookie: Option<u64>,
}

impl NetnsIdentity {
    /// The calling thread's network namespace.
    ///
    /// # Errors
    /// `/proc` can't be read, or there is no socket to be had.
    pub fn current() -> Result<Self> {
        let file = fs::metadata(THREAD_NAMESPACE)
            .map_err(|error| SysError::new("look up", THREAD_NAMESPACE, error))?;
        Ok(Self { device: file.dev(), inode: file.ino(), cookie: cookie()? })
    }

    /// Whether a namespace's file (`/run/netns/NAME`, `/proc/PID/ns/net`) may be this namespace; only entering it and
    /// asking [`Self::current`] makes sure.
    pub fn may_be(&self, file: &fs::Metadata) -> bool {
        (file.dev(), file.ino()) == (self.device, self.inode)
    }
}

fn cookie() -> Result<Option<u64>> {
    let socket = ethtool_ioctl::open()?;
    let (mut cookie, mut length) = (0u64, size_of::<u64>() as libc::socklen_t);
    // SAFETY: cookie is writable for `length` bytes, and both outlive the call.
    let code = unsafe {
        libc::getsockopt(
            socket.as_raw_fd(),
            libc::SOL_SOCKET,
            libc::SO_NETNS_COOKIE,
            (&raw mut cookie).cast(),
            &raw mut length,
        )
    };
    match SysError::last("read SO_NETNS_COOKIE", "") {
        _ if code == 0 && length == 8 => Ok(Some(cookie)),
        _ if code == 0 => Err(SysError::new("read SO_NETNS_COOKIE", "", io::ErrorKind::InvalidData.into())),
        error if error.raw_os_error() == Some(libc::ENOPROTOOPT) => Ok(None),
        error => Err(error),
    }
}

#[cfg(test)]
mod tests {
    use nix::sched::{CloneFlags, unshare};
    use nix::unistd::geteuid;

    use super::*;

    #[test]
    fn it_stays_the_same_and_another_namespace_has_another() {
        let here = NetnsIdentity::current().unwrap();
        assert_eq!(here, NetnsIdentity::current().unwrap());
        assert!(here.may_be(&fs::metadata(THREAD_NAMESPACE).unwrap()));
        if !geteuid().is_root() {
            return;
        }
        let elsewhere = || {
            unshare(CloneFlags::CLONE_NEWNET).unwrap();
            NetnsIdentity::current().unwrap()
        };
        let (one, other) = (std::thread::spawn(elsewhere).join(), std::thread::spawn(elsewhere).join());
        let (one, other) = (one.unwrap(), other.unwrap());
        assert!(here != one && one != other && here != other);
    }
}
