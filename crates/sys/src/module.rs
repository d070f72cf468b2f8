//! Kernel modules: init_module(2), delete_module(2).

use std::ffi::CString;
use std::fs::File;
use std::io;
use std::os::fd::AsRawFd;
use std::path::Path;

use crate::error::{Result, SysError};

/// `MODULE_INIT_COMPRESSED_FILE` (linux/module.h).
const COMPRESSED_FILE: libc::c_int = 4;

/// Loads the module in `file` with `parameters` as modprobe(8) takes them (`debug=1 copybreak=0`). What it depends on must
/// be loaded already. A compressed file is unpacked by the kernel, where that was built to do so (5.17 and later). Returns
/// false where it was loaded already.
///
/// # Errors
/// The file can't be opened, or the kernel's refusal (EPERM without `CAP_SYS_MODULE`, ENOENT for a missing symbol).
pub fn load(file: &Path, parameters: &str) -> Result<bool> {
    const OPERATION: &str = "load module";
    let object = || file.display().to_string();
    let opened = File::open(file).map_err(|error| SysError::new("open module", object(), error))?;
    let text = CString::new(parameters)
        .map_err(|_| SysError::new(OPERATION, object(), io::ErrorKind::InvalidInput.into()))?;
    let compressed =
        file.extension().is_some_and(|end| ["zst", "xz", "gz"].iter().any(|known| end == *known));
    let flags = if compressed { COMPRESSED_FILE } else { 0 };
    // SAFETY: the descriptor is open and the text ends with NUL; the kernel copies both before it returns.
    let outcome = unsafe { libc::syscall(libc::SYS_finit_module, opened.as_raw_fd(), text.as_ptr(), flags) };
    if outcome == 0 {
        return Ok(true);
    }
    match SysError::last(OPERATION, object()) {
        error if error.raw_os_error() == Some(libc::EEXIST) => Ok(false),
        error => Err(error),
    }
}

/// Unloads a module by its name in the kernel (`8139cp`, `virtio_net`).
///
/// # Errors
/// The kernel's refusal: EWOULDBLOCK while it is in use, ENOENT where it is not loaded, EPERM.
pub fn unload(name: &str) -> Result<()> {
    const OPERATION: &str = "unload module";
    let text =
        CString::new(name).map_err(|_| SysError::new(OPERATION, name, io::ErrorKind::InvalidInput.into()))?;
    // SAFETY: the text ends with NUL and the kernel copies it. O_NONBLOCK: a module in use is refused, not waited for.
    if unsafe { libc::syscall(libc::SYS_delete_module, text.as_ptr(), libc::O_NONBLOCK) } == 0 {
        return Ok(());
    }
    Err(SysError::last(OPERATION, name))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn refusals_name_the_module() {
        let error = unload("linerate_no_such_module").unwrap_err();
        assert!(error.to_string().starts_with("unload module on linerate_no_such_module: "), "{error}");
        let error = load(Path::new("/no/such/file.ko"), "").unwrap_err().to_string();
        assert!(error.starts_with("open module on /no/such/file.ko: "), "{error}");
        assert!(unload("a\0b").is_err());
    }
}
