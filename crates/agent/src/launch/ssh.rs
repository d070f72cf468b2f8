//! Agents behind ssh: the user's own `ssh` program, so that its config, keys, ports, agents and jump hosts apply.

use std::fs::File;
use std::io::{self, IsTerminal};
use std::process::Command;

use linerate_model::NodeUrl;

use super::{LaunchOptions, REMOTE_LIMIT, child, unreachable};
use crate::node::{Node, NodeError};

/// What the shell there says once it has the program.
const TAKEN: &str = "linerate has arrived";
/// Exit status of a remote shell that does not find the program (POSIX, 2.8.2).
const NOT_FOUND: i32 = 127;

pub(super) fn connect(url: &NodeUrl, destination: &str, options: &LaunchOptions) -> Result<Node, NodeError> {
    if options.push {
        return push(url, destination, options).map_err(|error| explain(error, options));
    }
    let program = options.remote_program.as_deref().unwrap_or("linerate");
    let mut command = ssh(destination, options);
    command.arg(format!("exec {} agent --stdio", quote(program)));
    child::connect(url, command, io::stdin().is_terminal(), REMOTE_LIMIT)
        .map_err(|error| explain(error, options))
}

fn ssh(destination: &str, options: &LaunchOptions) -> Command {
    let mut command = Command::new("ssh");
    // No terminal there; a dead network is noticed; without a terminal here nobody can answer a prompt.
    command.args([
        "-T",
        "-o",
        "ServerAliveInterval=5",
        "-o",
        "ServerAliveCountMax=3",
        "-o",
        "ConnectTimeout=10",
    ]);
    if !std::io::stdin().is_terminal() {
        command.args(["-o", "BatchMode=yes"]);
    }
    command.args(&options.ssh_options).arg("--").arg(destination);
    command
}

/// Copies this program there and starts it, all over one connection: however that ends, the shell there removes the copy.
fn push(url: &NodeUrl, destination: &str, options: &LaunchOptions) -> Result<Node, NodeError> {
    let open = || {
        let program = File::open(&options.program)?;
        let size = program.metadata()?.len();
        Ok((program, size))
    };
    let (program, size) = open().map_err(|e: io::Error| {
        unreachable(url, "copy linerate there", format!("open {}: {e}", options.program.display()))
    })?;
    let mut command = ssh(destination, options);
    // The login shell there may be of any kind.
    command.arg(format!("exec sh -c {}", quote(&receive_and_run(size))));
    child::connect_sending(url, command, io::stdin().is_terminal(), program, TAKEN, REMOTE_LIMIT)
}

/// What the shell there runs: it takes exactly `size` bytes of stdin, says [`TAKEN`], and what comes behind them is for the
/// agent. Nobody may be left to hear it, and it must clean up all the same: so it ignores SIGPIPE.
fn receive_and_run(size: u64) -> String {
    format!(
        "trap '' PIPE; d=$(mktemp -d \"${{TMPDIR:-/tmp}}/linerate.XXXXXXXX\") || exit; \
         trap 'rm -rf \"$d\"' EXIT; trap 'exit 1' HUP INT TERM; \
         dd bs={size} count=1 iflag=fullblock status=none >\"$d/linerate\" || exit; \
         [ \"$(wc -c <\"$d/linerate\")\" -eq {size} ] || {{ echo 'the copy ended early' >&2; exit 1; }}; \
         chmod 700 \"$d/linerate\" && echo '{TAKEN}' && \"$d/linerate\" agent --stdio"
    )
}

/// Adds the way out to what ssh or the remote shell said.
fn explain(mut error: NodeError, options: &LaunchOptions) -> NodeError {
    let crate::node::NodeFailure::Unreachable(words) = &mut error.cause else { return error };
    let missing = words.contains(&format!("exit status: {NOT_FOUND}")) && !options.push;
    if missing {
        words.push_str("; linerate is not there: use --push, or name it with --remote-program");
    } else if words.contains("Host key verification failed") {
        words.push_str("; connect once with ssh by hand to check and keep its host key");
    }
    error
}

/// Quotes a word for a POSIX shell; a leading `~/` stays open to the shell.
fn quote(word: &str) -> String {
    match word.strip_prefix("~/") {
        Some(rest) => format!("~/{}", quote(rest)),
        None => format!("'{}'", word.replace('\'', r"'\''")),
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write;
    use std::process::Stdio;

    use super::*;

    #[test]
    fn words_survive_a_shell() {
        for word in ["linerate", "/opt/a b/linerate", "it's", "$(reboot)", "a\\b"] {
            let output =
                Command::new("sh").arg("-c").arg(format!("printf %s {}", quote(word))).output().unwrap();
            assert_eq!(String::from_utf8_lossy(&output.stdout), word);
        }
        assert_eq!(quote("~/bin/linerate"), "~/'bin/linerate'");
    }

    /// Runs the shell's part with a program of `size` announced bytes, of which `given` come, followed by more.
    fn receive(label: &str, size: u64, given: &[u8], limits: &str) -> (std::process::Output, usize) {
        let folder = std::env::temp_dir().join(format!("lr-push-{label}-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        let mut shell = Command::new("sh");
        shell.arg("-c").arg(format!("{limits} {}", receive_and_run(size))).env("TMPDIR", &folder);
        shell.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = shell.spawn().unwrap();
        // It may end before it has read all.
        let _ = child.stdin.take().unwrap().write_all(given);
        let output = child.wait_with_output().unwrap();
        let left = std::fs::read_dir(&folder).unwrap().count();
        std::fs::remove_dir_all(&folder).unwrap();
        (output, left)
    }

    #[test]
    fn what_comes_behind_the_program_is_for_the_agent() {
        let program = b"#!/bin/sh\nexec cat\n";
        // Of "lr-push-a b-PID" a word split would remove "lr-push-a".
        let neighbour = std::env::temp_dir().join("lr-push-a");
        std::fs::create_dir_all(&neighbour).unwrap();
        let stream = [program, b"a message".as_slice()].concat();
        let (output, left) = receive("a b", program.len() as u64, &stream, "");
        let expected = format!("{TAKEN}\na message");
        assert_eq!((String::from_utf8_lossy(&output.stdout).as_ref(), left), (expected.as_str(), 0));
        std::fs::remove_dir(&neighbour).unwrap();
    }

    #[test]
    fn a_copy_that_ends_early_is_not_run_and_leaves_nothing() {
        let (output, left) = receive("cut", 1000, b"#!/bin/sh\necho ran\n", "");
        assert!(!output.status.success() && output.stdout.is_empty());
        assert_eq!(left, 0, "{}", String::from_utf8_lossy(&output.stderr));
    }

    #[test]
    fn receiving_leaves_nothing_when_the_disk_is_full() {
        // A file size limit of one block stands for the full disk: the write fails with EFBIG.
        let (output, left) = receive("full", 100_000, &[0; 100_000], "ulimit -f 1; trap '' XFSZ;");
        assert!(!output.status.success());
        assert_eq!(left, 0, "{}", String::from_utf8_lossy(&output.stderr));
    }
}
