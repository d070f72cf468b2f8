//! The first process of a guest.

use std::fs::{self, File, OpenOptions};
use std::io;
use std::os::fd::AsFd;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use linerate_link::lab::{self, EndAddresses};
use linerate_link::{LinkError, in_netns, links};
use linerate_sys::{SysError, boot, module, netns};
use nix::errno::Errno;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::wait::{WaitStatus, wait};

use super::{GuestPlan, PEER_NETNS, PLAN, PROGRAM, PROMPT_PORT, PlannedEnd, PlannedModule, port_of};

/// How long a device may take to show after its driver was loaded.
const DEVICE_LIMIT: Duration = Duration::from_secs(20);
/// How long a NIC may take to find its wire.
const CARRIER_LIMIT: Duration = Duration::from_secs(20);
const POLL: Duration = Duration::from_millis(5);

/// Why a guest could not begin, or has to end.
#[derive(Debug, thiserror::Error)]
pub enum InitError {
    /// Not the first process.
    #[error("this is what linerate does as the first process of a guest: see linerate vm --help")]
    NotFirst,
    /// A system call failed.
    #[error(transparent)]
    System(#[from] SysError),
    /// A link could not be set up.
    #[error(transparent)]
    Link(#[from] LinkError),
    /// The plan can't be read.
    #[error("read {PLAN}: {0}")]
    Plan(String),
    /// Something did not show.
    #[error("{0} did not show within {DEVICE_LIMIT:?}")]
    Missing(String),
    /// A program could not be started.
    #[error("start {0}: {1}")]
    Start(String, io::Error),
    /// An agent ended, and with it the guest.
    #[error("an agent ended: {0}")]
    AgentEnded(String),
}

/// Does what the plan says, then lives as long as all agents live. Says on the way what did not work and is not needed.
///
/// # Errors
/// Always, in the end: why the guest is to be switched off.
pub fn run(tell: &dyn Fn(&str)) -> Result<std::convert::Infallible, InitError> {
    if !boot::is_first_process() {
        return Err(InitError::NotFirst);
    }
    boot::mount_all()?;
    let plan = read_plan()?;
    let _ = nix::unistd::sethostname(&plan.host_name);
    for module in &plan.modules {
        load(module, tell)?;
    }
    links::set_up("lo", true)?;
    if plan.ends.iter().any(|end| end.apart) {
        netns::create(PEER_NETNS).map_err(LinkError::from)?;
    }
    for end in &plan.ends {
        set_up(end, tell)?;
    }
    let agents = plan.ends.iter().map(start_agent).collect::<Result<Vec<_>, _>>()?;
    start_prompt()?;
    Err(InitError::AgentEnded(wait_for_one(&agents)))
}

fn read_plan() -> Result<GuestPlan, InitError> {
    let text = fs::read_to_string(PLAN).map_err(|error| InitError::Plan(error.to_string()))?;
    serde_json::from_str(&text).map_err(|error| InitError::Plan(error.to_string()))
}

fn load(planned: &PlannedModule, tell: &dyn Fn(&str)) -> Result<(), InitError> {
    match module::load(Path::new(&planned.file), &planned.parameters) {
        Ok(_) => Ok(()),
        Err(error) if planned.optional => {
            tell(&error.to_string());
            Ok(())
        }
        Err(error) => Err(error.into()),
    }
}

fn set_up(end: &PlannedEnd, tell: &dyn Fn(&str)) -> Result<(), InitError> {
    let link = link_with(&end.mac)?;
    let bring_up = || {
        lab::set_up_end(&link, EndAddresses::of(end.side), None)?;
        links::wait_for_carrier(&link, CARRIER_LIMIT)
    };
    let brought = if end.apart {
        links::move_to_netns(&link, PEER_NETNS)?;
        in_netns(PEER_NETNS, || {
            links::set_up("lo", true)?;
            bring_up()
        })
    } else {
        bring_up()
    };
    match brought {
        // The controller sees the same, and can say more about it.
        Err(LinkError::Timeout { .. }) => tell(&format!("{link} has no carrier")),
        other => other?,
    }
    Ok(())
}

fn link_with(mac: &str) -> Result<String, InitError> {
    wait_for(&format!("a NIC with the address {mac}"), || {
        let found = links::all()?.into_iter().find(|link| link.mac.as_deref() == Some(mac));
        Ok(found.map(|link| link.name))
    })
}

/// Starts the agent of one end, on its port. Its complaints go to the console.
fn start_agent(end: &PlannedEnd) -> Result<u32, InitError> {
    let (port, again) = open_port(port_of(end.side))?;
    let mut command = Command::new(PROGRAM);
    command.args(["agent", "--stdio"]);
    if end.apart {
        command.args(["--netns", PEER_NETNS]);
    }
    let started = command.stdin(port).stdout(again).spawn();
    started.map(|child| child.id()).map_err(|error| InitError::Start("the agent".to_owned(), error))
}

/// Starts the prompt where the host has a port for it.
fn start_prompt() -> Result<(), InitError> {
    if find_port(PROMPT_PORT).is_none() {
        return Ok(());
    }
    let (port, again) = open_port(PROMPT_PORT)?;
    let and_again = again.try_clone().map_err(|error| InitError::Start("the prompt".to_owned(), error))?;
    Command::new(PROGRAM)
        .args([super::COMMAND, "--prompt"])
        .stdin(port)
        .stdout(again)
        .stderr(Stdio::from(and_again))
        .spawn()
        .map(drop)
        .map_err(|error| InitError::Start("the prompt".to_owned(), error))
}

/// Opens a virtio-serial port once the host is there: until then a read would find its end.
fn open_port(name: &str) -> Result<(File, File), InitError> {
    let what = format!("virtio-serial port {name}");
    let path = wait_for(&what, || Ok(find_port(name)))?;
    let open = || {
        let port = OpenOptions::new().read(true).write(true).open(&path)?;
        let again = port.try_clone()?;
        Ok((port, again))
    };
    let (port, again) = open().map_err(|error| SysError::new("open", path.display().to_string(), error))?;
    wait_for(&format!("the host at {what}"), || Ok(has_host(&port).then_some(())))?;
    Ok((port, again))
}

/// virtio-console says what a port is called only below `/sys` (Documentation/ABI: /sys/class/virtio-ports).
fn find_port(name: &str) -> Option<PathBuf> {
    let ports = fs::read_dir("/sys/class/virtio-ports").ok()?.flatten();
    let named = |entry: &fs::DirEntry| {
        fs::read_to_string(entry.path().join("name")).is_ok_and(|text| text.trim_end() == name)
    };
    ports.into_iter().find(named).map(|entry| Path::new("/dev").join(entry.file_name()))
}

fn has_host(port: &File) -> bool {
    let mut fds = [PollFd::new(port.as_fd(), PollFlags::POLLIN)];
    let polled = poll(&mut fds, PollTimeout::ZERO).is_ok();
    polled && fds[0].revents().is_some_and(|events| !events.contains(PollFlags::POLLHUP))
}

fn wait_for<T>(what: &str, look: impl Fn() -> Result<Option<T>, InitError>) -> Result<T, InitError> {
    let end = Instant::now() + DEVICE_LIMIT;
    loop {
        if let Some(found) = look()? {
            return Ok(found);
        }
        if Instant::now() > end {
            return Err(InitError::Missing(what.to_owned()));
        }
        std::thread::sleep(POLL);
    }
}

/// Waits for the first agent to end; takes in every other child, as a first process must.
fn wait_for_one(agents: &[u32]) -> String {
    let is_agent =
        |pid: nix::unistd::Pid| agents.iter().any(|agent| i64::from(*agent) == i64::from(pid.as_raw()));
    loop {
        match wait() {
            Ok(WaitStatus::Exited(pid, code)) if is_agent(pid) => return format!("exit status {code}"),
            Ok(WaitStatus::Signaled(pid, signal, _)) if is_agent(pid) => return format!("by {signal}"),
            Ok(_) | Err(Errno::EINTR) => {}
            Err(error) => return error.to_string(),
        }
    }
}
