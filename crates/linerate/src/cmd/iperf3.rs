//! `linerate iperf3`: iperf3's command line, lines, JSON and exit codes.

use std::io::{self, BufRead, IsTerminal, Write};

use linerate_compat::iperf3::front::{self, Io};
use linerate_model::exit::ExitCode;
use nix::sys::termios::{LocalFlags, SetArg, tcgetattr, tcsetattr};

use crate::cli::RawArgs;
use crate::failure::Failure;
use crate::{signals, stand_in};

pub(crate) fn run(args: RawArgs) -> Result<ExitCode, Failure> {
    let streams = Io {
        stdout: Box::new(io::stdout()),
        stderr: Box::new(io::stderr()),
        stop: signals::stop_flag()?,
        ask_password,
        keep: stand_in::keep,
    };
    let code = front::main(&args.words, streams);
    Ok(if code == 0 { ExitCode::Good } else { ExitCode::Failed })
}

/// Reads a line from stdin, without echo on a terminal.
fn ask_password() -> io::Result<String> {
    let stdin = io::stdin();
    let hidden = if stdin.is_terminal() {
        io::stderr().write_all(b"Password: ")?;
        let before = tcgetattr(&stdin)?;
        let mut silent = before.clone();
        silent.local_flags.remove(LocalFlags::ECHO);
        tcsetattr(&stdin, SetArg::TCSANOW, &silent)?;
        Some(before)
    } else {
        None
    };
    let mut line = String::new();
    let read = stdin.lock().read_line(&mut line);
    if let Some(before) = hidden {
        tcsetattr(&stdin, SetArg::TCSANOW, &before)?;
        io::stderr().write_all(b"\n")?;
    }
    read?;
    Ok(line.trim_end_matches(['\r', '\n']).to_owned())
}
