//! iperf3's command line.

use std::net::IpAddr;
use std::path::PathBuf;
use std::time::Duration;

use linerate_sys::sockopt::KeepAlive;

use super::auth::Padding;
use super::client::ClientOptions;
use super::getopt::{self, Found, Spec, Value};
use super::limits::Limits;
use super::params::{
    BURST_MAX, MSS_MAX, OMIT_MAX, PARALLEL_MAX, Params, TCP_LEN_MAX, TIME_MAX, Transport, UDP_LEN_MAX,
    WINDOW_MAX,
};
use super::sockets::Family;
use super::text_report::VERSION;
use super::tos;
use super::units::{RateFormat, parse_binary, parse_decimal};
use super::wire::PORT;

/// What a command line asks for.
#[derive(Debug)]
pub enum Request {
    /// The options, explained.
    Help,
    /// The version.
    Version,
    /// A test.
    Client(Box<ClientRequest>),
    /// A server.
    Server(Box<ServerRequest>),
}

/// A test, and how it is shown.
#[derive(Debug, Default)]
pub struct ClientRequest {
    /// The test.
    pub options: ClientOptions,
    /// User and public key file.
    pub credentials: Option<(String, PathBuf)>,
    /// Padding of the token.
    pub padding: Padding,
    /// Seen by the user.
    pub output: Output,
}

/// A server, and how it is shown.
#[derive(Debug, Default)]
pub struct ServerRequest {
    /// Address to listen on.
    pub bind: Option<IpAddr>,
    /// Port.
    pub port: u16,
    /// IP version.
    pub family: Family,
    /// What is allowed.
    pub limits: Limits,
    /// Private key file and file of users.
    pub credentials: Option<(PathBuf, PathBuf)>,
    /// Padding of tokens.
    pub padding: Padding,
    /// How old a token may be, seconds.
    pub skew_s: u64,
    /// Seconds between reports.
    pub interval_s: f64,
    /// Runs in the background.
    pub daemon: bool,
    /// Ends after one test.
    pub one_off: bool,
    /// Limit of waiting for a client.
    pub idle: Option<Duration>,
    /// Received into.
    pub file: Option<PathBuf>,
    /// Seen by the user.
    pub output: Output,
}

/// How things are shown.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Output {
    /// One object.
    pub json: bool,
    /// A line an event.
    pub json_stream: bool,
    /// The whole object after the lines.
    pub json_stream_full: bool,
    /// More lines.
    pub verbose: bool,
    /// Rates.
    pub rate: RateFormat,
    /// Instead of stdout.
    pub logfile: Option<PathBuf>,
    /// Holds the process id.
    pub pidfile: Option<PathBuf>,
    /// Before each line, as strftime(3) has it.
    pub timestamps: Option<String>,
    /// Own CPU.
    pub affinity: Option<u32>,
    /// The project's own record goes there too.
    pub record: Option<PathBuf>,
}

const SPECS: &[Spec] = &[
    (Some('p'), "port", Value::Must),
    (Some('f'), "format", Value::Must),
    (Some('i'), "interval", Value::Must),
    (Some('I'), "pidfile", Value::Must),
    (Some('F'), "file", Value::Must),
    (Some('A'), "affinity", Value::Must),
    (Some('B'), "bind", Value::Must),
    (None, "bind-dev", Value::Must),
    (Some('V'), "verbose", Value::No),
    (Some('d'), "debug", Value::May),
    (Some('v'), "version", Value::No),
    (Some('h'), "help", Value::No),
    (Some('J'), "json", Value::No),
    (None, "json-stream", Value::No),
    (None, "json-stream-full-output", Value::No),
    (None, "logfile", Value::Must),
    (None, "forceflush", Value::No),
    (None, "timestamps", Value::May),
    (None, "rcv-timeout", Value::Must),
    (None, "snd-timeout", Value::Must),
    (None, "cntl-ka", Value::May),
    (Some('m'), "mptcp", Value::No),
    (Some('4'), "version4", Value::No),
    (Some('6'), "version6", Value::No),
    (Some('s'), "server", Value::No),
    (Some('D'), "daemon", Value::No),
    (Some('1'), "one-off", Value::No),
    (None, "server-bitrate-limit", Value::Must),
    (None, "idle-timeout", Value::Must),
    (None, "server-max-duration", Value::Must),
    (None, "rsa-private-key-path", Value::Must),
    (None, "authorized-users-path", Value::Must),
    (None, "time-skew-threshold", Value::Must),
    (None, "use-pkcs1-padding", Value::No),
    (Some('c'), "client", Value::Must),
    (Some('u'), "udp", Value::No),
    (None, "sctp", Value::No),
    (Some('X'), "xbind", Value::Must),
    (None, "nstreams", Value::Must),
    (None, "connect-timeout", Value::Must),
    (Some('b'), "bitrate", Value::Must),
    (None, "bandwidth", Value::Must),
    (None, "pacing-timer", Value::Must),
    (None, "fq-rate", Value::Must),
    (Some('t'), "time", Value::Must),
    (Some('n'), "bytes", Value::Must),
    (Some('k'), "blockcount", Value::Must),
    (Some('l'), "length", Value::Must),
    (None, "cport", Value::Must),
    (Some('P'), "parallel", Value::Must),
    (Some('R'), "reverse", Value::No),
    (None, "bidir", Value::No),
    (Some('w'), "window", Value::Must),
    (Some('C'), "congestion", Value::Must),
    (None, "linux-congestion", Value::Must),
    (Some('M'), "set-mss", Value::Must),
    (Some('N'), "no-delay", Value::No),
    (Some('S'), "tos", Value::Must),
    (None, "dscp", Value::Must),
    (Some('L'), "flowlabel", Value::Must),
    (Some('Z'), "zerocopy", Value::No),
    (None, "skip-rx-copy", Value::No),
    (None, "gsro", Value::No),
    (None, "gso", Value::No),
    (None, "gro", Value::No),
    (Some('O'), "omit", Value::Must),
    (Some('T'), "title", Value::Must),
    (None, "extra-data", Value::Must),
    (None, "get-server-output", Value::No),
    (None, "udp-counters-64bit", Value::No),
    (None, "repeating-payload", Value::No),
    (None, "dont-fragment", Value::No),
    (None, "username", Value::Must),
    (None, "rsa-public-key-path", Value::Must),
    (None, "one-at-a-time", Value::No),
    (None, "max-clients", Value::Must),
    (None, "allow", Value::Must),
    (None, "allow-pinning", Value::No),
    (None, "linerate-json", Value::Must),
];

const SERVER_ONLY: &[&str] = &[
    "daemon",
    "one-off",
    "server-bitrate-limit",
    "idle-timeout",
    "server-max-duration",
    "rsa-private-key-path",
    "authorized-users-path",
    "time-skew-threshold",
    "one-at-a-time",
    "max-clients",
    "allow",
    "allow-pinning",
];

const BOTH: &[&str] = &[
    "port",
    "format",
    "interval",
    "pidfile",
    "file",
    "affinity",
    "bind",
    "bind-dev",
    "verbose",
    "debug",
    "json",
    "json-stream",
    "json-stream-full-output",
    "logfile",
    "forceflush",
    "timestamps",
    "rcv-timeout",
    "snd-timeout",
    "cntl-ka",
    "mptcp",
    "version4",
    "version6",
    "use-pkcs1-padding",
    "server",
    "client",
    "linerate-json",
];

/// Reads the words behind the program's name.
///
/// # Errors
/// What is wrong with them, to be printed behind `iperf3: parameter error - `.
pub fn parse(words: &[String]) -> Result<Request, String> {
    let found = getopt::split(SPECS, words)?;
    let has = |name: &str| found.iter().any(|(n, _)| *n == name);
    if has("help") {
        return Ok(Request::Help);
    }
    if has("version") {
        return Ok(Request::Version);
    }
    match (has("server"), has("client")) {
        (true, true) => Err("cannot be both server and client".into()),
        (false, false) => Err("must either be a client (-c) or server (-s)".into()),
        (true, false) => server(&found).map(|s| Request::Server(Box::new(s))),
        (false, true) => client(&found).map(|c| Request::Client(Box::new(c))),
    }
}

/// The first lines of the help; the rest is the table of options.
pub fn version_text() -> String {
    format!("{VERSION}\n")
}

fn server(found: &[Found]) -> Result<ServerRequest, String> {
    if let Some((name, _)) = found.iter().find(|(n, _)| !BOTH.contains(n) && !SERVER_ONLY.contains(n)) {
        return Err(format!("some option you are trying to set is client only: --{name}"));
    }
    let mut request = ServerRequest { port: PORT, interval_s: 1.0, skew_s: 10, ..ServerRequest::default() };
    let (mut key, mut users) = (None, None);
    for (name, value) in found {
        let text = value.as_deref().unwrap_or_default();
        match *name {
            "port" => request.port = ranged(name, text, 1, 65535)? as u16,
            "interval" => request.interval_s = interval(text)?,
            "bind" => request.bind = Some(address(text)?),
            "version4" => request.family = Family::V4,
            "version6" => request.family = Family::V6,
            "file" => request.file = Some(text.into()),
            "daemon" => request.daemon = true,
            "one-off" => request.one_off = true,
            "one-at-a-time" => request.limits.clients = 1,
            "max-clients" => request.limits.clients = ranged(name, text, 1, 100_000)? as usize,
            "allow" => request.limits.allow = networks(text)?,
            "allow-pinning" => request.limits.pinning = true,
            "server-bitrate-limit" => request.limits.rate = Some(rate_limit(text)?),
            "server-max-duration" => {
                request.limits.duration_s = Some(ranged(name, text, 1, TIME_MAX.into())? as u32);
            }
            "idle-timeout" => request.idle = Some(Duration::from_secs(ranged(name, text, 1, 86400)?)),
            "rcv-timeout" => request.limits.receive = milliseconds(name, text)?,
            "rsa-private-key-path" => key = Some(PathBuf::from(text)),
            "authorized-users-path" => users = Some(PathBuf::from(text)),
            "time-skew-threshold" => request.skew_s = ranged(name, text, 1, u64::MAX / 2)?,
            "use-pkcs1-padding" => request.padding = Padding::Pkcs1,
            "bind-dev" | "snd-timeout" | "cntl-ka" => return Err(not_offered(name, "on a server")),
            "affinity" => request.output.affinity = Some(cpu(text)?),
            "mptcp" => {} // A server speaks it with every client that asks.
            other => output(&mut request.output, other, text)?,
        }
    }
    request.credentials = match (key, users) {
        (Some(key), Some(users)) => Some((key, users)),
        (None, None) => None,
        _ => return Err("--rsa-private-key-path and --authorized-users-path need each other".into()),
    };
    Ok(request)
}

fn client(found: &[Found]) -> Result<ClientRequest, String> {
    if let Some((name, _)) = found.iter().find(|(n, _)| SERVER_ONLY.contains(n)) {
        return Err(format!("some option you are trying to set is server only: --{name}"));
    }
    let mut request = ClientRequest {
        options: ClientOptions {
            port: PORT,
            interval_s: 1.0,
            receive_limit: Duration::from_secs(120),
            params: Params { client_version: Some(VERSION.into()), ..Params::default() },
            ..ClientOptions::default()
        },
        ..ClientRequest::default()
    };
    let (mut user, mut key) = (None, None);
    for (name, value) in found {
        let text = value.as_deref().unwrap_or_default();
        match *name {
            "client" => host(&mut request.options, text),
            "file" => request.options.file = Some(text.into()),
            "username" => user = Some(text.to_owned()),
            "rsa-public-key-path" => key = Some(PathBuf::from(text)),
            "use-pkcs1-padding" => request.padding = Padding::Pkcs1,
            "affinity" => {
                let (own, servers) = text.split_once(',').map_or((text, None), |(o, s)| (o, Some(s)));
                request.output.affinity = if own.is_empty() { None } else { Some(cpu(own)?) };
                request.options.params.server_affinity = servers.map(cpu).transpose()?;
            }
            other => {
                if !endpoint(&mut request.options, other, text)? && !test(&mut request.options, other, text)?
                {
                    output(&mut request.output, other, text)?;
                }
            }
        }
    }
    request.credentials = match (user, key) {
        (Some(user), Some(key)) => Some((user, key)),
        (None, None) => None,
        _ => return Err("--username and --rsa-public-key-path need each other".into()),
    };
    finish(&mut request.options, found)?;
    Ok(request)
}

/// Options of the client's end, not of the test. False if it is none of them.
fn endpoint(options: &mut ClientOptions, name: &str, text: &str) -> Result<bool, String> {
    match name {
        "port" => options.port = ranged(name, text, 1, 65535)? as u16,
        "cport" => options.first_port = Some(ranged(name, text, 1, 65535)? as u16),
        "bind" => match text.split_once('%') {
            Some((bind, device)) => {
                options.source.bind = Some(address(bind)?);
                options.source.device = Some(device.into());
            }
            None => options.source.bind = Some(address(text)?),
        },
        "bind-dev" => options.source.device = Some(text.into()),
        "version4" => options.family = Family::V4,
        "version6" => options.family = Family::V6,
        "interval" => options.interval_s = interval(text)?,
        "connect-timeout" => {
            options.connect_limit = Some(Duration::from_millis(number(name, parse_binary(text))?.max(1)));
        }
        "rcv-timeout" => options.receive_limit = milliseconds(name, text)?,
        "snd-timeout" => options.send_limit = Some(Duration::from_millis(ranged(name, text, 0, 86_400_000)?)),
        "cntl-ka" => options.keepalive = Some(keepalive(text)?),
        _ => return Ok(false),
    }
    Ok(true)
}

/// Options of the test. False if it is none of them.
fn test(options: &mut ClientOptions, name: &str, text: &str) -> Result<bool, String> {
    let p = &mut options.params;
    match name {
        "udp" => p.transport = Transport::Udp,
        "time" => p.time_s = ranged(name, text, 0, TIME_MAX.into())? as u32,
        "omit" => p.omit_s = ranged(name, text, 0, OMIT_MAX.into())? as u32,
        "bytes" => p.num = number(name, parse_binary(text))?,
        "blockcount" => p.blockcount = number(name, parse_binary(text))?,
        "length" => {
            let len = number(name, parse_binary(text))?;
            options.len = Some(u32::try_from(len).map_err(|_| format!("--length {text}: too large"))?);
        }
        "parallel" => p.parallel = ranged(name, text, 1, PARALLEL_MAX.into())? as u32,
        "reverse" => p.reverse = true,
        "bidir" => p.bidir = true,
        "window" => p.window = Some(at_most(name, number(name, parse_binary(text))?, WINDOW_MAX)?),
        "congestion" | "linux-congestion" => p.congestion = Some(text.into()),
        "set-mss" => p.mss = Some(ranged(name, text, 1, MSS_MAX.into())? as u32),
        "no-delay" => p.nodelay = true,
        "bitrate" | "bandwidth" => {
            let (rate, burst) = text.split_once('/').map_or((text, None), |(r, b)| (r, Some(b)));
            p.bandwidth = Some(number(name, parse_decimal(rate))?);
            p.burst = burst.map_or(Ok(0), |b| ranged("burst", b, 1, BURST_MAX.into()))? as u32;
        }
        "fq-rate" => p.fqrate = number(name, parse_decimal(text))?,
        "pacing-timer" => drop(number(name, parse_binary(text))?),
        "tos" => p.tos = tos::parse_tos(text).ok_or_else(|| format!("--tos {text}: must be 0 to 255"))?,
        "dscp" => {
            p.tos =
                tos::parse_dscp(text).ok_or_else(|| format!("--dscp {text}: must be 0 to 63 or a name"))?;
        }
        "zerocopy" => p.zerocopy = true,
        "skip-rx-copy" => p.skip_rx_copy = true,
        "mptcp" => p.mptcp = true,
        "gsro" => (p.offload.gso, p.offload.gro) = (true, true),
        "gso" => p.offload.gso = true,
        "gro" => p.offload.gro = true,
        "title" => p.title = Some(text.into()),
        "extra-data" => p.extra_data = Some(text.into()),
        "get-server-output" => p.server_output = true,
        "udp-counters-64bit" => p.counters_64bit = true,
        "repeating-payload" => p.repeating_payload = true,
        "dont-fragment" => p.dont_fragment = true,
        "sctp" | "xbind" | "nstreams" => return Err(not_offered(name, "(SCTP)")),
        "flowlabel" => return Err(not_offered(name, "(IPv6 flow labels)")),
        _ => return Ok(false),
    }
    Ok(true)
}

/// Options of output, on either side.
fn output(output: &mut Output, name: &str, text: &str) -> Result<(), String> {
    match name {
        "json" => output.json = true,
        "json-stream" => output.json_stream = true,
        "json-stream-full-output" => (output.json_stream, output.json_stream_full) = (true, true),
        "verbose" => output.verbose = true,
        "format" => {
            let letter = text.chars().next().and_then(RateFormat::from_letter);
            output.rate = letter.ok_or_else(|| format!("--format {text}: must be one of kmgtKMGT"))?;
        }
        "logfile" => output.logfile = Some(text.into()),
        "pidfile" => output.pidfile = Some(text.into()),
        "timestamps" => {
            output.timestamps = Some(if text.is_empty() { "%c ".into() } else { text.into() });
        }
        "linerate-json" => output.record = Some(text.into()),
        "debug" => return Err(not_offered(name, "")),
        "forceflush" | "server" => {} // Each line is written at once anyway.
        other => return Err(format!("option --{other} cannot be used here")),
    }
    Ok(())
}

/// What depends on several options.
fn finish(options: &mut ClientOptions, found: &[Found]) -> Result<(), String> {
    let has = |name: &str| found.iter().any(|(n, _)| *n == name);
    let p = &mut options.params;
    if p.reverse && p.bidir {
        return Err("cannot be both reverse and bidirectional".into());
    }
    let ends = [has("time"), has("bytes"), has("blockcount")];
    if ends.iter().filter(|&&e| e).count() > 1 {
        return Err("only one test end condition (-t, -n, -k) may be specified".into());
    }
    let file_ends = has("file") && !p.reverse && !has("time");
    if has("bytes") || has("blockcount") || file_ends {
        p.time_s = 0;
    }
    let udp = p.transport == Transport::Udp;
    let most = if udp { UDP_LEN_MAX } else { TCP_LEN_MAX };
    let least = if udp { 16 } else { 1 };
    if let Some(len) = options.len.filter(|l| !(least..=most).contains(l)) {
        return Err(format!("--length {len}: must be {least} to {most}"));
    }
    if has("file") && (udp || p.bidir) {
        return Err("--file cannot be used with UDP or --bidir".into());
    }
    if udp && p.zerocopy {
        return Err("--zerocopy cannot be used with UDP".into());
    }
    if !udp && (p.offload.gso || p.offload.gro) {
        return Err("--gsro, --gso and --gro need UDP".into());
    }
    if p.mptcp && udp {
        return Err("--mptcp cannot be used with UDP".into());
    }
    if udp && p.bandwidth.is_none() {
        p.bandwidth = Some(1 << 20);
    }
    Ok(())
}

fn host(options: &mut ClientOptions, text: &str) {
    match text.split_once('%') {
        // The device of a link-local address is part of the address; of a name it is where packets leave.
        Some((name, device)) if !name.contains(':') => {
            options.host = name.into();
            options.source.device = Some(device.into());
        }
        _ => options.host = text.into(),
    }
}

fn not_offered(name: &str, where_: &str) -> String {
    format!("option --{name} is not offered {where_}").trim_end().to_owned()
}

fn number(name: &str, parsed: Option<u64>) -> Result<u64, String> {
    parsed.ok_or_else(|| format!("--{name}: not a number, or an unknown suffix"))
}

fn ranged(name: &str, text: &str, least: u64, most: u64) -> Result<u64, String> {
    let value: Option<u64> = text.parse().ok();
    value
        .filter(|v| (least..=most).contains(v))
        .ok_or_else(|| format!("--{name} {text}: must be {least} to {most}"))
}

fn at_most(name: &str, value: u64, most: u32) -> Result<u32, String> {
    u32::try_from(value)
        .ok()
        .filter(|v| *v <= most)
        .ok_or_else(|| format!("--{name} {value}: at most {most}"))
}

fn interval(text: &str) -> Result<f64, String> {
    let value: Option<f64> = text.parse().ok();
    value
        .filter(|v| *v == 0.0 || (0.1..=60.0).contains(v))
        .ok_or_else(|| format!("--interval {text}: must be 0 or 0.1 to 60"))
}

fn address(text: &str) -> Result<IpAddr, String> {
    text.parse().map_err(|_| format!("--bind {text}: not an IP address"))
}

fn cpu(text: &str) -> Result<u32, String> {
    ranged("affinity", text, 0, 1024).map(|n| n as u32)
}

fn milliseconds(name: &str, text: &str) -> Result<Duration, String> {
    ranged(name, text, 100, 86_400_000).map(Duration::from_millis)
}

fn networks(text: &str) -> Result<Vec<ipnet::IpNet>, String> {
    text.split(',').map(|n| n.parse().map_err(|e| format!("--allow {n}: {e}"))).collect()
}

fn rate_limit(text: &str) -> Result<(u64, u32), String> {
    let (rate, seconds) = text.split_once('/').map_or((text, None), |(r, s)| (r, Some(s)));
    let seconds = seconds.map_or(Ok(5), |s| ranged("server-bitrate-limit", s, 1, 1000))?;
    Ok((number("server-bitrate-limit", parse_decimal(rate))?, seconds as u32))
}

/// `idle/interval/count`, each may be left out.
fn keepalive(text: &str) -> Result<KeepAlive, String> {
    let mut parts = text.split('/');
    let mut part = |default: u64| match parts.next() {
        None | Some("") => Ok(default),
        Some(text) => ranged("cntl-ka", text, 1, 32767),
    };
    let (idle, interval, probes) = (part(10)?, part(1)?, part(3)?);
    if idle <= interval * probes {
        return Err(format!("--cntl-ka {text}: the idle time must exceed interval times count"));
    }
    Ok(KeepAlive {
        idle: Duration::from_secs(idle),
        interval: Duration::from_secs(interval),
        probes: probes as u32,
    })
}

#[cfg(test)]
#[path = "options_tests.rs"]
mod tests;
