//! A running QEMU: its process, its monitor, its console, and the handle by which others act on it from outside.

use std::fs::{self, DirBuilder, File};
use std::io::{self, Read};
use std::os::fd::AsRawFd;
use std::os::unix::fs::DirBuilderExt;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError, Sender};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use linerate_sys::netns;
use linerate_sys::process::ChildTies;
use linerate_sys::process_times::ProcessTimes;
use serde_json::json;

use super::console::Console;
use super::error::{Result, VmError};
use super::monitor::Monitor;
use super::qemu::{Acceleration, socket_in};

/// How long QEMU may take to connect to all sockets.
const CONNECT_LIMIT: Duration = Duration::from_secs(20);
const POLL: Duration = Duration::from_millis(10);
/// How long a thread may take to see that the process ended.
const END_POLL: Duration = Duration::from_millis(25);
/// Console lines in a message.
pub(super) const TOLD_LINES: usize = 12;

/// A guest, seen from outside: what its QEMU can do to it. Clones are the same guest.
#[derive(Debug, Clone)]
pub struct Machine(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    facts: MachineFacts,
    monitor: Mutex<Monitor>,
    console: Console,
    state: Arc<Mutex<State>>,
    pid: u32,
    keeper: Mutex<Option<Keeper>>,
}

/// What kind of machine a guest is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MachineFacts {
    /// Name of its profile.
    pub profile: String,
    /// Version of QEMU.
    pub qemu: String,
    /// How its instructions are run.
    pub acceleration: Acceleration,
    /// Why not by KVM, where it is not.
    pub why_software: Option<String>,
    /// Version of its kernel.
    pub kernel: String,
}

/// Whether QEMU lives.
#[derive(Debug, Default)]
struct State {
    /// How it ended, once it has.
    ended: Option<String>,
}

#[derive(Debug)]
struct Keeper {
    end: Sender<()>,
    thread: JoinHandle<()>,
}

/// How to start one.
pub(super) struct Start<'a> {
    pub(super) program: &'a Path,
    pub(super) arguments: Vec<String>,
    /// The namespace that QEMU shall run in.
    pub(super) netns: Option<String>,
    pub(super) facts: MachineFacts,
    /// Folder of the sockets.
    pub(super) sockets: &'a SocketFolder,
    /// The virtio-serial ports.
    pub(super) ports: Vec<String>,
}

/// A guest that was started, with the host's end of each of its ports, in the order asked for.
pub(super) struct Started {
    pub(super) machine: Machine,
    pub(super) ports: Vec<UnixStream>,
}

impl Machine {
    /// Starts QEMU and connects to all that it offers.
    ///
    /// # Errors
    /// It can't be started, or does not like its arguments: with its own words.
    pub(super) fn start(start: Start<'_>) -> Result<Started> {
        let names = ["console", "monitor"].map(str::to_owned).into_iter().chain(start.ports);
        let listeners: Vec<UnixListener> =
            names.map(|name| listen(&socket_in(start.sockets.path(), &name))).collect::<Result<_>>()?;
        let state = Arc::new(Mutex::new(State::default()));
        let (pid, keeper) = keep(start.program, start.arguments, start.netns, Arc::clone(&state))?;
        // From here on the guest ends when this is dropped.
        let mut streams = accept_all(&listeners, &state)?.into_iter();
        let (Some(console_stream), Some(monitor)) = (streams.next(), streams.next()) else {
            return Err(VmError::Qemu("QEMU did not connect".to_owned()));
        };
        let console = Console::default();
        let follower = console.clone();
        spawn("vm-console", move || follower.follow(console_stream))?;
        let monitor =
            Monitor::open(monitor).map_err(|cause| VmError::file("open", "QEMU's monitor", cause))?;
        let inner = Inner {
            facts: start.facts,
            monitor: Mutex::new(monitor),
            console,
            state,
            pid,
            keeper: Mutex::new(Some(keeper)),
        };
        Ok(Started { machine: Self(Arc::new(inner)), ports: streams.collect() })
    }

    /// What kind of machine it is.
    pub fn facts(&self) -> &MachineFacts {
        &self.0.facts
    }

    /// Process id of its QEMU.
    pub fn pid(&self) -> u32 {
        self.0.pid
    }

    /// Plugs the cable of the NIC under test in, or pulls it out.
    ///
    /// # Errors
    /// QEMU's refusal, or that it is gone.
    pub fn cable(&self, plugged: bool) -> Result<()> {
        self.ask("set_link", &json!({ "name": super::qemu::NIC, "up": plugged }))
    }

    /// Plugs the far end of that cable in, or pulls it out: frames get lost, and the NIC under test does not see why.
    ///
    /// # Errors
    /// As [`Self::cable`]; also where the far end is not in the same guest.
    pub fn partner_cable(&self, plugged: bool) -> Result<()> {
        self.ask("set_link", &json!({ "name": super::qemu::PARTNER, "up": plugged }))
    }

    /// Wakes a guest that sleeps (S3).
    ///
    /// # Errors
    /// As [`Self::cable`]; also where it does not sleep.
    pub fn wakeup(&self) -> Result<()> {
        self.ask("system_wakeup", &json!({}))
    }

    /// Stops all CPUs of the guest, or lets them go on.
    ///
    /// # Errors
    /// As [`Self::cable`].
    pub fn pause(&self, paused: bool) -> Result<()> {
        self.ask(if paused { "stop" } else { "cont" }, &json!({}))
    }

    /// Asks the guest to let the NIC under test go, as a hand on the card would (ACPI or PCI Express hot-plug).
    ///
    /// # Errors
    /// As [`Self::cable`]; also where the machine's bus can't do that.
    pub fn unplug_nic(&self) -> Result<()> {
        self.ask("device_del", &json!({ "id": super::qemu::NIC }))
    }

    /// State of the guest in QEMU's words: `running`, `paused`, `suspended`, `internal-error` ...
    ///
    /// # Errors
    /// As [`Self::cable`].
    pub fn status(&self) -> Result<String> {
        let value = self.run("query-status", &json!({}))?;
        Ok(value["status"].as_str().unwrap_or_default().to_owned())
    }

    /// CPU time that QEMU has used on this machine until now.
    ///
    /// # Errors
    /// It is gone.
    pub fn host_cpu(&self) -> Result<ProcessTimes> {
        ProcessTimes::of(self.0.pid).map_err(|error| VmError::Guest(error.to_string()))
    }

    /// At most `count` of the last lines on the guest's console.
    pub fn console(&self, count: usize) -> Vec<String> {
        self.0.console.last(count)
    }

    /// How many lines the console has had until now; for [`Self::console_since`].
    pub fn console_mark(&self) -> u64 {
        self.0.console.mark()
    }

    /// The lines that came since a mark, the last 200 of them.
    pub fn console_since(&self, mark: u64) -> Vec<String> {
        self.0.console.since(mark)
    }

    /// How QEMU ended, where it has; waits a moment for one that is about to.
    pub fn ended(&self, patience: Duration) -> Option<String> {
        let give_up = Instant::now() + patience;
        loop {
            let ended = lock(&self.0.state).ended.clone();
            if ended.is_some() || Instant::now() >= give_up {
                return ended;
            }
            std::thread::sleep(POLL);
        }
    }

    /// What to say of a guest that failed: how it ended, and its last console lines.
    pub fn last_words(&self, patience: Duration) -> String {
        let state = match self.ended(patience) {
            Some(ended) => format!("the guest went down ({ended})"),
            None => format!("the guest is {}", self.status().unwrap_or_else(|_| "silent".to_owned())),
        };
        let console = self.0.console.telling(TOLD_LINES);
        if console.is_empty() {
            return format!("{state}; its console is empty");
        }
        format!("{state}; its console says:\n  {}", console.join("\n  "))
    }

    fn ask(&self, command: &str, arguments: &serde_json::Value) -> Result<()> {
        self.run(command, arguments).map(drop)
    }

    fn run(&self, command: &str, arguments: &serde_json::Value) -> Result<serde_json::Value> {
        let mut monitor = lock(&self.0.monitor);
        monitor.run(command, arguments).map_err(|cause| VmError::file("ask QEMU for", command, cause))
    }
}

impl Drop for Inner {
    /// Nothing in the guest outlives it: its files are in its memory.
    fn drop(&mut self) {
        if let Some(keeper) = lock(&self.keeper).take() {
            keeper.stop();
        }
    }
}

impl Keeper {
    fn stop(self) {
        let _ = self.end.send(());
        let _ = self.thread.join();
    }
}

/// Starts QEMU on a thread that lives as long as it: it is killed when that thread ends, also by SIGKILL of this process.
fn keep(
    program: &Path,
    arguments: Vec<String>,
    netns: Option<String>,
    state: Arc<Mutex<State>>,
) -> Result<(u32, Keeper)> {
    let mut command = Command::new(program);
    command.args(arguments).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped());
    ChildTies { own_group: true, ..ChildTies::default() }.apply(&mut command);
    let (end, wait_for_end) = mpsc::channel();
    let (say_pid, pid) = mpsc::channel();
    let name = program.display().to_string();
    let thread = std::thread::Builder::new()
        .name("vm-keeper".to_owned())
        .spawn(move || {
            let started = enter(netns.as_deref())
                .and_then(|()| command.spawn().map_err(|cause| VmError::file("start", name, cause)));
            match started {
                Ok(mut child) => {
                    let _ = say_pid.send(Ok(child.id()));
                    attend(&mut child, &wait_for_end, &state);
                }
                Err(error) => drop(say_pid.send(Err(error))),
            }
        })
        .map_err(|cause| VmError::file("start", "a thread for QEMU", cause))?;
    let gone = || Err(VmError::Qemu("the thread that starts QEMU is gone".to_owned()));
    let pid = pid.recv().unwrap_or_else(|_| gone())?;
    Ok((pid, Keeper { end, thread }))
}

fn enter(netns: Option<&str>) -> Result<()> {
    let Some(name) = netns else { return Ok(()) };
    netns::enter(name).map_err(|error| VmError::Guest(error.to_string()))
}

/// Waits until the process ends or shall end, and says how.
fn attend(child: &mut Child, end: &Receiver<()>, state: &Mutex<State>) {
    let stderr = child.stderr.take().map(|stderr| std::thread::spawn(move || first_bytes(stderr)));
    let status = loop {
        match child.try_wait() {
            Ok(Some(status)) => break status.to_string(),
            Err(error) => break error.to_string(),
            Ok(None) => {}
        }
        if !matches!(end.recv_timeout(END_POLL), Err(RecvTimeoutError::Timeout)) {
            let _ = child.kill();
            let _ = child.wait();
            break "ended by linerate".to_owned();
        }
    };
    let words = stderr.and_then(|thread| thread.join().ok()).unwrap_or_default();
    let words: Vec<_> = words.lines().map(str::trim).filter(|line| is_worth_telling(line)).collect();
    let ended = if words.is_empty() { status } else { format!("{status}: {}", words.join("; ")) };
    lock(state).ended = Some(ended);
}

/// A hub without a way to the host is what we want.
fn is_worth_telling(line: &str) -> bool {
    !line.is_empty() && !line.contains("has no host network") && !line.contains("warning: hub")
}

fn first_bytes(mut stream: impl Read) -> String {
    const KEPT: u64 = 8192;
    let mut text = Vec::new();
    let _ = (&mut stream).take(KEPT).read_to_end(&mut text);
    let _ = io::copy(&mut stream, &mut io::sink());
    String::from_utf8_lossy(&text).into_owned()
}

fn listen(path: &Path) -> Result<UnixListener> {
    let failed = |cause| VmError::file("listen at", path.display(), cause);
    let listener = UnixListener::bind(path).map_err(failed)?;
    listener.set_nonblocking(true).map_err(failed)?;
    Ok(listener)
}

fn accept_all(listeners: &[UnixListener], state: &Mutex<State>) -> Result<Vec<UnixStream>> {
    let give_up = Instant::now() + CONNECT_LIMIT;
    let accept = |listener: &UnixListener| loop {
        match listener.accept() {
            Ok((stream, _)) => {
                let blocking = stream.set_nonblocking(false).map(|()| stream);
                return blocking.map_err(|cause| VmError::file("use", "QEMU's socket", cause));
            }
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
            Err(cause) => return Err(VmError::file("accept", "QEMU's connection", cause)),
        }
        if let Some(ended) = &lock(state).ended {
            return Err(VmError::Qemu(format!("QEMU did not start: {ended}")));
        }
        if Instant::now() > give_up {
            return Err(VmError::Qemu(format!("QEMU did not connect within {CONNECT_LIMIT:?}")));
        }
        std::thread::sleep(POLL);
    };
    listeners.iter().map(accept).collect()
}

fn spawn(name: &str, work: impl FnOnce() + Send + 'static) -> Result<()> {
    let spawned = std::thread::Builder::new().name(name.to_owned()).spawn(work);
    spawned.map(drop).map_err(|cause| VmError::file("start", "a thread", cause))
}

fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A private folder for sockets, removed when this is dropped.
#[derive(Debug)]
pub(super) struct SocketFolder(PathBuf);

impl SocketFolder {
    /// Makes one below the system's folder for temporary files.
    ///
    /// # Errors
    /// It can't be made.
    pub(super) fn create() -> Result<Self> {
        let random = crate::auth::nonce().map_err(|cause| VmError::file("draw", "a name", cause))?;
        let path = std::env::temp_dir().join(format!("lr-vm-{}", &random[..12]));
        let made = DirBuilder::new().mode(0o700).create(&path);
        made.map_err(|cause| VmError::file("create", path.display(), cause))?;
        Ok(Self(path))
    }

    pub(super) fn path(&self) -> &Path {
        &self.0
    }
}

impl Drop for SocketFolder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// The path by which another process of this user opens a file of ours that has no name.
pub(super) fn path_of_open(file: &File) -> PathBuf {
    PathBuf::from(format!("/proc/{}/fd/{}", std::process::id(), file.as_raw_fd()))
}
