//! Child processes that never outlive their test.

use std::{
    io::Read,
    os::unix::process::{CommandExt, ExitStatusExt},
    process::{Child, Command, ExitStatus, Stdio},
    sync::{Arc, Mutex, PoisonError},
    thread::{self, JoinHandle},
    time::{Duration, Instant},
};

use nix::{
    sys::signal::{Signal, kill, killpg},
    unistd::Pid,
};

use crate::deadline::{POLL_INTERVAL, eventually};

/// How a child ended, and all that it wrote.
#[derive(Debug)]
pub struct Finished {
    /// Its exit status.
    pub status: ExitStatus,
    /// Its standard output, with what is not UTF-8 replaced.
    pub stdout: String,
    /// Its standard error, with what is not UTF-8 replaced.
    pub stderr: String,
    /// From its start until its end was seen.
    pub elapsed: Duration,
}

impl Finished {
    /// Whether it exited with 0.
    pub fn success(&self) -> bool {
        self.status.success()
    }

    /// Its exit code.
    ///
    /// # Panics
    /// When a signal ended it; the message has its output.
    pub fn code(&self) -> i32 {
        match self.status.code() {
            Some(code) => code,
            None => panic!("ended by signal {:?}\n{}", self.status.signal(), self.output()),
        }
    }

    /// Passes itself on when it exited with `code`.
    ///
    /// # Panics
    /// With the output when it did not.
    pub fn expect_code(self, code: i32) -> Self {
        assert_eq!(self.code(), code, "exit code\n{}", self.output());
        self
    }

    /// Both streams, for messages.
    pub fn output(&self) -> String {
        format!("--- stdout\n{}--- stderr\n{}", self.stdout, self.stderr)
    }
}

/// Runs a command to its end, with no standard input unless the command set one.
///
/// # Panics
/// When it can't be started, or is not done within the limit: then it and its process group are killed, and the
/// message has its output.
pub fn run_within(command: Command, limit: Duration) -> Finished {
    ChildGuard::spawn(command).wait_within(limit)
}

/// A child in a process group of its own, killed as a group when this is dropped.
///
/// Where the child has ended by itself and was waited for, the rest of its group is let be: a
/// [`LeakCheck`](crate::LeakCheck) is to find what a program leaves behind.
///
/// Its standard output and error are collected as they come. Its standard input is empty unless
/// [`spawn_with_stdin`](Self::spawn_with_stdin) was used.
#[derive(Debug)]
pub struct ChildGuard {
    name: String,
    child: Child,
    started: Instant,
    stdout: Collector,
    stderr: Collector,
}

impl ChildGuard {
    /// Starts a command.
    ///
    /// # Panics
    /// When it can't be started.
    pub fn spawn(mut command: Command) -> Self {
        command.stdin(Stdio::null());
        Self::spawn_with_stdin(command)
    }

    /// Starts a command with the standard input that it was given.
    ///
    /// # Panics
    /// When it can't be started.
    pub fn spawn_with_stdin(mut command: Command) -> Self {
        command.stdout(Stdio::piped()).stderr(Stdio::piped()).process_group(0);
        let name = describe(&command);
        let mut child = match command.spawn() {
            Ok(child) => child,
            Err(cause) => panic!("start {name}: {cause}"),
        };
        let stdout = Collector::start(child.stdout.take());
        let stderr = Collector::start(child.stderr.take());
        Self { name, child, started: Instant::now(), stdout, stderr }
    }

    /// Its process id.
    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Its standard input, when the command was given a pipe.
    pub fn stdin(&mut self) -> Option<&mut std::process::ChildStdin> {
        self.child.stdin.as_mut()
    }

    /// What it wrote to standard output so far.
    pub fn stdout_so_far(&self) -> String {
        self.stdout.text()
    }

    /// What it wrote to standard error so far.
    pub fn stderr_so_far(&self) -> String {
        self.stderr.text()
    }

    /// Whether it has not ended yet.
    pub fn is_running(&mut self) -> bool {
        self.try_wait().is_none()
    }

    /// Sends a signal to the child alone.
    ///
    /// # Panics
    /// When the signal can't be sent, as when it has ended and was waited for.
    pub fn signal(&self, signal: Signal) {
        if let Err(cause) = kill(self.as_pid(), signal) {
            panic!("send {signal} to {}: {cause}", self.name);
        }
    }

    /// Sends a signal to its whole process group, as a terminal does for Ctrl-C.
    ///
    /// # Panics
    /// When the signal can't be sent.
    pub fn signal_group(&self, signal: Signal) {
        if let Err(cause) = killpg(self.as_pid(), signal) {
            panic!("send {signal} to the group of {}: {cause}", self.name);
        }
    }

    /// Waits for a text on standard output or error, and returns the first line with it.
    ///
    /// # Panics
    /// When it doesn't come within the limit or the child ends without it; the message has the output.
    pub fn wait_for_text(&mut self, text: &str, limit: Duration) -> String {
        let end = Instant::now() + limit;
        loop {
            let ended = self.try_wait().is_some();
            if ended {
                self.join_collectors();
            }
            let output = [self.stdout.text(), self.stderr.text()];
            if let Some(line) =
                output.iter().flat_map(|stream| stream.lines()).find(|line| line.contains(text))
            {
                return line.to_owned();
            }
            let [stdout, stderr] = &output;
            assert!(!ended, "{} ended before it wrote {text:?}\n{stdout}\n{stderr}", self.name);
            assert!(Instant::now() < end, "{}: no {text:?} in {limit:?}\n{stdout}\n{stderr}", self.name);
            thread::sleep(POLL_INTERVAL);
        }
    }

    /// Waits for its end.
    ///
    /// # Panics
    /// When it is not done within the limit; it and its group are killed, and the message has its output.
    pub fn wait_within(mut self, limit: Duration) -> Finished {
        let end = self.started.max(Instant::now()) + limit;
        let status = loop {
            if let Some(status) = self.try_wait() {
                break status;
            }
            if Instant::now() >= end {
                self.kill_group();
                let (stdout, stderr) = (self.stdout.text(), self.stderr.text());
                panic!("{}: not done within {limit:?}\n--- stdout\n{stdout}--- stderr\n{stderr}", self.name);
            }
            thread::sleep(POLL_INTERVAL);
        };
        let elapsed = self.started.elapsed();
        self.join_collectors();
        Finished { status, stdout: self.stdout.text(), stderr: self.stderr.text(), elapsed }
    }

    /// For a limited time: a grandchild may hold the pipes open. What the child itself wrote is in them already.
    fn join_collectors(&mut self) {
        self.stdout.join(Duration::from_millis(500));
        self.stderr.join(Duration::from_millis(500));
    }

    fn try_wait(&mut self) -> Option<ExitStatus> {
        match self.child.try_wait() {
            Ok(status) => status,
            Err(cause) => panic!("wait for {}: {cause}", self.name),
        }
    }

    fn kill_group(&mut self) {
        if matches!(self.child.try_wait(), Ok(Some(_))) {
            return;
        }
        // Fails when the whole group has ended, which is what is wanted.
        let _ = killpg(self.as_pid(), Signal::SIGKILL);
        let _ = self.child.wait();
    }

    fn as_pid(&self) -> Pid {
        Pid::from_raw(self.child.id().cast_signed())
    }
}

impl Drop for ChildGuard {
    fn drop(&mut self) {
        self.kill_group();
    }
}

/// Reads a stream to its end on a thread, so that the child never blocks on a full pipe.
#[derive(Debug)]
struct Collector {
    bytes: Arc<Mutex<Vec<u8>>>,
    reader: Option<JoinHandle<()>>,
}

impl Collector {
    fn start(stream: Option<impl Read + Send + 'static>) -> Self {
        let bytes = Arc::new(Mutex::new(Vec::new()));
        let sink = Arc::clone(&bytes);
        let reader = stream.map(|mut stream| {
            thread::spawn(move || {
                let mut chunk = [0; 4096];
                while let Ok(count @ 1..) = stream.read(&mut chunk) {
                    sink.lock().unwrap_or_else(PoisonError::into_inner).extend_from_slice(&chunk[..count]);
                }
            })
        });
        Self { bytes, reader }
    }

    fn text(&self) -> String {
        let bytes = self.bytes.lock().unwrap_or_else(PoisonError::into_inner);
        String::from_utf8_lossy(&bytes).into_owned()
    }

    fn join(&mut self, limit: Duration) {
        let end = Instant::now() + limit;
        while self.reader.as_ref().is_some_and(|reader| !reader.is_finished()) && Instant::now() < end {
            thread::sleep(POLL_INTERVAL);
        }
        self.reader = None;
    }
}

fn describe(command: &Command) -> String {
    let words = std::iter::once(command.get_program()).chain(command.get_args());
    words.map(|word| word.to_string_lossy()).collect::<Vec<_>>().join(" ")
}

/// Waits until a process is gone or a zombie.
///
/// # Panics
/// When it is still there after the limit.
pub fn wait_until_gone(pid: u32, limit: Duration) {
    eventually(limit, &format!("end of process {pid}"), || {
        let state = std::fs::read_to_string(format!("/proc/{pid}/stat"));
        state.map_or(true, |stat| stat.contains(") Z ")).then_some(())
    });
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    fn shell(script: &str) -> Command {
        let mut command = Command::new("sh");
        command.args(["-c", script]);
        command
    }

    #[test]
    fn the_end_and_both_streams_are_returned() {
        let finished = run_within(shell("echo out; echo err >&2; exit 3"), 10 * SECOND).expect_code(3);
        assert_eq!((finished.stdout.as_str(), finished.stderr.as_str()), ("out\n", "err\n"));
        assert!(!finished.success());
    }

    #[test]
    fn more_output_than_a_pipe_holds_does_not_block() {
        let finished = run_within(shell("head -c 1000000 /dev/zero"), 20 * SECOND);
        assert_eq!(finished.stdout.len(), 1_000_000);
    }

    #[test]
    #[should_panic(expected = "not done within 100ms\n--- stdout\nhello")]
    fn a_child_that_hangs_fails_the_test_with_its_output() {
        run_within(shell("echo hello; sleep 60"), SECOND / 10);
    }

    #[test]
    fn a_dropped_guard_takes_the_grandchildren_along() {
        let mut guard = ChildGuard::spawn(shell("sleep 60 & echo child $!; wait"));
        let line = guard.wait_for_text("child", 10 * SECOND);
        let grandchild: u32 = line.trim_start_matches("child ").parse().unwrap();
        let child = guard.pid();
        drop(guard);
        wait_until_gone(child, SECOND);
        wait_until_gone(grandchild, 10 * SECOND);
    }

    #[test]
    fn a_signal_reaches_the_child() {
        let mut guard = ChildGuard::spawn(shell(
            "trap 'echo caught; exit 5' TERM; echo ready; while :; do sleep 0.1; done",
        ));
        guard.wait_for_text("ready", 10 * SECOND);
        assert!(guard.is_running());
        guard.signal(Signal::SIGTERM);
        let finished = guard.wait_within(10 * SECOND).expect_code(5);
        assert!(finished.stdout.ends_with("caught\n"));
    }

    #[test]
    #[should_panic(expected = "ended before it wrote \"ready\"")]
    fn waiting_for_text_ends_with_the_child() {
        ChildGuard::spawn(shell("echo other")).wait_for_text("ready", 10 * SECOND);
    }
}
