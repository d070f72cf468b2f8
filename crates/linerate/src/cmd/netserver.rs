//! `linerate netserver`: netserver's command line and exit codes.

use std::io::Read;
use std::os::unix::process::CommandExt;
use std::process::{Command, Stdio};

use linerate_compat::netperf::netserver::{Instead, ServerArgs};
use linerate_model::exit::ExitCode;

use crate::cli::RawArgs;
use crate::failure::Failure;
use crate::signals;

pub(crate) fn run(args: RawArgs) -> Result<ExitCode, Failure> {
    let server = match ServerArgs::parse(&args.words) {
        Ok(server) => server,
        Err(Instead::Print(text)) => {
            print!("{text}");
            return Ok(ExitCode::Good);
        }
        Err(Instead::Complain(text)) => {
            eprint!("{text}");
            return Ok(ExitCode::Failed);
        }
    };
    if !server.foreground {
        return run_in_background(&args.words);
    }
    tracing_subscriber::fmt().with_writer(std::io::stderr).with_target(false).init();
    let listener =
        server.listen().map_err(|e| Failure::node(format!("listen on port {}: {e}", server.port)))?;
    print!("{}", server.starting_line());
    // The line tells whoever waits for it that clients may come.
    let _closed = std::io::Write::flush(&mut std::io::stdout());
    let stop = signals::stop_flag()?;
    Ok(match server.serve(&listener, &stop, &mut std::io::stderr()) {
        0 => ExitCode::Good,
        _ => ExitCode::Failed,
    })
}

/// As netserver without -D: goes on in a process of its own once it listens.
fn run_in_background(words: &[String]) -> Result<ExitCode, Failure> {
    let program = std::env::current_exe().map_err(|e| Failure::node(format!("find own program: {e}")))?;
    let mut command = Command::new(program);
    command.arg("netserver").arg("-D").args(words);
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null()).process_group(0);
    let mut child = command.spawn().map_err(|e| Failure::node(format!("start in the background: {e}")))?;
    let mut stdout = child.stdout.take().ok_or_else(|| Failure::node("no pipe to the server"))?;
    let mut line = Vec::new();
    let mut byte = [0];
    while line.last() != Some(&b'\n') && matches!(stdout.read(&mut byte), Ok(1)) {
        line.push(byte[0]);
    }
    print!("{}", String::from_utf8_lossy(&line));
    if line.is_empty() {
        return Err(Failure::node("the server could not listen: see it with -D"));
    }
    Ok(ExitCode::Good)
}
