//! The whole of `netperf`: options in, lines and an exit code out.

use std::io::Write;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

use linerate_sys::{affinity, clock};

use super::drive::{DriveError, Driver, Interim};
use super::figures::{Figures, Outcome, widths};
use super::omni_output::{self, Blocks};
use super::options::{Form, Options, Refusal, TestName};
use super::request::Pattern;
use super::{record, table};
use crate::observed::Keep;

/// Exit code for no control connection.
const NO_CONTROL: u8 = 255;

/// Runs netperf with the words after its name; `stop` ends a test early. Returns netperf's exit code.
///
/// `keep` keeps the project's own record.
pub fn run_client(
    words: &[String],
    stop: &AtomicBool,
    out: &mut dyn Write,
    err: &mut dyn Write,
    keep: Keep,
) -> u8 {
    let options = match Options::parse(words) {
        Ok(options) => options,
        Err(Refusal::Print(text)) => return say(out, &text, 0),
        Err(Refusal::Complain(text, code)) => return say(err, &text, code),
    };
    let spec = output_spec(&options);
    let blocks = match &spec {
        Some((_, spec)) => omni_output::blocks(&options, spec, |path| std::fs::read_to_string(path)),
        None => Ok(Blocks::new()),
    };
    let blocks = match blocks {
        Ok(blocks) => blocks,
        Err((code @ 1, text)) => return say(out, &text, code),
        Err((code, text)) => return say(err, &text, code),
    };
    match options.test {
        TestName::Uuid => return say(out, &uuid(&options), 0),
        TestName::LocCpu => {
            let cpus = affinity::online_cpus().map_or(0, |cpus| cpus.len());
            return say(out, &calibration(&options, 100.0, cpus as i32, "local"), 0);
        }
        _ => {}
    }
    let form = spec.map(|(form, _)| form);
    match drive(&options, form, &blocks, stop, out, keep) {
        Ok(()) => 0,
        Err(Failure::Write) => 1,
        Err(Failure::Drive(error)) => {
            let code = if matches!(error, DriveError::NoControl(_)) { NO_CONTROL } else { 1 };
            say(err, &format!("netperf: {error}\n"), code)
        }
        Err(Failure::Record(text)) => say(err, &format!("netperf: {text}\n"), 1),
    }
}

enum Failure {
    Drive(DriveError),
    Record(String),
    Write,
}

impl From<DriveError> for Failure {
    fn from(error: DriveError) -> Self {
        Self::Drive(error)
    }
}

impl From<std::io::Error> for Failure {
    fn from(_: std::io::Error) -> Self {
        Self::Write
    }
}

/// An OMNI test without a form has the human one.
fn output_spec(options: &Options) -> Option<(Form, String)> {
    let omni = (options.test == TestName::Omni).then(|| (Form::Human, String::new()));
    options.own.output.clone().or(omni)
}

fn drive(
    options: &Options,
    form: Option<Form>,
    blocks: &Blocks,
    stop: &AtomicBool,
    out: &mut dyn Write,
    keep: Keep,
) -> Result<(), Failure> {
    let mut driver = Driver::connect(options)?;
    if options.test == TestName::RemCpu {
        let (rate, cpus) = driver.calibrate(stop)?;
        out.write_all(calibration(options, rate, cpus, "remote").as_bytes())?;
        return Ok(out.flush()?);
    }
    if options.headers {
        out.write_all(table::banner(options).as_bytes())?;
        out.flush()?;
    }
    let for_record = options.record_file.is_some() && options.counts_transactions();
    let keep_latency = options.keep_latency || for_record || omni_output::wants_latency(blocks);
    let mut all = Vec::new();
    let mut interims = 0;
    let last = loop {
        let mut tell = |interim: Interim| {
            let line = interim_line(options, form, interims, interim);
            interims += 1;
            // A reader that is gone is noticed when the result is written.
            let _gone = out.write_all(line.as_bytes()).and_then(|()| out.flush());
        };
        let run = driver.iterate(options, keep_latency, stop, &mut tell)?;
        if let (Some(path), Some((watch, ends))) = (&options.record_file, driver.watch())
            && record::has_record(options)
        {
            let one = record::observed(options, &run, watch, ends, stop.load(Relaxed));
            keep(path.as_ref(), one).map_err(|e| Failure::Record(format!("write {path}: {e}")))?;
        }
        all.push(Figures::of(options, &run));
        let met = widths(options, &all).is_none_or(|widths| widths.met);
        let enough = all.len() >= options.iterations[1] as usize && met;
        if enough || all.len() >= options.iterations[0] as usize || stop.load(Relaxed) {
            break run;
        }
    };
    let outcome = Outcome::new(options, &all, last);
    let text = match form {
        Some(form) => omni_output::render(form, blocks, options, &outcome, &uuid(options)),
        None => table::table(options, &outcome),
    };
    out.write_all(text.as_bytes())?;
    out.flush()?;
    Ok(())
}

fn interim_line(
    options: &Options,
    form: Option<Form>,
    number: u32,
    Interim { earlier, now }: Interim,
) -> String {
    let seconds = now.at_ns.saturating_sub(earlier.at_ns) as f64 / 1e9;
    let unit = options.result_unit();
    let sent = now.sent.bytes - earlier.sent.bytes;
    let received = now.received.bytes - earlier.received.bytes;
    let units = match options.own.pattern {
        Pattern::Stream => sent,
        Pattern::Maerts => received,
        _ if unit.0 == 'x' => now.transactions - earlier.transactions,
        _ => sent + received,
    };
    let rate = unit.rate(units as f64, seconds);
    // The samples are on the monotonic clock; scripts want the time of day.
    let since = clock::monotonic_ns().saturating_sub(now.at_ns);
    let ending = clock::realtime_ns().saturating_sub(since) as f64 / 1e9;
    let name = format!("{}/s", unit.name());
    match form {
        None | Some(Form::Human) => {
            format!("Interim result: {rate:>7.2} {name} over {seconds:.3} seconds ending at {ending:.3}\n")
        }
        Some(Form::Csv) => format!("{rate:>7.2},{name},{seconds:.3},{ending:.3}\n"),
        Some(Form::Keyval) => format!(
            "NETPERF_INTERIM_RESULT[{number}]={rate:.2}\nNETPERF_UNITS[{number}]={name}\n\
             NETPERF_INTERVAL[{number}]={seconds:.3}\nNETPERF_ENDING[{number}]={ending:.3}\n"
        ),
    }
}

fn calibration(options: &Options, rate: f32, cpus: i32, which: &str) -> String {
    if options.verbosity > 1 { format!("{rate}\nThere are {cpus} {which} cpus\n") } else { rate.to_string() }
}

/// The text of -u, or a UUID of version 1 by RFC 9562 section 5.1: the time in 100 ns since 15 October 1582.
fn uuid(options: &Options) -> String {
    if let Some(text) = &options.own.uuid {
        return text.clone();
    }
    const GREGORIAN_TO_UNIX: u64 = 0x01b2_1dd2_1381_4000;
    let time = clock::realtime_ns() / 100 + GREGORIAN_TO_UNIX;
    let mix = clock::monotonic_ns() ^ u64::from(std::process::id()).rotate_left(40);
    // A node that is no hardware address has the multicast bit.
    let node = (mix.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 16) | 0x0100_0000_0000;
    let sequence = (mix >> 4) & 0x3fff | 0x8000;
    format!(
        "{:08x}-{:04x}-{:04x}-{sequence:04x}-{node:012x}",
        time & 0xffff_ffff,
        (time >> 32) & 0xffff,
        (time >> 48) & 0x0fff | 0x1000,
    )
}

fn say(to: &mut dyn Write, text: &str, code: u8) -> u8 {
    match to.write_all(text.as_bytes()).and_then(|()| to.flush()) {
        Ok(()) => code,
        Err(_) => code.max(1),
    }
}
