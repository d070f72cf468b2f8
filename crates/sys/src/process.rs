//! Children that do not outlive their parent, and processes named so that a reused pid is never taken for them.

use std::fs;
use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::os::unix::process::CommandExt;
use std::process::Command;

use crate::error::{Result, SysError};

/// A signal that linerate sends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Signal {
    /// `SIGINT`: stop and keep what was measured.
    Interrupt,
    /// `SIGTERM`: the same, from a program.
    Terminate,
    /// `SIGKILL`: end now.
    Kill,
}

impl Signal {
    const fn number(self) -> libc::c_int {
        match self {
            Self::Interrupt => libc::SIGINT,
            Self::Terminate => libc::SIGTERM,
            Self::Kill => libc::SIGKILL,
        }
    }
}

/// How a child process hangs on its parent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ChildTies {
    /// Sent to the child when the *thread* that spawned it ends (`PR_SET_PDEATHSIG`): spawn from a thread that lives as
    /// long as the child shall.
    pub on_parent_death: Option<Signal>,
    /// The child ignores `SIGINT`, so that Ctrl-C reaches it only through its parent's orderly stop.
    pub ignore_interrupt: bool,
    /// The child leads its own process group, out of reach of the terminal's signals.
    pub own_group: bool,
}

impl Default for ChildTies {
    /// Killed with its parent, ignores Ctrl-C, stays in the parent's group.
    fn default() -> Self {
        Self { on_parent_death: Some(Signal::Kill), ignore_interrupt: true, own_group: false }
    }
}

impl ChildTies {
    /// Makes every process that `command` starts obey these ties. A tie that can't be made fails the spawn.
    pub fn apply(self, command: &mut Command) -> &mut Command {
        if self.own_group {
            command.process_group(0);
        }
        let parent = std::process::id();
        let tie = move || {
            if self.ignore_interrupt {
                ignore_interrupt()?;
            }
            match self.on_parent_death {
                Some(signal) => die_with(parent, signal),
                None => Ok(()),
            }
        };
        // SAFETY: the closure runs between fork and exec and calls only prctl, getppid and sigaction through libc,
        // which are async-signal-safe; it allocates nothing and takes no lock.
        unsafe { command.pre_exec(tie) }
    }
}

fn ignore_interrupt() -> io::Result<()> {
    // SAFETY: SIG_IGN is a valid disposition for SIGINT and no handler of ours is replaced after exec.
    if unsafe { libc::signal(libc::SIGINT, libc::SIG_IGN) } == libc::SIG_ERR {
        return Err(io::Error::last_os_error());
    }
    Ok(())
}

fn die_with(parent: u32, signal: Signal) -> io::Result<()> {
    // SAFETY: PR_SET_PDEATHSIG takes a signal number and touches no memory of ours.
    if unsafe { libc::prctl(libc::PR_SET_PDEATHSIG, signal.number() as libc::c_ulong, 0, 0, 0) } != 0 {
        return Err(io::Error::last_os_error());
    }
    // The parent may have died before the prctl: then the signal would never come.
    // SAFETY: getppid only reads.
    if unsafe { libc::getppid() } as u32 != parent {
        return Err(io::Error::from_raw_os_error(libc::ESRCH));
    }
    Ok(())
}

/// A process, told apart from a later one with the same pid by when it started.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct ProcessId {
    /// Process id in this pid namespace.
    pub pid: u32,
    /// Start time in clock ticks since boot (`/proc/PID/stat` field 22, proc_pid_stat(5)).
    pub start_ticks: u64,
}

impl ProcessId {
    /// The running process with this pid; `None` when there is none or it is a zombie.
    ///
    /// # Errors
    /// `/proc` unreadable for another reason than absence, or not in the format of proc_pid_stat(5).
    pub fn of(pid: u32) -> Result<Option<Self>> {
        let path = format!("/proc/{pid}/stat");
        let stat = match fs::read(&path) {
            Ok(stat) => stat,
            Err(error) if is_gone(&error) => return Ok(None),
            Err(error) => return Err(SysError::new("read", path, error)),
        };
        match parse_stat(&stat) {
            Some((b'Z' | b'X', _)) => Ok(None),
            Some((_, start_ticks)) => Ok(Some(Self { pid, start_ticks })),
            None => Err(SysError::new("parse", path, io::ErrorKind::InvalidData.into())),
        }
    }

    /// This process.
    ///
    /// # Errors
    /// As [`Self::of`].
    pub fn current() -> Result<Self> {
        let gone = || SysError::new("read", "/proc/self/stat", io::ErrorKind::NotFound.into());
        Self::of(std::process::id())?.ok_or_else(gone)
    }

    /// Whether this very process still runs (a zombie does not).
    ///
    /// # Errors
    /// As [`Self::of`].
    pub fn is_alive(self) -> Result<bool> {
        Ok(Self::of(self.pid)? == Some(self))
    }

    /// Sends `signal` to this very process; `false` when it is gone. A reused pid is never hit: the process is pinned
    /// with pidfd_open(2) before its start time is compared.
    ///
    /// # Errors
    /// The kernel's refusal, for example EPERM for another user's process.
    pub fn signal(self, signal: Signal) -> Result<bool> {
        let Some(pidfd) = open_pidfd(self.pid)? else { return Ok(false) };
        if !self.is_alive()? {
            return Ok(false);
        }
        let (fd, number) = (pidfd.as_raw_fd(), signal.number());
        // SAFETY: fd is an open pidfd, and a null siginfo asks the kernel to fill one in as kill(2) does.
        let sent = unsafe {
            libc::syscall(libc::SYS_pidfd_send_signal, fd, number, std::ptr::null::<libc::siginfo_t>(), 0)
        };
        if sent == 0 {
            return Ok(true);
        }
        match SysError::last("send a signal", format!("process {}", self.pid)) {
            error if error.raw_os_error() == Some(libc::ESRCH) => Ok(false),
            error => Err(error),
        }
    }
}

fn is_gone(error: &io::Error) -> bool {
    // A process that ends while its file is open reads as ESRCH.
    error.kind() == io::ErrorKind::NotFound || error.raw_os_error() == Some(libc::ESRCH)
}

fn open_pidfd(pid: u32) -> Result<Option<OwnedFd>> {
    let Ok(raw_pid) = libc::pid_t::try_from(pid) else { return Ok(None) };
    if raw_pid == 0 {
        return Ok(None);
    }
    // SAFETY: pidfd_open takes a pid and flags, and touches no memory of ours.
    let fd = unsafe { libc::syscall(libc::SYS_pidfd_open, raw_pid, 0) };
    if fd < 0 {
        let error = SysError::last("open pidfd", format!("process {pid}"));
        return if error.raw_os_error() == Some(libc::ESRCH) { Ok(None) } else { Err(error) };
    }
    // SAFETY: the kernel has just returned this descriptor and nothing else owns it.
    Ok(Some(unsafe { OwnedFd::from_raw_fd(fd as libc::c_int) }))
}

/// State (field 3) and start time (field 22) of a `/proc/PID/stat` line. The name before them may hold blanks and
/// parentheses, so the fields are counted from its last `)`.
fn parse_stat(stat: &[u8]) -> Option<(u8, u64)> {
    let end = stat.iter().rposition(|&byte| byte == b')')?;
    let fields = std::str::from_utf8(&stat[end + 1..]).ok()?;
    let mut fields = fields.split_ascii_whitespace();
    let state = *fields.next()?.as_bytes().first()?;
    let start_ticks = fields.nth(18)?.parse().ok()?;
    Some((state, start_ticks))
}

#[cfg(test)]
mod tests {
    use std::time::{Duration, Instant};

    use proptest::prelude::*;

    use super::*;

    fn until(limit: Duration, mut condition: impl FnMut() -> bool) -> bool {
        let end = Instant::now() + limit;
        while Instant::now() < end {
            if condition() {
                return true;
            }
            std::thread::sleep(Duration::from_millis(5));
        }
        false
    }

    #[test]
    fn a_process_is_itself_and_not_another_with_its_pid() {
        let me = ProcessId::current().unwrap();
        assert!(me.is_alive().unwrap());
        let impostor = ProcessId { start_ticks: me.start_ticks + 1, ..me };
        assert!(!impostor.is_alive().unwrap());
        assert!(!impostor.signal(Signal::Kill).unwrap(), "must not kill this test");
    }

    #[test]
    fn a_killed_child_is_gone_even_as_a_zombie() {
        let mut child = Command::new("sleep").arg("60").spawn().unwrap();
        let id = ProcessId::of(child.id()).unwrap().expect("a running child");
        assert!(id.signal(Signal::Kill).unwrap());
        assert!(until(Duration::from_secs(5), || !id.is_alive().unwrap()));
        child.wait().unwrap();
        assert!(!id.signal(Signal::Kill).unwrap());
    }

    #[test]
    fn a_child_ends_with_the_thread_that_spawned_it() {
        let spawn = || ChildTies::default().apply(Command::new("sleep").arg("60")).spawn().unwrap();
        let mut child = std::thread::spawn(spawn).join().unwrap();
        assert!(until(Duration::from_secs(5), || child.try_wait().unwrap().is_some()));
    }

    #[test]
    fn a_child_can_ignore_ctrl_c() {
        let mut child = ChildTies::default().apply(Command::new("sleep").arg("60")).spawn().unwrap();
        let id = ProcessId::of(child.id()).unwrap().expect("a running child");
        assert!(id.signal(Signal::Interrupt).unwrap());
        std::thread::sleep(Duration::from_millis(50));
        assert!(id.is_alive().unwrap());
        child.kill().unwrap();
        child.wait().unwrap();
    }

    #[test]
    fn names_with_parentheses_do_not_shift_the_fields() {
        let fields = (4..22).map(|n| n.to_string()).collect::<Vec<_>>().join(" ");
        let line = format!("12 (a) b (c)) S {fields} 9876 1 2");
        assert_eq!(parse_stat(line.as_bytes()), Some((b'S', 9876)));
    }

    proptest! {
        #[test]
        fn hostile_stat_never_panics(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
            let _ = parse_stat(&bytes);
        }
    }
}
