//! iperf3's command from its words to its exit code. Whoever calls it gives it its streams.

use std::fs;
use std::io::{self, Write};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

use linerate_sys::{affinity, clock};

use super::auth::{self, Gate};
use super::client;
use super::error::TestError;
use super::help::HELP;
use super::json_report::system_info;
use super::options::{self, ClientRequest, Output, Request, ServerRequest};
use super::printer::{Board, Form, Printer};
use super::record::Record;
use super::report::Event;
use super::server::{Server, ServerOptions, Tell};
use super::text_report::VERSION;
use crate::observed::{Keep, Observed};

/// What the command has to do with the world.
pub struct Io {
    /// Results.
    pub stdout: Box<dyn Write + Send>,
    /// Error messages.
    pub stderr: Box<dyn Write + Send>,
    /// Set by a signal.
    pub stop: Arc<AtomicBool>,
    /// Keeps the project's own record.
    pub keep: Keep,
    /// Gives a password when none is in `IPERF3_PASSWORD`.
    pub ask_password: fn() -> io::Result<String>,
}

/// Runs the command; returns its exit code: 0, or 1 for a failure.
pub fn main(words: &[String], mut io: Io) -> u8 {
    match options::parse(words) {
        Err(error) => {
            say(&mut io.stderr, &format!("iperf3: parameter error - {error}\n"));
            say(&mut io.stderr, "Try `iperf3 --help' for more information.\n");
            1
        }
        Ok(Request::Help) => {
            say(&mut io.stdout, HELP);
            0
        }
        Ok(Request::Version) => {
            say(&mut io.stdout, &format!("{VERSION}\n{}\n", system_info()));
            0
        }
        Ok(Request::Client(request)) => run_client(*request, io),
        Ok(Request::Server(request)) => run_server(*request, io),
    }
}

fn say(out: &mut dyn Write, text: &str) {
    // Nobody is left to be told of a failure.
    let _written = out.write_all(text.as_bytes()).and_then(|()| out.flush());
}

fn fail(mut io: Io, error: &dyn std::fmt::Display) -> u8 {
    say(&mut io.stderr, &format!("iperf3: error - {error}\n"));
    1
}

/// Where output goes: the log file, if there is one.
fn open_output(output: &Output, stdout: Box<dyn Write + Send>) -> Result<Box<dyn Write + Send>, String> {
    let Some(path) = &output.logfile else { return Ok(stdout) };
    let file = fs::File::options().append(true).create(true).open(path);
    Ok(Box::new(file.map_err(|e| format!("unable to open log file {}: {e}", path.display()))?))
}

fn settle(output: &Output) -> Result<(), String> {
    if let Some(cpu) = output.affinity {
        affinity::pin_thread(&[cpu as usize]).map_err(|e| e.to_string())?;
    }
    if let Some(path) = &output.pidfile {
        fs::write(path, format!("{}\n", std::process::id()))
            .map_err(|e| format!("unable to write PID file {}: {e}", path.display()))?;
    }
    Ok(())
}

fn remove_pidfile(path: Option<&Path>) {
    if let Some(path) = path {
        // It may have been removed by others.
        let _removed = fs::remove_file(path);
    }
}

fn run_client(mut request: ClientRequest, mut io: Io) -> u8 {
    if let Err(error) = settle(&request.output).and_then(|()| add_token(&mut request, io.ask_password)) {
        return fail(io, &error);
    }
    let stdout = std::mem::replace(&mut io.stdout, Box::new(io::sink()));
    let out = match open_output(&request.output, stdout) {
        Ok(out) => out,
        Err(error) => return fail(io, &error),
    };
    let mut printer = Printer::new(out, request.output.timestamps.clone());
    let mut form = Form::new(&request.output);
    let json = request.output.json || request.output.json_stream;
    if request.output.verbose && !json {
        printer.print(&format!("{VERSION}\n{}\n", system_info()));
    }
    let mut record = request.output.record.as_ref().map(|_| Record::default());
    let mut observed: Vec<Observed> = Vec::new();
    let outcome = client::run(&request.options, &io.stop, &mut |event| {
        printer.print(&form.event(&event));
        observed.extend(record.as_mut().map(|record| record.event(&event)).unwrap_or_default());
    });
    if let Some(path) = &request.output.record
        && let Err(error) = observed.into_iter().try_for_each(|one| (io.keep)(path, one))
    {
        return fail(io, &format!("write {}: {error}", path.display()));
    }
    if let Err(error) = &outcome {
        printer.print(&form.event(&Event::Failed(error.to_string())));
    }
    printer.print(&form.finish());
    remove_pidfile(request.output.pidfile.as_deref());
    match outcome {
        Ok(()) => 0,
        Err(error) => {
            if !json {
                say(&mut io.stderr, &format!("iperf3: error - {error}\n"));
            }
            u8::from(!matches!(error, TestError::Interrupted))
        }
    }
}

fn add_token(request: &mut ClientRequest, ask: fn() -> io::Result<String>) -> Result<(), String> {
    let Some((user, key)) = &request.credentials else { return Ok(()) };
    let password = match std::env::var("IPERF3_PASSWORD") {
        Ok(password) => password,
        Err(_) => ask().map_err(|e| format!("read password: {e}"))?,
    };
    let now_s = clock::realtime_ns() / 1_000_000_000;
    let token = auth::token(user, &password, key, request.padding, now_s).map_err(|e| e.to_string())?;
    request.options.params.authtoken = Some(token);
    Ok(())
}

fn run_server(request: ServerRequest, mut io: Io) -> u8 {
    let output = request.output.clone();
    let gate = match open_gate(&request) {
        Ok(gate) => gate,
        Err(error) => return fail(io, &error),
    };
    // Before any thread is started.
    if request.daemon
        && let Err(error) = nix::unistd::daemon(true, output.logfile.is_some())
    {
        return fail(io, &format!("run in the background: {error}"));
    }
    if let Err(error) = settle(&output) {
        return fail(io, &error);
    }
    let options = ServerOptions {
        bind: request.bind,
        port: request.port,
        family: request.family,
        limits: request.limits,
        gate,
        interval_s: request.interval_s,
        json: output.json,
        one_off: request.one_off,
        idle: request.idle,
        file: request.file,
    };
    let server = match Server::bind(options) {
        Ok(server) => server,
        Err(error) => return fail(io, &format!("unable to start listener for connections: {error}")),
    };
    let stdout = std::mem::replace(&mut io.stdout, Box::new(io::sink()));
    let mut out = match open_output(&output, stdout) {
        Ok(out) => out,
        Err(error) => return fail(io, &error),
    };
    if output.verbose && !output.json {
        say(&mut out, &format!("{VERSION}\n{}\n", system_info()));
    }
    let errors = std::mem::replace(&mut io.stderr, Box::new(io::sink()));
    let board = Arc::new(Board::new(out, errors, &output, server.port(), io.keep));
    board.listening();
    let tell: Tell = {
        let board = board.clone();
        Arc::new(move |event| board.event(&event))
    };
    let outcome = server.run(&io.stop, &tell);
    remove_pidfile(output.pidfile.as_deref());
    match outcome {
        Ok(()) => {
            if io.stop.load(Relaxed) {
                board.note("iperf3: interrupt - the server has terminated\n");
            }
            0
        }
        Err(error) => {
            board.note(&format!("iperf3: error - {error}\n"));
            1
        }
    }
}

fn open_gate(request: &ServerRequest) -> Result<Option<Gate>, String> {
    let Some((key, users)) = &request.credentials else { return Ok(None) };
    let gate = Gate::open(key, users, request.padding, request.skew_s);
    gate.map(Some).map_err(|e| e.to_string())
}
