//! Network namespaces, named as `ip netns` names them: a namespace `blue` is a bind mount on `/run/netns/blue`.
//!
//! Sources: network_namespaces(7), user_namespaces(7), mount_namespaces(7), ip-netns(8).

use std::fs::{self, File, OpenOptions};
use std::io;
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use nix::errno::Errno;
use nix::fcntl::{Flock, FlockArg};
use nix::mount::{MntFlags, MsFlags, mount, umount2};
use nix::sched::{CloneFlags, setns, unshare};
use nix::sys::statvfs::{FsFlags, statvfs};

use crate::error::SysError;
use crate::mounts;

/// Where named namespaces are mounted (the place that `ip netns` uses).
pub const DIRECTORY: &str = "/run/netns";

/// A thread that was joined is still listed for a moment.
const THREAD_PATIENCE: Duration = Duration::from_millis(100);
/// On the private `/run` of [`unshare_user_root`] only.
const OWN_USER_NAMESPACE: &str = "/run/.linerate-user-namespace";

/// Why a namespace could not be made, entered or removed.
#[derive(Debug, thiserror::Error)]
pub enum NetnsError {
    /// A name that can't be a file's.
    #[error("invalid namespace name {0:?}: a name is 1 to 200 letters, digits, '.', '_' or '-'")]
    BadName(String),
    /// The name is taken.
    #[error("create netns {0}: a namespace of this name exists")]
    Exists(String),
    /// There is no such namespace.
    #[error("netns {0}: no such namespace (see `ip netns list`)")]
    Missing(String),
    /// Would move only one thread of several.
    #[error("{operation}: the process has {threads} threads and must have one")]
    MultiThreaded {
        /// What was attempted.
        operation: &'static str,
        /// How many threads there are.
        threads: usize,
    },
    /// The system does not let this user make a user namespace.
    #[error("create a user namespace: {cause}{hint}")]
    UserNamespaceForbidden {
        /// What the kernel said, and to which step.
        cause: SysError,
        /// The switch that is likely behind it, empty when none is known.
        hint: String,
    },
    /// A system call failed.
    #[error(transparent)]
    System(#[from] SysError),
}

type Result<T> = std::result::Result<T, NetnsError>;

/// Creates the network namespace `name`, with its loopback down. The calling thread stays where it is.
///
/// # Errors
/// [`NetnsError::BadName`], [`NetnsError::Exists`], or the kernel's refusal (EPERM without `CAP_SYS_ADMIN`). A
/// namespace that fails half way is removed again.
pub fn create(name: &str) -> Result<()> {
    let path = path_of(name)?;
    share_directory()?;
    match OpenOptions::new().write(true).create_new(true).mode(0o444).open(&path) {
        Ok(_) => {}
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
            return Err(NetnsError::Exists(name.to_owned()));
        }
        Err(error) => return Err(SysError::new("create", path.display().to_string(), error).into()),
    }
    let made = std::thread::scope(|scope| {
        let maker =
            std::thread::Builder::new().name("netns".to_owned()).spawn_scoped(scope, || mount_new(&path));
        match maker {
            Ok(maker) => maker
                .join()
                .unwrap_or_else(|_| Err(io_error("create netns", name, io::ErrorKind::Other.into()))),
            Err(error) => Err(io_error("start a thread for netns", name, error)),
        }
    });
    if made.is_err() {
        // The error that counts is the first one; the file is ours and empty.
        let _ = fs::remove_file(&path);
    }
    made
}

fn mount_new(path: &Path) -> Result<()> {
    unshare(CloneFlags::CLONE_NEWNET).map_err(system("unshare the network namespace", path))?;
    mount(Some("/proc/thread-self/ns/net"), path, None::<&str>, MsFlags::MS_BIND, None::<&str>)
        .map_err(system("mount a namespace", path))
}

/// Removes the name; the namespace itself ends when no process and no open file holds it.
///
/// # Errors
/// [`NetnsError::Missing`], or the kernel's refusal.
pub fn remove(name: &str) -> Result<()> {
    let path = path_of(name)?;
    if !exists(name) {
        return Err(NetnsError::Missing(name.to_owned()));
    }
    match umount2(&path, MntFlags::MNT_DETACH) {
        // EINVAL: a file without a mount, left by one that died half way.
        Ok(()) | Err(Errno::EINVAL) => {}
        Err(error) => return Err(system("unmount", &path)(error)),
    }
    fs::remove_file(&path).map_err(|error| io_error("remove", &path.display().to_string(), error))
}

/// Whether a namespace of this name is registered.
pub fn exists(name: &str) -> bool {
    path_of(name).is_ok_and(|path| path.symlink_metadata().is_ok())
}

/// All registered names, sorted. No directory means no names.
///
/// # Errors
/// The directory is there and can't be read.
pub fn list() -> Result<Vec<String>> {
    let entries = match fs::read_dir(DIRECTORY) {
        Ok(entries) => entries,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        Err(error) => return Err(io_error("read", DIRECTORY, error)),
    };
    let mut names = Vec::new();
    for entry in entries {
        let entry = entry.map_err(|error| io_error("read", DIRECTORY, error))?;
        names.extend(entry.file_name().into_string().ok());
    }
    names.sort();
    Ok(names)
}

/// Opens a namespace by name; it lives at least as long as this file is open.
///
/// # Errors
/// [`NetnsError::Missing`], or the kernel's refusal.
pub fn open(name: &str) -> Result<File> {
    let path = path_of(name)?;
    match File::open(&path) {
        Ok(file) => Ok(file),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Err(NetnsError::Missing(name.to_owned())),
        Err(error) => Err(io_error("open", &path.display().to_string(), error)),
    }
}

/// Moves the calling thread's network into namespace `name`. `/sys` still shows the old one's links: see
/// [`enter_with_sysfs`].
///
/// # Errors
/// [`NetnsError::Missing`], or the kernel's refusal (EPERM without `CAP_SYS_ADMIN`).
pub fn enter(name: &str) -> Result<()> {
    let namespace = open(name)?;
    setns(namespace, CloneFlags::CLONE_NEWNET)
        .map_err(|error| io_error("enter", &format!("netns {name}"), error.into()))
}

/// Moves the calling thread into namespace `name`, with a mount namespace of its own in which `/sys` shows that
/// namespace's links. Returns the mounts below `/sys` that could not be carried over and are hidden now.
///
/// # Errors
/// As [`enter`], and the kernel's refusal to mount sysfs (in a container that has `/sys` partly covered).
pub fn enter_with_sysfs(name: &str) -> Result<Vec<PathBuf>> {
    enter(name)?;
    show_sysfs()
}

/// [`enter_with_sysfs`] for a namespace that has no name here but a file (`/proc/PID/ns/net`).
///
/// # Errors
/// As [`enter_with_sysfs`].
pub fn enter_file_with_sysfs(path: &Path) -> Result<Vec<PathBuf>> {
    let object = path.display().to_string();
    let namespace = File::open(path).map_err(|error| io_error("open", &object, error))?;
    setns(namespace, CloneFlags::CLONE_NEWNET).map_err(|error| io_error("enter", &object, error.into()))?;
    show_sysfs()
}

fn show_sysfs() -> Result<Vec<PathBuf>> {
    unshare(CloneFlags::CLONE_NEWNS).map_err(system("unshare the mount namespace", Path::new("")))?;
    // Slave: what the system mounts later still shows here, and nothing mounted here shows there.
    propagate(MsFlags::MS_SLAVE)?;
    mount_sysfs()
}

/// [`enter_with_sysfs`] for the whole process, threads to come included.
///
/// # Errors
/// As [`enter_with_sysfs`], and [`NetnsError::MultiThreaded`].
pub fn enter_process(name: &str) -> Result<Vec<PathBuf>> {
    require_single_thread("enter a netns with the whole process")?;
    enter_with_sysfs(name)
}

/// Makes this process root of its own user, network and mount namespace, so that an ordinary user can create named
/// namespaces and links as root does. Everything made inside vanishes with the last process in it.
///
/// `/run` becomes an empty private tmpfs, since it must hold `/run/netns` and `/run/linerate`, which an ordinary user
/// can't make there; what is mounted below `/run` (`/run/user/UID`) stays, the
/// system's named namespaces excepted. `/sys` shows the new network namespace.
/// Returns the mounts that could not be carried over.
///
/// # Errors
/// [`NetnsError::MultiThreaded`]; [`NetnsError::UserNamespaceForbidden`] with the likely switch.
pub fn unshare_user_root() -> Result<Vec<PathBuf>> {
    require_single_thread("create a user namespace")?;
    let (user, group) = (nix::unistd::geteuid(), nix::unistd::getegid());
    unshare(CloneFlags::CLONE_NEWUSER | CloneFlags::CLONE_NEWNET | CloneFlags::CLONE_NEWNS).map_err(
        |error| forbidden(SysError::new("unshare", "user, net and mount namespace", error.into())),
    )?;
    // Order matters: gid_map may be written by an ordinary user only after setgroups is denied.
    for (file, text) in [
        ("/proc/self/setgroups", "deny".to_owned()),
        ("/proc/self/uid_map", format!("0 {user} 1")),
        ("/proc/self/gid_map", format!("0 {group} 1")),
    ] {
        fs::write(file, text).map_err(|error| forbidden(SysError::new("write", file, error)))?;
    }
    propagate(MsFlags::MS_PRIVATE).map_err(as_forbidden)?;
    let mut hidden = mounts::cover("/run", &[DIRECTORY], || {
        let flags = MsFlags::MS_NOSUID | MsFlags::MS_NODEV;
        mount(Some("tmpfs"), "/run", Some("tmpfs"), flags, Some("mode=0755"))
            .map_err(|error| SysError::new("mount tmpfs", "/run", error.into()))
    })
    .map_err(forbidden)?;
    fs::write(OWN_USER_NAMESPACE, "")
        .map_err(|error| forbidden(SysError::new("write", OWN_USER_NAMESPACE, error)))?;
    hidden.extend(mount_sysfs().map_err(as_forbidden)?);
    Ok(hidden)
}

/// Whether this process lives in a user namespace that [`unshare_user_root`] made, be it by an ancestor.
pub fn in_own_user_namespace() -> bool {
    Path::new(OWN_USER_NAMESPACE).exists()
}

fn as_forbidden(error: NetnsError) -> NetnsError {
    match error {
        NetnsError::System(cause) => forbidden(cause),
        other => other,
    }
}

fn forbidden(cause: SysError) -> NetnsError {
    let hint = forbidding_switch(cause.raw_os_error()).map(|hint| format!(" ({hint})")).unwrap_or_default();
    NetnsError::UserNamespaceForbidden { cause, hint }
}

/// The system setting that explains a refusal, read from where the kernel and the distributions keep it.
fn forbidding_switch(errno: Option<i32>) -> Option<String> {
    let reads = |path: &str, value: &str| fs::read_to_string(path).is_ok_and(|text| text.trim() == value);
    let switch =
        |path: &str| format!("forbidden by {}", path.trim_start_matches("/proc/sys/").replace('/', "."));
    let limit = "/proc/sys/user/max_user_namespaces";
    if errno == Some(libc::ENOSPC) || reads(limit, "0") {
        return Some(format!("limit {} reached", limit.trim_start_matches("/proc/sys/").replace('/', ".")));
    }
    let debian = "/proc/sys/kernel/unprivileged_userns_clone";
    if reads(debian, "0") {
        return Some(switch(debian));
    }
    let apparmor = "/proc/sys/kernel/apparmor_restrict_unprivileged_userns";
    if reads(apparmor, "1") {
        return Some(switch(apparmor));
    }
    None
}

/// Mounts a sysfs of the current network namespace over `/sys`, as restricted as the one it covers.
fn mount_sysfs() -> Result<Vec<PathBuf>> {
    // Inside a user namespace the kernel refuses a mount that is freer than the visible one.
    let current = statvfs("/sys").map_err(system("statvfs", Path::new("/sys")))?.flags();
    let mut flags = MsFlags::MS_NOSUID | MsFlags::MS_NODEV | MsFlags::MS_NOEXEC;
    if current.contains(FsFlags::ST_RDONLY) {
        flags |= MsFlags::MS_RDONLY;
    }
    let mount_over = || {
        mount(Some("sysfs"), "/sys", Some("sysfs"), flags, None::<&str>)
            .map_err(|error| SysError::new("mount sysfs", "/sys", error.into()))
    };
    Ok(mounts::cover("/sys", &[], mount_over)?)
}

/// Makes `/run/netns` a shared mount of its own, so that a namespace mounted there by one process is seen, and can be
/// unmounted, in every other mount namespace. `ip netns` expects the same.
fn share_directory() -> Result<()> {
    let directory = Path::new(DIRECTORY);
    fs::DirBuilder::new()
        .recursive(true)
        .mode(0o755)
        .create(directory)
        .map_err(|error| io_error("create", DIRECTORY, error))?;
    let file = File::open(directory).map_err(|error| io_error("open", DIRECTORY, error))?;
    // Two programs doing this at once would mount the directory on itself twice.
    let _lock = Flock::lock(file, FlockArg::LockExclusive)
        .map_err(|(_, error)| io_error("lock", DIRECTORY, error.into()))?;
    let share =
        || mount(None::<&str>, directory, None::<&str>, MsFlags::MS_SHARED | MsFlags::MS_REC, None::<&str>);
    match share() {
        Ok(()) => return Ok(()),
        // Not a mount yet.
        Err(Errno::EINVAL) => {}
        Err(error) => return Err(system("share", directory)(error)),
    }
    mount(Some(directory), directory, None::<&str>, MsFlags::MS_BIND | MsFlags::MS_REC, None::<&str>)
        .map_err(system("mount on itself", directory))?;
    share().map_err(system("share", directory))
}

fn propagate(kind: MsFlags) -> Result<()> {
    mount(None::<&str>, "/", None::<&str>, kind | MsFlags::MS_REC, None::<&str>)
        .map_err(system("set mount propagation", Path::new("/")))
}

fn require_single_thread(operation: &'static str) -> Result<()> {
    let failed = |error| io_error("read", "/proc/self/task", error);
    let end = Instant::now() + THREAD_PATIENCE;
    loop {
        match fs::read_dir("/proc/self/task").map_err(failed)?.count() {
            1 => return Ok(()),
            threads if Instant::now() > end => return Err(NetnsError::MultiThreaded { operation, threads }),
            _ => std::thread::sleep(Duration::from_millis(1)),
        }
    }
}

fn path_of(name: &str) -> Result<PathBuf> {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"._-".contains(&byte);
    let valid = (1..=200).contains(&name.len()) && name.bytes().all(plain) && name != "." && name != "..";
    if valid { Ok(Path::new(DIRECTORY).join(name)) } else { Err(NetnsError::BadName(name.to_owned())) }
}

fn system(operation: &'static str, object: &Path) -> impl FnOnce(Errno) -> NetnsError {
    let object = object.display().to_string();
    move |error| SysError::new(operation, object, error.into()).into()
}

fn io_error(operation: &'static str, object: &str, error: io::Error) -> NetnsError {
    SysError::new(operation, object, error).into()
}

#[cfg(test)]
#[path = "netns_tests.rs"]
mod tests;
