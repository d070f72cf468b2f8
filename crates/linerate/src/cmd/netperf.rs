//! `linerate netperf`: netperf's command line, lines and exit codes.

use std::io;

use linerate_compat::netperf::run_client;
use linerate_model::exit::ExitCode;

use crate::cli::RawArgs;
use crate::failure::Failure;
use crate::{signals, stand_in};

pub(crate) fn run(args: RawArgs) -> Result<ExitCode, Failure> {
    let stop = signals::stop_flag()?;
    match run_client(&args.words, &stop, &mut io::stdout().lock(), &mut io::stderr().lock(), stand_in::keep) {
        0 => Ok(ExitCode::Good),
        1 => Ok(ExitCode::Failed),
        // Scripts tell a missing server from a failed test by netperf's own codes.
        other => std::process::exit(other.into()),
    }
}
