//! Kernel parameters by name, in the calling thread's namespaces.

use std::fs;
use std::path::{Path, PathBuf};

use crate::error::{LinkError, Result};

const ROOT: &str = "/proc/sys";

/// Reads a parameter (`net.ipv4.tcp_rmem`) without the newline at its end.
///
/// # Errors
/// [`LinkError::Invalid`] for a name that can't be one, else what the kernel says.
pub fn read(name: &str) -> Result<String> {
    let path = path_of(name)?;
    let text = fs::read_to_string(&path).map_err(|cause| LinkError::file("read sysctl", name, cause))?;
    Ok(text.trim_end_matches('\n').to_owned())
}

/// Writes a parameter.
///
/// # Errors
/// As [`read`], and the kernel's refusal of the value.
pub fn write(name: &str, value: &str) -> Result<()> {
    let path = path_of(name)?;
    fs::write(&path, value)
        .map_err(|cause| LinkError::file("set sysctl", format!("{name} to {value:?}"), cause))
}

/// Whether the kernel has this parameter.
pub fn exists(name: &str) -> bool {
    path_of(name).is_ok_and(|path| path.exists())
}

/// The one spelling of a name that has several: its path below `/proc/sys`.
///
/// # Errors
/// [`LinkError::Invalid`] for a name that can't be one.
pub(crate) fn canonical(name: &str) -> Result<String> {
    let path = path_of(name)?;
    Ok(path.strip_prefix(ROOT).unwrap_or(&path).display().to_string())
}

/// As sysctl(8): whichever of `.` and `/` comes first separates, and the other stands for itself, so that both
/// `net/ipv4/conf/eth0.1/mtu` and `net.ipv4.conf.eth0/1.mtu` name the link `eth0.1`.
fn path_of(name: &str) -> Result<PathBuf> {
    let separator = name.chars().find(|c| matches!(c, '.' | '/')).unwrap_or('.');
    let swap = |c| match c {
        '.' if separator == '.' => '/',
        '/' if separator == '.' => '.',
        other => other,
    };
    let relative: String = name.chars().map(swap).collect();
    let plain = |part: &str| !part.is_empty() && part != "." && part != ".." && !part.contains('\0');
    if relative.split('/').all(plain) {
        return Ok(Path::new(ROOT).join(relative));
    }
    Err(LinkError::Invalid {
        what: format!("sysctl {name:?}"),
        why: "a name is like net.ipv4.tcp_rmem".to_owned(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_map_to_files_as_sysctl_maps_them() {
        let path = |name: &str| path_of(name).unwrap().to_string_lossy().into_owned();
        assert_eq!(path("net.ipv4.tcp_rmem"), "/proc/sys/net/ipv4/tcp_rmem");
        assert_eq!(path("net.ipv4.conf.eth0/1.mtu"), "/proc/sys/net/ipv4/conf/eth0.1/mtu");
        assert_eq!(path("net/ipv4/conf/eth0.1/mtu"), "/proc/sys/net/ipv4/conf/eth0.1/mtu");
    }

    #[test]
    fn names_that_leave_the_tree_are_refused() {
        for name in
            ["", ".", "..", "../etc/passwd", "net/../../etc", "net..ipv4", "/net", "net.ipv4.", "a\0b"]
        {
            assert!(matches!(path_of(name), Err(LinkError::Invalid { .. })), "{name:?}");
        }
    }

    #[test]
    fn a_missing_parameter_is_named() {
        let error = read("net.no.such").unwrap_err().to_string();
        assert!(error.starts_with("read sysctl net.no.such: No such file"), "{error}");
    }
}
