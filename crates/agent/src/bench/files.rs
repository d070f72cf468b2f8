//! Small files of /proc and /sys.

use std::fs::{self, File, OpenOptions};
use std::io::{Read, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Component, Path, PathBuf};

use super::error::{BenchError, Result};

const OS_RELEASE: &str = "/etc/os-release";
const FOLDERS: [&str; 2] = ["/proc", "/sys"];
const MOST_BYTES: u64 = 1 << 20;

/// Reads a file, at most 1 MiB of it.
pub(super) fn read(path: &str) -> Result<String> {
    let failed = |cause| failed("read", path, cause);
    let place = if path == OS_RELEASE { PathBuf::from(path) } else { below(path, "read")? };
    let mut bytes = Vec::new();
    // Some of these files wait for what comes next; a read must not.
    let file =
        OpenOptions::new().read(true).custom_flags(nix::libc::O_NONBLOCK).open(place).map_err(failed)?;
    check_kind(&file, path)?;
    file.take(MOST_BYTES).read_to_end(&mut bytes).map_err(failed)?;
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

/// Writes a file that is there, in one write.
pub(super) fn write(path: &str, text: &str) -> Result<()> {
    let failed = |cause| failed("write", path, cause);
    let place = below(path, "write")?;
    let mut file =
        OpenOptions::new().write(true).custom_flags(nix::libc::O_NONBLOCK).open(place).map_err(failed)?;
    check_kind(&file, path)?;
    file.write_all(text.as_bytes()).map_err(failed)
}

/// The file itself, which must lie below /proc or /sys as the path says: no `..`, and no link that leads elsewhere.
fn below(path: &str, operation: &'static str) -> Result<PathBuf> {
    let refused = || BenchError::invalid(format!("{operation} {path}"), "only files below /proc and /sys");
    let inside = |path: &Path| FOLDERS.iter().any(|folder| path.starts_with(folder));
    let asked = Path::new(path);
    if !inside(asked) || asked.components().any(|part| part == Component::ParentDir) {
        return Err(refused());
    }
    let place = fs::canonicalize(asked).map_err(|cause| failed(operation, path, cause))?;
    if inside(&place) { Ok(place) } else { Err(refused()) }
}

fn check_kind(file: &File, path: &str) -> Result<()> {
    let kind = file.metadata().map_err(|cause| failed("look at", path, cause))?;
    if kind.is_file() { Ok(()) } else { Err(BenchError::invalid(path, "it is no file")) }
}

fn failed(operation: &'static str, path: &str, cause: std::io::Error) -> BenchError {
    BenchError::File { operation, path: path.to_owned(), cause }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_files_of_proc_and_sys_are_read() {
        assert!(read("/proc/sys/kernel/ostype").unwrap().starts_with("Linux"));
        assert!(read(OS_RELEASE).is_ok());
        for path in [
            "/etc/passwd",
            "/proc/../etc/passwd",
            "/proc/self/root/etc/passwd",
            "/proc/self/cwd/Cargo.toml",
            "/procfs",
            "proc/version",
            "",
            "/proc/self",
            "/sys/class/net",
            "/proc/self/exe",
        ] {
            assert!(read(path).is_err(), "{path}");
        }
        let missing = read("/sys/class/net/lr-none/mtu").unwrap_err().to_string();
        assert_eq!(missing, "read /sys/class/net/lr-none/mtu: No such file or directory (os error 2)");
    }

    #[test]
    fn what_can_not_be_written_is_told() {
        assert!(write("/etc/os-release", "x").is_err());
        assert!(write("/proc/lr-none", "x").is_err());
        assert!(write("/proc/version", "x").is_err());
    }
}
