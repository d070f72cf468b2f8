//! What a test left behind.

use std::{
    collections::BTreeSet,
    fmt::{self, Display},
    fs, io, process, thread,
    time::{Duration, Instant},
};

use nix::{
    errno::Errno,
    fcntl::{Flock, FlockArg},
    sys::signal::{Signal, kill},
    unistd::Pid,
};

use crate::{deadline::POLL_INTERVAL, netns::NAME_PREFIX};

/// How long a thing may take to go away after the program that owned it has ended.
const PATIENCE: Duration = Duration::from_secs(5);

/// A look at the machine before the thing under test ran.
///
/// From its start, orphaned descendants become children of the test's process (`PR_SET_CHILD_SUBREAPER`, prctl(2)), so
/// that a process left behind is seen to be this test's and no other's.
#[derive(Debug)]
pub struct LeakCheck {
    namespaces: BTreeSet<String>,
    links: BTreeSet<String>,
}

/// Things that were not there at the start.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Leaks {
    /// Namespaces `lr-*` in `/run/netns`, but for those of other tests.
    pub namespaces: Vec<String>,
    /// Links `lr-*` in the test's own namespace.
    pub links: Vec<String>,
    /// Descendants of the test's process whose name begins with `linerate`.
    pub processes: Vec<LeftProcess>,
}

/// A process that was left behind.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LeftProcess {
    /// Its name, as the kernel has it (at most 15 bytes).
    pub name: String,
    /// Its process id.
    pub pid: u32,
}

impl LeftProcess {
    fn kill(&self) {
        // Fails when it has ended meanwhile.
        let _ = kill(Pid::from_raw(self.pid.cast_signed()), Signal::SIGKILL);
    }
}

impl LeakCheck {
    /// Remembers what is there.
    ///
    /// # Panics
    /// When the kernel refuses to make the test's process the reaper of its descendants.
    pub fn start() -> Self {
        nix::sys::prctl::set_child_subreaper(true).expect("become the reaper of orphaned descendants");
        Self { namespaces: namespaces(), links: links() }
    }

    /// What is there now and was not at the start. Namespaces and links may be of a test that runs at the same time.
    pub fn now(&self) -> Leaks {
        Leaks {
            namespaces: namespaces().difference(&self.namespaces).cloned().collect(),
            links: links().difference(&self.links).cloned().collect(),
            processes: descendants(process::id(), "linerate"),
        }
    }

    /// Waits a few seconds for all to go away.
    ///
    /// # Panics
    /// When something stays; the message lists it. Processes found are killed first, so that one bad test does not
    /// disturb the next.
    pub fn assert_none(&self) {
        let end = Instant::now() + PATIENCE;
        loop {
            let leaks = self.now();
            if leaks == Leaks::default() {
                return;
            }
            if Instant::now() >= end {
                leaks.processes.iter().for_each(|process| process.kill());
                panic!("left behind: {leaks}");
            }
            thread::sleep(10 * POLL_INTERVAL);
        }
    }
}

impl Display for Leaks {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { namespaces, links, processes } = self;
        write!(formatter, "namespaces {namespaces:?}, links {links:?}, processes {processes:?}")
    }
}

/// Namespaces of other tests are theirs to remove.
fn namespaces() -> BTreeSet<String> {
    let own = format!("{NAME_PREFIX}{}-", process::id());
    let mut names = names_in("/run/netns");
    names.retain(|name| name.starts_with(&own) || !(is_of_a_test(name) || is_of_a_living_run(name)));
    names
}

/// `lr-ID-dut` or `lr-ID-peer`, whose lock a process holds: another run's, or a process that is found as left behind itself.
fn is_of_a_living_run(name: &str) -> bool {
    let id = name.strip_prefix("lr-").and_then(|rest| rest.rsplit_once('-')).map_or("", |(id, _)| id);
    let Ok(file) = fs::File::open(format!("/run/linerate/lab-{id}.lock")) else { return false };
    matches!(Flock::lock(file, FlockArg::LockSharedNonblock), Err((_, Errno::EWOULDBLOCK)))
}

/// `lr-tDIGITS-`: a program under test may name its own namespaces `lr-tap` or the like.
fn is_of_a_test(name: &str) -> bool {
    let owner = name.strip_prefix(NAME_PREFIX).and_then(|rest| rest.split_once('-'));
    owner.is_some_and(|(pid, _)| pid.parse::<u32>().is_ok())
}

fn links() -> BTreeSet<String> {
    names_in("/sys/class/net")
}

fn names_in(folder: &str) -> BTreeSet<String> {
    let entries = match fs::read_dir(folder) {
        Ok(entries) => entries,
        Err(cause) if cause.kind() == io::ErrorKind::NotFound => return BTreeSet::new(),
        Err(cause) => panic!("list {folder}: {cause}"),
    };
    let names = entries.filter_map(|entry| entry.ok()?.file_name().into_string().ok());
    names.filter(|name| name.starts_with("lr-")).collect()
}

/// Zombies are left out: they hold nothing, and as orphans they wait for this process, which has other things to do.
fn descendants(ancestor: u32, name_prefix: &str) -> Vec<LeftProcess> {
    let processes: Vec<_> = fs::read_dir("/proc")
        .expect("list /proc")
        .filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok())
        .filter_map(Process::read)
        .collect();
    let mut family = BTreeSet::from([ancestor]);
    // A parent's number may be above its child's, so look until a round finds no more.
    loop {
        let known = family.len();
        family.extend(
            processes
                .iter()
                .filter(|one| family.contains(&one.parent))
                .map(|one| one.pid)
                .collect::<Vec<_>>(),
        );
        if family.len() == known {
            break;
        }
    }
    family.remove(&ancestor);
    processes
        .iter()
        .filter(|one| family.contains(&one.pid) && !one.is_zombie && one.name.starts_with(name_prefix))
        .map(|one| LeftProcess { name: one.name.clone(), pid: one.pid })
        .collect()
}

struct Process {
    pid: u32,
    parent: u32,
    name: String,
    is_zombie: bool,
}

impl Process {
    /// From `/proc/PID/stat` (proc_pid_stat(5)): `PID (NAME) STATE PPID ...`, where the name may hold anything.
    fn read(pid: u32) -> Option<Self> {
        let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
        let (head, tail) = stat.rsplit_once(") ")?;
        let name = head.split_once('(')?.1.to_owned();
        let mut fields = tail.split(' ');
        let is_zombie = fields.next()? == "Z";
        Some(Self { pid, parent: fields.next()?.parse().ok()?, name, is_zombie })
    }
}

#[cfg(test)]
mod tests {
    use std::process::Command;

    use super::*;
    use crate::run_within;

    #[test]
    fn an_orphan_is_found_by_its_descent() {
        LeakCheck::start();
        // A name of its own: other tests of this process have children too.
        let name = "lr-orphan";
        let program = std::env::temp_dir().join(format!("{name}-{}", process::id()));
        std::os::unix::fs::symlink(crate::skip::find_tool("sleep").unwrap(), &program).unwrap();
        let mut command = Command::new("sh");
        command.args(["-c", "$0 61 >/dev/null 2>&1 & echo started"]).arg(&program);
        run_within(command, Duration::from_secs(10)).expect_code(0);
        fs::remove_file(&program).unwrap();
        let found = descendants(process::id(), name);
        assert_eq!(found.len(), 1);
        found[0].kill();
        crate::eventually(Duration::from_secs(10), "end of the orphan", || {
            descendants(process::id(), name).is_empty().then_some(())
        });
    }

    #[test]
    fn only_names_with_an_owner_are_of_a_test() {
        assert!(is_of_a_test("lr-t4711-0-left"));
        assert!(!is_of_a_test("lr-tap-left"));
        assert!(!is_of_a_test("lr-4711-left"));
    }
}
