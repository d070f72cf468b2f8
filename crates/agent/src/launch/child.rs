//! Agents that are child processes: on this machine, or behind the user's own ssh.

use std::fs::File;
use std::io::Read;
use std::net::{Shutdown, TcpStream};
use std::process::{Child, ChildStdin, ChildStdout, Command, ExitStatus, Stdio};
use std::sync::{Arc, Mutex, PoisonError, mpsc};
use std::time::{Duration, Instant};

use linerate_model::NodeUrl;
use linerate_sys::process::{ChildTies, Signal};

use super::unreachable;
use super::vm::{Guest, Machine};
use crate::node::{Node, NodeError};

/// A healthy agent ends when its stdin does.
const PATIENCE: Duration = Duration::from_secs(2);
/// A real NIC may start anew for each setting that goes back.
const SETTINGS_PATIENCE: Duration = Duration::from_secs(60);
/// A guest that panics takes a moment to end its QEMU.
const GUEST_PATIENCE: Duration = Duration::from_secs(2);
/// Most of a child's stderr that is kept, bytes.
const STDERR_KEPT: usize = 8192;

/// What carries the connection to an agent: a child process, or a socket.
#[derive(Debug)]
pub struct Carrier(Kind);

#[derive(Debug)]
enum Kind {
    Child(ChildCarrier),
    Socket(TcpStream),
    Guest(Arc<Guest>),
}

#[derive(Debug)]
struct ChildCarrier {
    child: Child,
    /// How long it may take to end by itself.
    patience: Duration,
    stderr: Arc<Mutex<Vec<u8>>>,
}

impl Carrier {
    /// A socket, shut down when this is dropped, whoever else still holds it.
    pub fn socket(stream: TcpStream) -> Self {
        Self(Kind::Socket(stream))
    }

    /// A guest, which ends when the last node in it is dropped.
    pub(super) fn guest(guest: Arc<Guest>) -> Self {
        Self(Kind::Guest(guest))
    }

    /// The machine that is the node's, where linerate emulates it.
    pub(crate) fn machine(&self) -> Option<&Machine> {
        match &self.0 {
            Kind::Guest(guest) => Some(guest.machine()),
            Kind::Child(_) | Kind::Socket(_) => None,
        }
    }

    /// Gives the agent the time that putting settings back may take at its end.
    pub(crate) fn wait_for_settings(&mut self) {
        if let Kind::Child(carrier) = &mut self.0 {
            carrier.patience = SETTINGS_PATIENCE;
        }
    }

    /// What the child said on stderr and how it ended; `None` where there is no child, or it said nothing and lives.
    pub(crate) fn last_words(&mut self) -> Option<String> {
        let carrier = match &mut self.0 {
            Kind::Child(carrier) => carrier,
            Kind::Guest(guest) => return Some(guest.machine().last_words(GUEST_PATIENCE)),
            Kind::Socket(_) => return None,
        };
        let status = wait_within(&mut carrier.child, Duration::from_millis(500));
        // The reader thread may still be at the last line.
        std::thread::sleep(Duration::from_millis(20));
        let stderr = carrier.stderr.lock().unwrap_or_else(PoisonError::into_inner);
        let text = String::from_utf8_lossy(&stderr);
        let text: Vec<&str> = text.lines().map(str::trim).filter(|line| !line.is_empty()).collect();
        match (text.is_empty(), status) {
            (false, Some(status)) if !status.success() => Some(format!("{} ({status})", text.join("; "))),
            (false, _) => Some(text.join("; ")),
            (true, Some(status)) if !status.success() => Some(format!("its agent ended with {status}")),
            (true, _) => None,
        }
    }
}

impl Drop for Carrier {
    /// The writer is closed by now or soon, which ends a healthy agent; one that does not end is killed.
    fn drop(&mut self) {
        let carrier = match &mut self.0 {
            Kind::Child(carrier) => carrier,
            Kind::Socket(stream) => {
                let _ = stream.shutdown(Shutdown::Both);
                return;
            }
            Kind::Guest(_) => return,
        };
        if wait_within(&mut carrier.child, carrier.patience).is_none() {
            let _ = carrier.child.kill();
            let _ = carrier.child.wait();
        }
    }
}

fn wait_within(child: &mut Child, limit: Duration) -> Option<ExitStatus> {
    let give_up = Instant::now() + limit;
    loop {
        match child.try_wait() {
            Ok(Some(status)) => return Some(status),
            Ok(None) if Instant::now() < give_up => std::thread::sleep(Duration::from_millis(5)),
            Ok(None) | Err(_) => return None,
        }
    }
}

/// Starts `command` as an agent and greets it over its stdio.
///
/// `may_prompt` leaves it in our process group, so that it can ask somebody at the terminal; else it has its own, and a
/// signal to our group (timeout(1)) reaches only us, who then stop it in order.
pub(super) fn connect(
    url: &NodeUrl,
    command: Command,
    may_prompt: bool,
    limit: Duration,
) -> Result<Node, NodeError> {
    let started = start(url, command, may_prompt)?;
    Node::greet(url.clone(), started.stdout, started.stdin, started.carrier, None, limit)
}

/// As [`connect`], where the command first takes a file on its stdin and says `taken` in a line of its own once it has it.
pub(super) fn connect_sending(
    url: &NodeUrl,
    command: Command,
    may_prompt: bool,
    file: File,
    taken: &'static str,
    limit: Duration,
) -> Result<Node, NodeError> {
    let Started { stdin, stdout, mut carrier } = start(url, command, may_prompt)?;
    let (sender, sent) = mpsc::channel();
    std::thread::Builder::new()
        .name("node-copy".to_owned())
        .spawn(move || {
            // Whoever waits for it is gone only after the limit.
            let _ = sender.send(send_file(file, stdin, stdout, taken));
        })
        .map_err(|e| unreachable(url, "start a thread", e.to_string()))?;
    let failed = |words: String| unreachable(url, "copy linerate there", words);
    match sent.recv_timeout(limit) {
        Ok(Ok((stdin, stdout))) => Node::greet(url.clone(), stdout, stdin, carrier, None, limit),
        Ok(Err(error)) => Err(failed(carrier.last_words().unwrap_or_else(|| error.to_string()))),
        Err(_) => Err(failed(format!("not done within {limit:?}"))),
    }
}

fn send_file(
    mut file: File,
    mut stdin: ChildStdin,
    mut stdout: ChildStdout,
    taken: &str,
) -> std::io::Result<(ChildStdin, ChildStdout)> {
    /// More than any greeting of a login shell.
    const MOST_WORDS: usize = 64 << 10;
    std::io::copy(&mut file, &mut stdin)?;
    let end = format!("{taken}\n");
    let mut words = Vec::new();
    // Byte by byte: what comes behind the line is the agent's.
    while !words.ends_with(end.as_bytes()) {
        let mut byte = [0];
        if words.len() > MOST_WORDS || stdout.read(&mut byte)? == 0 {
            return Err(std::io::ErrorKind::UnexpectedEof.into());
        }
        words.push(byte[0]);
    }
    Ok((stdin, stdout))
}

struct Started {
    stdin: ChildStdin,
    stdout: ChildStdout,
    carrier: Carrier,
}

fn start(url: &NodeUrl, mut command: Command, may_prompt: bool) -> Result<Started, NodeError> {
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    // Not killed with us: it has settings to put back, and does so also when its stdin ends.
    let ties = ChildTies {
        own_group: !may_prompt,
        on_parent_death: Some(Signal::Terminate),
        ..ChildTies::default()
    };
    ties.apply(&mut command);
    let program = command.get_program().to_string_lossy().into_owned();
    let mut child =
        command.spawn().map_err(|e| unreachable(url, "start its agent", format!("run {program}: {e}")))?;
    let (Some(stdin), Some(stdout), Some(stderr)) =
        (child.stdin.take(), child.stdout.take(), child.stderr.take())
    else {
        return Err(unreachable(url, "start its agent", "its pipes are missing".to_owned()));
    };
    let kept = Arc::new(Mutex::new(Vec::new()));
    let carrier = Carrier(Kind::Child(ChildCarrier { child, patience: PATIENCE, stderr: Arc::clone(&kept) }));
    std::thread::Builder::new()
        .name("node-stderr".to_owned())
        .spawn(move || keep_stderr(stderr, &kept))
        .map_err(|e| unreachable(url, "start a thread", e.to_string()))?;
    Ok(Started { stdin, stdout, carrier })
}

/// Keeps the head of a child's stderr, and reads on so that the child never blocks.
fn keep_stderr(mut stderr: impl Read, kept: &Mutex<Vec<u8>>) {
    let mut buffer = [0; 1024];
    while let Ok(length @ 1..) = stderr.read(&mut buffer) {
        let mut kept = kept.lock().unwrap_or_else(PoisonError::into_inner);
        let room = STDERR_KEPT.saturating_sub(kept.len()).min(length);
        kept.extend_from_slice(&buffer[..room]);
    }
}
