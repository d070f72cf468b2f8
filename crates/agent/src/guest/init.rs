//! The first process of a guest.

use std::fs::{self, File, OpenOptions};
use std::io;
use std::os::fd::AsFd;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::mpsc::{self, Sender};
use std::thread;
use std::time::{Duration, Instant};

use linerate_link::lab::{self, EndAddresses};
use linerate_link::{LinkError, in_netns, links};
use linerate_sys::{SysError, boot, module, netns};
use nix::errno::Errno;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};

use super::{
    COMMAND, GuestPlan, Load, PEER_NETNS, PLAN, PROGRAM, PROMPT_PORT, PlannedEnd, PlannedModule, port_of,
};

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
    /// What served a port ended, and with it the guest.
    #[error("{0} ended: {1}")]
    Ended(String, String),
}

/// Does what the plan says, then lives as long as all that it started. Says on the way what did not work and is not
/// needed.
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
    for module in plan.modules.iter().filter(|module| module.load != Load::WhenAsked) {
        load(module, tell)?;
    }
    for (path, text) in &plan.writes {
        write(path, text)?;
    }
    links::set_up("lo", true)?;
    if plan.ends.iter().any(|end| end.apart) {
        netns::create(PEER_NETNS).map_err(LinkError::from)?;
    }
    for end in &plan.ends {
        set_up(end, tell)?;
    }
    let (say, heard) = mpsc::channel();
    for end in plan.ends {
        attend(port_of(end.side), move || agent(&end), &say)?;
    }
    if find_port(PROMPT_PORT).is_some() {
        attend(PROMPT_PORT, prompt, &say)?;
    }
    drop(say);
    Err(heard.recv().unwrap_or_else(|_| InitError::Missing("any port".to_owned())))
}

/// Serves a port with a program, on a thread of its own, and says how that ended.
fn attend(
    port: &'static str,
    program: impl Fn() -> Command + Send + 'static,
    say: &Sender<InitError>,
) -> Result<(), InitError> {
    let say = say.clone();
    let serve = move || {
        let why = serve_port(port, program()).unwrap_or_else(|error| error);
        // Nobody hears a second end: the guest is about to be switched off.
        let _ = say.send(why);
    };
    let spawned = thread::Builder::new().name(port.to_owned()).spawn(serve);
    spawned.map(drop).map_err(|error| InitError::Start("a thread".to_owned(), error))
}

/// Starts the program once the host has something to say, and waits for its end. What it complains of goes to the console.
fn serve_port(name: &str, mut program: Command) -> Result<InitError, InitError> {
    let (port, again) = open_port(name)?;
    if !wait_for_words(&port) {
        return Ok(InitError::Ended(name.to_owned(), "the host hung up".to_owned()));
    }
    let started = program.stdin(port).stdout(again).spawn();
    let mut child = started.map_err(|error| InitError::Start(name.to_owned(), error))?;
    let status = child.wait().map_err(|error| InitError::Start(name.to_owned(), error))?;
    Ok(InitError::Ended(name.to_owned(), status.to_string()))
}

fn agent(end: &PlannedEnd) -> Command {
    let mut command = Command::new(PROGRAM);
    command.args(["agent", "--stdio"]);
    if end.apart {
        command.args(["--netns", PEER_NETNS]);
    }
    command
}

fn prompt() -> Command {
    let mut command = Command::new(PROGRAM);
    command.args([COMMAND, "--prompt"]);
    command
}

/// The plan that the launcher left.
///
/// # Errors
/// There is none: this is no guest.
pub(super) fn read_plan() -> Result<GuestPlan, InitError> {
    let text = fs::read_to_string(PLAN).map_err(|error| InitError::Plan(error.to_string()))?;
    serde_json::from_str(&text).map_err(|error| InitError::Plan(error.to_string()))
}

fn load(planned: &PlannedModule, tell: &dyn Fn(&str)) -> Result<(), InitError> {
    match module::load(Path::new(&planned.file), &planned.parameters) {
        Ok(_) => Ok(()),
        Err(error) if planned.load == Load::Wanted => {
            tell(&error.to_string());
            Ok(())
        }
        Err(error) => Err(error.into()),
    }
}

/// Writes to a file of the kernel that a driver may be about to make.
fn write(path: &str, text: &str) -> Result<(), InitError> {
    wait_for(path, || Ok(Path::new(path).exists().then_some(())))?;
    fs::write(path, text).map_err(|error| SysError::new("write", path, error).into())
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
        // QEMU's usb-net shows the guest another first byte than it was given; the last tells the ends apart.
        let same = |other: &str| other.get(2..) == mac.get(2..);
        let found = links::all()?.into_iter().find(|link| link.mac.as_deref().is_some_and(same));
        Ok(found.map(|link| link.name))
    })
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

/// Waits until there is something to read; false where the host hung up first.
fn wait_for_words(port: &File) -> bool {
    loop {
        let mut fds = [PollFd::new(port.as_fd(), PollFlags::POLLIN)];
        match poll(&mut fds, PollTimeout::NONE) {
            Ok(_) => {
                let events = fds[0].revents().unwrap_or(PollFlags::empty());
                return events.contains(PollFlags::POLLIN) && !events.contains(PollFlags::POLLHUP);
            }
            Err(Errno::EINTR) => {}
            Err(_) => return false,
        }
    }
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
        thread::sleep(POLL);
    }
}
