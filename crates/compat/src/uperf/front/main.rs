//! `uperf ARGUMENTS`, as master. As slave the options go back to the caller, who has the accept loop.

use std::io::Write;
use std::path::Path;
use std::sync::atomic::AtomicBool;

use linerate_sys::clock;

use crate::observed::Keep;
use crate::uperf::front::options::{Options, OptionsError, Role};
use crate::uperf::front::record::ProfileWatch;
use crate::uperf::front::{netstat, progress, tables};
use crate::uperf::master::{MasterError, MasterOptions, Outcome, RunEvent, run_profile};
use crate::uperf::profile;
use crate::uperf::strand::Total;
use crate::uperf::workorder::Profile;

const USAGE: &str = "\
Usage: uperf -m FILE [options]    run a profile as master
       uperf -s [options]         be a slave
  -P PORT   control port (20000)         -S tcp    control protocol
  -i TIME   progress interval (1s; m is milliseconds)
  -a        all of: -f flowops, -t transactions, -g groups, -T threads
  -R        raw lines instead of progress and summaries
  -n        no figures                   -X FILE   a line for each flowop record to FILE
  -p -k -e -E LIST    taken for compatibility
  -v verbose   -V version   -h help
  --linerate-json FILE        add a record of the run to FILE
  --linerate-layout LETTER    layout that the slave speaks, A to F (found out by itself)
";

/// Exit code of a run that a signal ended.
const INTERRUPTED: u8 = 2;

/// What the front end writes to.
pub struct Io<'a> {
    /// Results.
    pub stdout: &'a mut dyn Write,
    /// Errors.
    pub stderr: &'a mut dyn Write,
    /// Keeps the project's own record.
    pub keep: Keep,
}

impl std::fmt::Debug for Io<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Io").finish_non_exhaustive()
    }
}

/// What is left to do.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Served {
    /// Nothing: exit with this code.
    Done(u8),
    /// Accept masters on this port.
    Slave(Box<Options>),
}

/// Runs `uperf ARGUMENTS`; `environment` looks up a profile's variables.
pub fn main(
    arguments: &[String],
    environment: &dyn Fn(&str) -> Option<String>,
    interrupted: &AtomicBool,
    io: &mut Io<'_>,
) -> Served {
    let options = match Options::parse(arguments) {
        Ok(options) => options,
        Err(error) => return Served::Done(explain(&error, io)),
    };
    let Role::Master(file) = &options.role else { return Served::Slave(Box::new(options)) };
    let profile = match read(file, environment) {
        Ok(profile) => profile,
        Err(message) => {
            say(io.stderr, &format!("{}: {message}\n", file.display()));
            say(io.stdout, &format!("Error parsing {}\n", file.display()));
            return Served::Done(1);
        }
    };
    Served::Done(run(&profile, &options, interrupted, io))
}

/// Says why there is no run; the exit codes are uperf's.
fn explain(error: &OptionsError, io: &mut Io<'_>) -> u8 {
    match error {
        OptionsError::Help => {
            say(io.stdout, USAGE);
            0
        }
        OptionsError::Version => {
            say(io.stdout, &format!("linerate {} as uperf 1.0.8\n", env!("CARGO_PKG_VERSION")));
            0
        }
        OptionsError::Nothing => {
            say(io.stderr, USAGE);
            1
        }
        OptionsError::Unknown(_) => {
            say(io.stderr, &format!("uperf: {error}\n{USAGE}"));
            0
        }
        OptionsError::NoValue(_) | OptionsError::Bad(_) => {
            say(io.stderr, &format!("uperf: {error}\n"));
            1
        }
    }
}

fn read(file: &Path, environment: &dyn Fn(&str) -> Option<String>) -> Result<Profile, String> {
    let text = std::fs::read_to_string(file).map_err(|e| e.to_string())?;
    profile::read(&text, environment).map_err(|e| e.to_string())
}

fn run(profile: &Profile, options: &Options, interrupted: &AtomicBool, io: &mut Io<'_>) -> u8 {
    let master = MasterOptions {
        control_port: options.port,
        interval: options.interval,
        layout: options.layout,
        history: options.history.clone(),
        goodbyes: options.statistics || options.json.is_some(),
        latencies: options.json.is_some(),
    };
    let mut watch = options.json.is_some().then(|| ProfileWatch::open(profile, options.port));
    let mut links = Vec::new();
    let mut all = Total::default();
    let stdout = &mut *io.stdout;
    let mut tell = |event: RunEvent| {
        if matches!(event, RunEvent::Ready(_)) {
            links = netstat::sample().unwrap_or_default();
        }
        if let Some(watch) = &mut watch {
            match event {
                RunEvent::Ready(_) => watch.begin(),
                RunEvent::Ended(_) => watch.end(),
                RunEvent::Began(_) | RunEvent::Progress(_) => {}
            }
        }
        say(stdout, &event_text(profile, options, &event, &mut all));
    };
    let outcome = match run_profile(profile, &master, interrupted, &mut tell) {
        Ok(outcome) => outcome,
        Err(error) => {
            say(io.stdout, &failure_text(&error));
            return 1;
        }
    };
    let after = netstat::sample().unwrap_or_default();
    say(io.stdout, &result_text(options, &outcome, &links, &after));
    if let (Some(path), Some(watch)) = (&options.json, &watch)
        && let Err(e) = (io.keep)(path, watch.observed(profile, &outcome))
    {
        say(io.stderr, &format!("uperf: {}: {e}\n", path.display()));
        return 1;
    }
    exit_code(&outcome)
}

fn exit_code(outcome: &Outcome) -> u8 {
    if outcome.interrupted {
        return INTERRUPTED;
    }
    u8::from(outcome.slave_aborted || !outcome.errors.is_empty())
}

fn event_text(profile: &Profile, options: &Options, event: &RunEvent, all: &mut Total) -> String {
    match event {
        RunEvent::Ready(ready_ns) => {
            let count = |processes| {
                profile.groups.iter().filter(|g| g.processes == processes).map(|g| g.strands).sum()
            };
            progress::starting(count(false), count(true), &profile.name, *ready_ns)
        }
        _ if !options.statistics => String::new(),
        RunEvent::Began(p) | RunEvent::Progress(p) | RunEvent::Ended(p) if options.raw => {
            let ended = matches!(event, RunEvent::Ended(_));
            if ended {
                *all = all.plus(p.total);
            }
            progress::raw(&progress::transaction_name(p), p.total, clock::realtime_ns())
        }
        RunEvent::Began(_) => String::new(),
        RunEvent::Progress(p) => {
            progress::back() + &progress::figures(&progress::transaction_name(p), p.total, p.elapsed_ns)
        }
        RunEvent::Ended(p) => {
            let line = progress::figures(&progress::transaction_name(p), p.total, p.elapsed_ns);
            format!("{}{line}\n", progress::back())
        }
    }
}

fn failure_text(error: &MasterError) -> String {
    match error {
        MasterError::Connect { host, port, cause } => {
            format!("{error}\n** TCP: Cannot connect to {host}:{port} {cause}\n")
        }
        MasterError::Refused { host, .. } => format!("{error}\nerror handshaking with {host}\n"),
        MasterError::Handshake { host, message } => {
            format!("{error}\n** {message}\nerror handshaking with {host}\n")
        }
        MasterError::Here(_) => format!("** {error}\n"),
    }
}

fn result_text(
    options: &Options,
    outcome: &Outcome,
    before: &[netstat::LinkCounters],
    after: &[netstat::LinkCounters],
) -> String {
    let mut text = String::new();
    if outcome.slave_aborted {
        text += "\n*** Slave aborted! ***\n";
    }
    if !outcome.errors.is_empty() {
        text.extend([format!("\nWARNING: {} Errors detected during run\n", outcome.errors.len())]);
    }
    if options.statistics {
        text += &figures_text(options, outcome);
        text += &netstat::table(before, after, outcome.elapsed_ns);
        text += &tables::run_statistics(outcome);
    }
    text + &tables::messages(outcome)
}

fn figures_text(options: &Options, outcome: &Outcome) -> String {
    if options.raw {
        return progress::raw("Total", outcome.total, clock::realtime_ns())
            + &averages_text(options, outcome);
    }
    let mut text = format!("{}\n", progress::rule());
    text += &progress::figures("Total", outcome.total, outcome.elapsed_ns);
    text.push('\n');
    if options.groups {
        text += &tables::parts("Group Details", &outcome.groups);
    }
    if options.strands {
        text += &tables::parts("Strand Details", &outcome.strands);
    }
    text + &averages_text(options, outcome)
}

fn averages_text(options: &Options, outcome: &Outcome) -> String {
    let mut text = String::new();
    if options.transactions {
        let rows: Vec<_> =
            outcome.iterations.iter().enumerate().map(|(at, d)| (format!("Txn{at}"), *d)).collect();
        text += &tables::durations("Txn", &rows);
    }
    if options.flowops {
        let rows: Vec<_> = outcome.flowops.iter().map(|(name, d)| ((*name).to_owned(), *d)).collect();
        text += &tables::durations("Flowop", &rows);
    }
    text
}

/// Whoever closed the stream does not want the text.
fn say(stream: &mut dyn Write, text: &str) {
    let _closed = stream.write_all(text.as_bytes()).and_then(|()| stream.flush());
}
