//! Work in a named network namespace.

use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::{fs, thread};

use linerate_sys::netns as sys;

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
