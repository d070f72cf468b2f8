//! Work in a named network namespace.

use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::{fs, thread};

use linerate_sys::netns as sys;
use linerate_sys::netns_identity::NetnsIdentity;

use crate::error::{LinkError, Result};

/// Runs `work` on a fresh thread that lives and dies in the network namespace `name`; `/sys` shows that namespace's
/// links there. The calling thread stays where it is.
///
/// # Errors
/// The namespace does not exist or can't be entered; else what `work` returns.
///
/// # Panics
/// Passes on a panic of `work`.
pub fn in_netns<T: Send>(name: &str, work: impl FnOnce() -> Result<T> + Send) -> Result<T> {
    thread::scope(|scope| {
        let enter_and_work = || {
            sys::enter_with_sysfs(name)?;
            work()
        };
        let thread = thread::Builder::new()
            .name(format!("in {name}").chars().take(15).collect())
            .spawn_scoped(scope, enter_and_work)
            .map_err(|cause| LinkError::file("start a thread in", format!("netns {name}"), cause))?;
        thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
    })
}

/// Runs `work` in the very namespace `identity`, wherever a name or a process still holds it; `None` once it is gone. In
/// that namespace already, `work` runs on the calling thread, else on one of its own as with [`in_netns`].
///
/// # Errors
/// The namespace is there and can't be entered; else what `work` returns.
///
/// # Panics
/// Passes on a panic of `work`.
pub(crate) fn in_identity<T: Send>(
    identity: NetnsIdentity,
    work: impl Fn() -> Result<T> + Send + Sync,
) -> Result<Option<T>> {
    if NetnsIdentity::current()? == identity {
        return work().map(Some);
    }
    for file in holders(identity) {
        let enter_and_work = || {
            match sys::enter_file_with_sysfs(&file) {
                Ok(_) => {}
                // The holder ended in between.
                Err(_) if !file.exists() => return Ok(None),
                Err(error) => return Err(error.into()),
            }
            // An inode number may be that of a namespace made since.
            if NetnsIdentity::current()? == identity { work().map(Some) } else { Ok(None) }
        };
        let done = thread::scope(|scope| {
            let thread = thread::Builder::new().name("in netns".to_owned());
            let thread = thread
                .spawn_scoped(scope, enter_and_work)
                .map_err(|cause| LinkError::file("start a thread in", file.display().to_string(), cause))?;
            thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
        })?;
        if done.is_some() {
            return Ok(done);
        }
    }
    Ok(None)
}

/// Files through which a namespace may be entered: its names, then processes in it.
fn holders(identity: NetnsIdentity) -> Vec<PathBuf> {
    let entries = |folder: &str| fs::read_dir(folder).into_iter().flatten().flatten();
    let names = entries(sys::DIRECTORY).map(|entry| entry.path());
    let processes = entries("/proc").filter(|entry| {
        entry.file_name().to_str().is_some_and(|name| name.bytes().all(|byte| byte.is_ascii_digit()))
    });
    let processes = processes.map(|entry| entry.path().join("ns/net"));
    let held = |path: &PathBuf| fs::metadata(path).is_ok_and(|file| identity.may_be(&file));
    names.chain(processes).filter(held).collect()
}

/// The registered name of the calling thread's network namespace, if it has one.
pub fn current_name() -> Option<String> {
    let identity = |path: &Path| fs::metadata(path).ok().map(|file| (file.dev(), file.ino()));
    let current = identity(Path::new("/proc/thread-self/ns/net"))?;
    let names = sys::list().ok()?;
    names.into_iter().find(|name| identity(&Path::new(sys::DIRECTORY).join(name)) == Some(current))
}

/// " in netns NAME" for errors, or nothing where the namespace has no name.
pub(crate) fn place() -> String {
    current_name().map(|name| format!(" in netns {name}")).unwrap_or_default()
}
