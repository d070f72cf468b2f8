//! One suite at a time on a link: a file locked with flock(2) for each end, as long as the run lasts.

use std::fs::{self, File, OpenOptions};
use std::io::{Read, Seek, Write};
use std::path::PathBuf;

use nix::errno::Errno;
use nix::fcntl::{Flock, FlockArg};

const DIRECTORY: &str = "/run/linerate";

/// Held locks; let go when dropped.
#[derive(Debug)]
pub(crate) struct LinkLocks(#[expect(dead_code, reason = "held, not read")] Vec<Flock<File>>);

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

fn lock_one(directory: &std::path::Path, end: &str) -> Result<Flock<File>, LockError> {
    let name: String = end.chars().map(|c| if c.is_ascii_alphanumeric() { c } else { '_' }).collect();
    let path = directory.join(format!("qualify-{name}.lock"));
    let failed = |cause| LockError::File { path: path.display().to_string(), cause };
    let mut file =
        OpenOptions::new().read(true).write(true).create(true).truncate(false).open(&path).map_err(failed)?;
    let mut owner = String::new();
    let _ = file.read_to_string(&mut owner);
    match Flock::lock(file, FlockArg::LockExclusiveNonblock) {
        Ok(mut file) => {
            let write = |file: &mut File| {
                file.set_len(0)?;
                file.rewind()?;
                write!(file, "{}", std::process::id())
            };
            write(&mut file).map_err(failed)?;
            Ok(file)
        }
        Err((_, Errno::EWOULDBLOCK)) => {
            let owner = if owner.is_empty() { "unknown".to_owned() } else { owner };
            Err(LockError::Taken { end: end.to_owned(), owner })
        }
        Err((_, errno)) => Err(failed(errno.into())),
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
        drop(held);
        assert!(lock(&[end]).is_ok());
    }
}
