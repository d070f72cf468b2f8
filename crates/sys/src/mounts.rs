//! Covering a directory with a new mount without losing what is mounted below it.

use std::ffi::{CString, OsString};
use std::fs;
use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};

use crate::error::{Result, SysError};

/// Runs `mount_over`, which mounts something on `directory`, and attaches the former mounts below it anew, but for
/// those of `except`. Returns those that could not be attached, which are hidden from now on.
///
/// # Errors
/// `/proc/self/mountinfo` unreadable, or what `mount_over` says.
pub(crate) fn cover(
    directory: &str,
    except: &[&str],
    mount_over: impl FnOnce() -> Result<()>,
) -> Result<Vec<PathBuf>> {
    let table = "/proc/self/mountinfo";
    let mountinfo = fs::read(table).map_err(|error| SysError::new("read", table, error))?;
    let mut below = topmost_below(&mountinfo, Path::new(directory));
    below.retain(|path| !except.iter().any(|other| path == Path::new(other)));
    let kept: Vec<_> = below.into_iter().map(|path| (clone_tree(&path), path)).collect();
    mount_over()?;
    let mut hidden = Vec::new();
    for (tree, path) in kept {
        if tree.and_then(|tree| attach(&tree, &path)).is_err() {
            hidden.push(path);
        }
    }
    Ok(hidden)
}

/// The mounts below `directory` that are not below another of them, from `/proc/self/mountinfo` (proc_pid_mountinfo(5)).
fn topmost_below(mountinfo: &[u8], directory: &Path) -> Vec<PathBuf> {
    let mut paths: Vec<PathBuf> = mountinfo
        .split(|&byte| byte == b'\n')
        .filter_map(|line| line.split(|&byte| byte == b' ').nth(4))
        .map(|field| PathBuf::from(OsString::from_vec(unescape(field))))
        .filter(|path| path.starts_with(directory) && path != directory)
        .collect();
    paths.sort();
    paths.dedup();
    let mut topmost: Vec<PathBuf> = Vec::new();
    for path in paths {
        if !topmost.last().is_some_and(|above| path.starts_with(above)) {
            topmost.push(path);
        }
    }
    topmost
}

/// The kernel writes blank, tab, newline and backslash as a backslash with three octal digits.
fn unescape(field: &[u8]) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(field.len());
    let mut rest = field;
    while let Some((&first, tail)) = rest.split_first() {
        let octal =
            tail.get(..3).filter(|digits| first == b'\\' && digits.iter().all(|d| (b'0'..=b'7').contains(d)));
        match octal {
            Some(digits) => {
                bytes.push(
                    digits.iter().fold(0u8, |value, digit| value.wrapping_mul(8).wrapping_add(digit - b'0')),
                );
                rest = &tail[3..];
            }
            None => {
                bytes.push(first);
                rest = tail;
            }
        }
    }
    bytes
}

fn clone_tree(path: &Path) -> io::Result<OwnedFd> {
    let target = CString::new(path.as_os_str().as_bytes())?;
    let flags = libc::OPEN_TREE_CLONE | libc::OPEN_TREE_CLOEXEC | libc::AT_RECURSIVE as libc::c_uint;
    // SAFETY: target is a NUL-terminated string that outlives the call.
    let fd = unsafe { libc::syscall(libc::SYS_open_tree, libc::AT_FDCWD, target.as_ptr(), flags) };
    if fd < 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: the kernel has just returned this descriptor and nothing else owns it.
    Ok(unsafe { OwnedFd::from_raw_fd(fd as libc::c_int) })
}

fn attach(tree: &OwnedFd, path: &Path) -> io::Result<()> {
    if !path.exists() {
        fs::create_dir_all(path)?;
    }
    let target = CString::new(path.as_os_str().as_bytes())?;
    let (fd, empty) = (tree.as_raw_fd(), c"");
    let flags = libc::MOVE_MOUNT_F_EMPTY_PATH;
    // SAFETY: both strings are NUL-terminated and outlive the call; fd is an open detached mount.
    let moved = unsafe {
        libc::syscall(libc::SYS_move_mount, fd, empty.as_ptr(), libc::AT_FDCWD, target.as_ptr(), flags)
    };
    if moved == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn finds_the_topmost_mounts_below_a_directory() {
        let table = b"1 0 0:1 / /sys rw - sysfs sysfs rw\n2 1 0:2 / /sys/fs/cgroup rw - tmpfs x rw\n\
            3 2 0:3 / /sys/fs/cgroup/cpu rw - cgroup x rw\n4 1 0:4 / /system rw - tmpfs x rw\n\
            5 1 0:5 / /sys/a\\040b\\134 rw - tmpfs x rw\nbroken\n";
        let expected = [PathBuf::from("/sys/a b\\"), PathBuf::from("/sys/fs/cgroup")];
        assert_eq!(topmost_below(table, Path::new("/sys")), expected);
    }

    proptest::proptest! {
        #[test]
        fn hostile_tables_never_panic(bytes in proptest::collection::vec(proptest::prelude::any::<u8>(), 0..300)) {
            let _ = topmost_below(&bytes, Path::new("/"));
            let _ = unescape(&bytes);
        }
    }
}
