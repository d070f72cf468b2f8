//! What the first process of a machine does: mount the kernel's file systems, and switch the machine off.

use std::fs;
use std::io;

use nix::errno::Errno;
use nix::mount::{MsFlags, mount};

use crate::error::{Result, SysError};

/// The kernel's own file systems, and those that live in memory; each with whether linerate can do without it.
const FILE_SYSTEMS: [(&str, &str, bool); 7] = [
    ("proc", "/proc", false),
    ("sysfs", "/sys", false),
    ("devtmpfs", "/dev", false),
    ("tmpfs", "/run", false),
    ("tmpfs", "/tmp", false),
    ("debugfs", "/sys/kernel/debug", true),
    ("tracefs", "/sys/kernel/tracing", true),
];

/// Whether this process is the first of its machine.
pub fn is_first_process() -> bool {
    std::process::id() == 1
}

/// Mounts `/proc`, `/sys`, `/dev`, `/run`, `/tmp`, and debugfs and tracefs where the kernel has them.
///
/// # Errors
/// The kernel's refusal of one that is needed.
pub fn mount_all() -> Result<()> {
    for (kind, path, optional) in FILE_SYSTEMS {
        match mount_one(kind, path) {
            Err(_) if optional => {}
            other => other?,
        }
    }
    Ok(())
}

fn mount_one(kind: &str, path: &str) -> Result<()> {
    fs::create_dir_all(path).map_err(|error| SysError::new("create", path, error))?;
    match mount(Some(kind), path, Some(kind), MsFlags::empty(), None::<&str>) {
        // The kernel has mounted devtmpfs by itself.
        Ok(()) | Err(Errno::EBUSY) => Ok(()),
        Err(error) => Err(SysError::new("mount", format!("{kind} at {path}"), error.into())),
    }
}

/// Switches the machine off; returns only where the kernel refuses.
pub fn power_off() -> SysError {
    refuse_outside_a_guest().unwrap_or_else(|| {
        // SAFETY: sync takes nothing; reboot takes a number and touches no memory of ours.
        unsafe {
            libc::sync();
            libc::reboot(libc::LINUX_REBOOT_CMD_POWER_OFF);
        }
        SysError::last("switch off", "this machine")
    })
}

/// A slip must never switch off the machine of the user.
fn refuse_outside_a_guest() -> Option<SysError> {
    let error = || SysError::new("switch off", "this machine", io::ErrorKind::PermissionDenied.into());
    (!is_first_process()).then(error)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nobody_but_the_first_process_switches_off() {
        assert!(!is_first_process());
        assert!(refuse_outside_a_guest().is_some());
    }
}
