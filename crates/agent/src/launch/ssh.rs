//! Agents behind ssh: the user's own `ssh` program, so that its config, keys, ports, agents and jump hosts apply.

use std::fs::File;
use std::io::{IsTerminal, Read};
use std::process::{Command, Stdio};

use linerate_model::NodeUrl;
use linerate_sys::process::ChildTies;

use super::{LaunchOptions, REMOTE_LIMIT, child, unreachable};
use crate::node::{Node, NodeError};

/// Exit status of a remote shell that does not find the program (POSIX, 2.8.2).
const NOT_FOUND: i32 = 127;

/// Makes a private folder there, takes the program from stdin, and tells its path. Leaves nothing where it fails.
const RECEIVE: &str = "d=$(mktemp -d \"${TMPDIR:-/tmp}/linerate.XXXXXXXX\") && \
    { cat >\"$d/linerate\" && chmod 700 \"$d/linerate\" && echo \"$d\" || { s=$?; rm -rf \"$d\"; exit $s; }; }";

pub(super) fn connect(url: &NodeUrl, destination: &str, options: &LaunchOptions) -> Result<Node, NodeError> {
    let script = if options.push {
        let folder = push(url, destination, options)?;
        run_and_remove(&folder)
    } else {
        let program = options.remote_program.as_deref().unwrap_or("linerate");
        format!("exec {} agent --stdio", quote(program))
    };
    let mut command = ssh(destination, options);
    command.arg(script);
    child::connect(url, command, std::io::stdin().is_terminal(), REMOTE_LIMIT)
        .map_err(|error| explain(error, options))
}

/// Runs the copied program and removes its folder when the agent ends, and also when the connection does (the shell gets
/// SIGHUP, the agent an end of file).
fn run_and_remove(folder: &str) -> String {
    format!(r#"d={}; trap 'rm -rf "$d"' EXIT HUP INT TERM; "$d/linerate" agent --stdio"#, quote(folder))
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

/// Copies this program there; gives the folder it is in.
fn push(url: &NodeUrl, destination: &str, options: &LaunchOptions) -> Result<String, NodeError> {
    const OPERATION: &str = "copy linerate there";
    let failed = |words: String| unreachable(url, OPERATION, words);
    let program = File::open(&options.program)
        .map_err(|e| failed(format!("open {}: {e}", options.program.display())))?;
    let mut command = ssh(destination, options);
    command.arg(RECEIVE).stdin(Stdio::from(program)).stdout(Stdio::piped()).stderr(Stdio::piped());
    ChildTies::default().apply(&mut command);
    let child = command.spawn().map_err(|e| failed(format!("run ssh: {e}")))?;
    let output = child.wait_with_output().map_err(|e| failed(e.to_string()))?;
    if !output.status.success() {
        let mut said = String::new();
        let _ = output.stderr.as_slice().read_to_string(&mut said);
        return Err(failed(format!("{} ({})", said.trim().replace('\n', "; "), output.status)));
    }
    let folder = String::from_utf8_lossy(&output.stdout).lines().last().unwrap_or_default().trim().to_owned();
    if !folder.starts_with('/') {
        return Err(failed(format!("the remote shell answered '{folder}' where a folder was expected")));
    }
    Ok(folder)
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

    #[test]
    fn a_folder_with_a_space_is_removed_whole_and_alone() {
        let base = std::env::temp_dir().join(format!("lr-push-space-{}", std::process::id()));
        let (folder, neighbour) = (base.join("a b"), base.join("a"));
        std::fs::create_dir_all(&neighbour).unwrap();
        for shell in ["sh", "bash"] {
            std::fs::create_dir_all(&folder).unwrap();
            std::fs::write(folder.join("linerate"), "#!/bin/sh\nexit 0\n").unwrap();
            let script = run_and_remove(&folder.display().to_string());
            let output = Command::new(shell).arg("-c").arg(script).output().unwrap();
            assert!(!folder.exists(), "{shell}: {}", String::from_utf8_lossy(&output.stderr));
            assert!(neighbour.exists(), "{shell}");
        }
        std::fs::remove_dir_all(&base).unwrap();
    }

    #[test]
    fn receiving_leaves_nothing_when_the_disk_is_full() {
        let folder = std::env::temp_dir().join(format!("lr-push-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        // A file size limit of one block stands for the full disk: cat fails with EFBIG.
        let script = format!("ulimit -f 1; trap '' XFSZ; {RECEIVE}");
        let source = File::open("/proc/self/exe").unwrap();
        let output =
            Command::new("sh").arg("-c").arg(script).env("TMPDIR", &folder).stdin(source).output().unwrap();
        let left = std::fs::read_dir(&folder).unwrap().count();
        std::fs::remove_dir_all(&folder).unwrap();
        assert!(!output.status.success());
        assert_eq!(left, 0, "{}", String::from_utf8_lossy(&output.stderr));
    }
}
