//! One suite at a time on a link: a file locked with flock(2) for each end, as long as the run lasts.

use std::fs::{self, File, OpenOptions};
use std::io::{Read, Seek, Write};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use nix::errno::Errno;
use nix::fcntl::{Flock, FlockArg};

const DIRECTORY: &str = "/run/linerate";

/// Held locks; let go when dropped.
#[derive(Debug)]
pub(crate) struct LinkLocks(
    #[cfg_attr(not(test), expect(dead_code, reason = "held, not read"))] Vec<LinkLock>,
);

/// Why a link can't be had.
#[derive(Debug, thiserror::Error)]
pub enum LockError {
    /// Another run has it.
    #[error("{end}: another qualification runs on this link (process {owner}); wait for it, or end it")]
    Taken {
        /// Node and link.
        end: String,
        /// Its process.
        owner: String,
    },
    /// The file can't be made.
    #[error("lock {path}: {cause}")]
    File {
        /// Its path.
        path: String,
        /// Why.
        cause: std::io::Error,
    },
}

/// Locks these ends, each named by node and link.
pub(crate) fn lock(ends: &[String]) -> Result<LinkLocks, LockError> {
    let directory = directory();
    let mut sorted = ends.to_vec();
    sorted.sort();
    sorted.dedup();
    sorted.iter().map(|end| lock_one(&directory, end)).collect::<Result<_, _>>().map(LinkLocks)
}

fn directory() -> PathBuf {
    if fs::create_dir_all(DIRECTORY).is_ok() && probe(DIRECTORY.into()) {
        return DIRECTORY.into();
    }
    let own = std::env::var_os("XDG_RUNTIME_DIR").map(PathBuf::from).unwrap_or_else(std::env::temp_dir);
    let own = own.join("linerate");
    // Where this fails too, opening the lock tells why.
    let _ = fs::create_dir_all(&own);
    own
}

fn probe(directory: PathBuf) -> bool {
    nix::unistd::access(&directory, nix::unistd::AccessFlags::W_OK).is_ok()
}

fn lock_one(directory: &Path, end: &str) -> Result<LinkLock, LockError> {
    let name: String = end.chars().map(|c| if c.is_ascii_alphanumeric() { c } else { '_' }).collect();
    let path = directory.join(format!("qualify-{name}.lock"));
    let failed = |cause| LockError::File { path: path.display().to_string(), cause };
    loop {
        let mut options = OpenOptions::new();
        let mut file =
            options.read(true).write(true).create(true).truncate(false).open(&path).map_err(failed)?;
        let mut owner = String::new();
        let _ = file.read_to_string(&mut owner);
        match Flock::lock(file, FlockArg::LockExclusiveNonblock) {
            // Its owner removed the file between the two lines above: the one that is there now counts.
            Ok(file) if !is_file_at(&file, &path) => {}
            Ok(mut file) => {
                let write = |file: &mut File| {
                    file.set_len(0)?;
                    file.rewind()?;
                    write!(file, "{}", std::process::id())
                };
                write(&mut file).map_err(failed)?;
                return Ok(LinkLock { path, _file: file });
            }
            Err((_, Errno::EWOULDBLOCK)) => {
                let owner = if owner.is_empty() { "unknown".to_owned() } else { owner };
                return Err(LockError::Taken { end: end.to_owned(), owner });
            }
            Err((_, errno)) => return Err(failed(errno.into())),
        }
    }
}

fn is_file_at(file: &File, path: &Path) -> bool {
    let identity = |data: fs::Metadata| (data.dev(), data.ino());
    match (file.metadata(), fs::metadata(path)) {
        (Ok(held), Ok(there)) => identity(held) == identity(there),
        _ => false,
    }
}

/// The lock of one end.
#[derive(Debug)]
struct LinkLock {
    path: PathBuf,
    _file: Flock<File>,
}

impl Drop for LinkLock {
    /// Removes the file while the lock is held, so that nobody can take it between.
    fn drop(&mut self) {
        // One that stays is taken by the next run.
        let _ = fs::remove_file(&self.path);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_link_is_had_once_and_free_again_afterwards() {
        let end = format!("netns:lr-t{}-lock eth0", std::process::id());
        let held = lock(std::slice::from_ref(&end)).unwrap();
        let error = lock(std::slice::from_ref(&end)).unwrap_err();
        assert!(error.to_string().contains(&std::process::id().to_string()), "{error}");
        let path = held.0[0].path.clone();
        assert!(path.exists());
        drop(held);
        assert!(!path.exists(), "nothing is left behind");
        assert!(lock(&[end]).is_ok());
    }
}
