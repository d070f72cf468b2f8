//! `linerate ttcp`: ttcp's command line, lines and exit codes.

use std::fs::File;
use std::io;
use std::os::fd::AsFd;

use linerate_compat::ttcp::{self, Io};
use linerate_model::exit::ExitCode;

use crate::cli::RawArgs;
use crate::failure::Failure;
use crate::stand_in;

pub(crate) fn run(args: RawArgs) -> Result<ExitCode, Failure> {
    // Payload may pass through both, so neither is buffered.
    let stdin = plain(io::stdin(), "standard input")?;
    let mut stdout = plain(io::stdout(), "standard output")?;
    let mut stderr = io::stderr();
    let code = ttcp::main(
        &args.words,
        &mut Io { stdin, stdout: &mut stdout, stderr: &mut stderr, keep: stand_in::keep },
    );
    Ok(if code == 0 { ExitCode::Good } else { ExitCode::Failed })
}

fn plain(stream: impl AsFd, name: &str) -> Result<File, Failure> {
    let copy = stream.as_fd().try_clone_to_owned();
    copy.map(File::from).map_err(|e| Failure::node(format!("open {name}: {e}")))
}
