//! `linerate guest`: what linerate does in a guest that it booted. Not for hands.

use std::io::Write;
use std::process::{Command, Stdio};

use clap::Args;
use linerate_agent::guest::{init, modprobe};
use linerate_model::exit::ExitCode;
use linerate_sys::boot;

use crate::failure::Failure;

#[derive(Debug, Args)]
pub(crate) struct GuestArgs {
    /// Run linerate's subcommands that come on stdin, a line each.
    #[arg(long)]
    prompt: bool,
    /// Load a module that the kernel asks for.
    #[arg(long, value_name = "NAME")]
    module: Option<String>,
}

pub(crate) fn run(args: GuestArgs) -> Result<ExitCode, Failure> {
    if args.prompt {
        return prompt();
    }
    if let Some(name) = args.module {
        modprobe::load(&name).map_err(Failure::node)?;
        return Ok(ExitCode::Good);
    }
    let tell = |words: &str| eprintln!("linerate: {words}");
    let Err(why) = init::run(&tell);
    if !boot::is_first_process() {
        return Err(Failure::usage(why));
    }
    tell(&format!("the guest ends: {why}"));
    Err(Failure::node(boot::power_off()))
}

const HELP: &str = "\
Each line is a subcommand of linerate, run in the guest: links, settings --link eth1, run netns:peer --dut local -w tcp-rr ...
`cat FILE` shows a file (below /proc or /sys, say), `write FILE TEXT` writes one, `exit` ends the guest.";

/// There is no shell in a guest: a line is a subcommand.
fn prompt() -> Result<ExitCode, Failure> {
    let failed = |error: std::io::Error| Failure::node(format!("talk to the host: {error}"));
    let mut line = String::new();
    loop {
        let mut stdout = std::io::stdout();
        write!(stdout, "linerate> ").and_then(|()| stdout.flush()).map_err(failed)?;
        line.clear();
        if std::io::stdin().read_line(&mut line).map_err(failed)? == 0 {
            return Ok(ExitCode::Good);
        }
        let words: Vec<&str> = line.split_ascii_whitespace().collect();
        match words.as_slice() {
            [] => {}
            ["exit" | "quit"] => return Ok(ExitCode::Good),
            ["help" | "?"] => println!("{HELP}"),
            ["cat", file] => match std::fs::read(file) {
                Ok(content) => stdout.write_all(&content).map_err(failed)?,
                Err(error) => println!("read {file}: {error}"),
            },
            ["write", file, text @ ..] => {
                let written = std::fs::write(file, text.join(" "));
                written.unwrap_or_else(|error| println!("write {file}: {error}"));
            }
            words => subcommand(words).map_err(failed)?,
        }
    }
}

fn subcommand(words: &[&str]) -> std::io::Result<()> {
    let stdout = std::io::stdout();
    let stderr = Stdio::from(std::os::fd::AsFd::as_fd(&stdout).try_clone_to_owned()?);
    let mut command = Command::new(std::env::current_exe()?);
    command.args(words).stdin(Stdio::null()).stderr(stderr).env("HOME", "/tmp");
    let status = command.status()?;
    if !status.success() {
        println!("({status})");
    }
    Ok(())
}
