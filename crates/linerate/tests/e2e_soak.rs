//! A soak: 200 clients of all kinds at one `linerate serve` within a minute, some of them killed in the middle. The others get what
//! they would get alone, and the server holds nothing of any of them afterwards.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::thread;
use std::time::{Duration, Instant};

use linerate_testkit::{ChildGuard, Finished, Netns, Wire, eventually, need, run_within};
use nix::sys::signal::Signal;
use serde_json::Value;

const LIMIT: Duration = Duration::from_secs(30);
const SERVER: &str = "198.18.0.2";
const CLIENTS: usize = 200;
/// All of them start within this time.
const SPAN: Duration = Duration::from_secs(52);
const SEED: u64 = 0x5eed_2026;

/// Memory that the server may have kept at the end: what its allocator does not give back, no leak of 200 clients' buffers.
const KEPT_KIB: u64 = 24 << 10;

/// What one client runs, and what must come of it.
struct Kind {
    /// The real tool's name, or nothing for ours.
    real: Option<&'static str>,
    arguments: &'static str,
    check: fn(&Finished) -> Result<(), String>,
}

/// iperf3 rates are low, so that a busy machine has room for all.
const KINDS: &[Kind] = &[
    Kind { real: Some("iperf3"), arguments: "-c SERVER -J -t 4 -b 2M", check: eight_megabits },
    Kind { real: Some("iperf3"), arguments: "-c SERVER -J -t 4 -b 2M -R -l 8K", check: eight_megabits },
    Kind { real: Some("iperf3"), arguments: "-c SERVER -J -t 4 -b 2M -u -l 1000", check: eight_megabits },
    Kind {
        real: Some("iperf3"),
        arguments: "-c SERVER -J -t 4 -b 1M -P 2 -w 64K -M 1000 -l 8K",
        check: eight_megabits,
    },
    Kind { real: None, arguments: "iperf3 -c SERVER -J -t 4 -b 2M --bidir", check: eight_megabits },
    Kind { real: None, arguments: "iperf3 -c SERVER -J -t 4 -b 2M -u -R -l 1000", check: eight_megabits },
    Kind { real: None, arguments: "iperf3 -c SERVER -J -n 1M -m", check: one_mebibyte },
    Kind { real: Some("netperf"), arguments: "-H SERVER -P 0 -t TCP_RR -l -300", check: transactions },
    Kind { real: Some("netperf"), arguments: "-H SERVER -P 0 -t TCP_RR -l 2", check: transactions },
    Kind { real: Some("netperf"), arguments: "-H SERVER -P 0 -t UDP_RR -l 1", check: transactions },
    Kind { real: None, arguments: "netperf -H SERVER -P 0 -t TCP_STREAM -l -4000000", check: some_rate },
    Kind { real: None, arguments: "netperf -H SERVER -P 0 -t TCP_CRR -l -50", check: transactions },
    Kind { real: None, arguments: "uperf -m PROFILE", check: uperf_total },
    Kind { real: None, arguments: "ttcp -t -s -n 512 -l 8192 SERVER", check: four_mebibytes },
    Kind { real: None, arguments: "run tcp:SERVER -w tcp-rr -t 1 --warmup 0.1 -q", check: is_done },
    Kind {
        real: None,
        arguments: "run tcp:SERVER -w udp-stream --rate 2M -t 2 --warmup 0.1 -q",
        check: is_done,
    },
];

fn is_done(_: &Finished) -> Result<(), String> {
    Ok(())
}

fn received(finished: &Finished) -> Result<f64, String> {
    let result: Value = serde_json::from_str(&finished.stdout).map_err(|e| e.to_string())?;
    if let Some(error) = result.pointer("/error") {
        return Err(error.to_string());
    }
    let bytes = result.pointer("/end/sum_received/bytes").and_then(Value::as_f64);
    bytes.ok_or_else(|| "no bytes".to_owned())
}

/// Four seconds of 2 Mbit/s. A block more or less is at most 128 KiB.
fn eight_megabits(finished: &Finished) -> Result<(), String> {
    let bytes = received(finished)?;
    let fits = (600_000.0..1_300_000.0).contains(&bytes);
    fits.then_some(()).ok_or_else(|| format!("{bytes} bytes received, about 1000000 expected"))
}

fn one_mebibyte(finished: &Finished) -> Result<(), String> {
    let bytes = received(finished)?;
    (bytes == 1_048_576.0).then_some(()).ok_or_else(|| format!("{bytes} bytes received"))
}

fn four_mebibytes(finished: &Finished) -> Result<(), String> {
    let fits = finished.stdout.contains("ttcp-t: 4194304 bytes");
    fits.then_some(()).ok_or_else(|| "not all bytes".to_owned())
}

/// The column of a netperf table that is a rate.
fn column(finished: &Finished, index: usize) -> Result<(), String> {
    let rate = finished.stdout.split_whitespace().nth(index).and_then(|word| word.parse::<f64>().ok());
    rate.filter(|&rate| rate > 1.0).map(|_| ()).ok_or_else(|| "no rate".to_owned())
}

fn transactions(finished: &Finished) -> Result<(), String> {
    column(finished, 5)
}

fn some_rate(finished: &Finished) -> Result<(), String> {
    column(finished, 4)
}

fn uperf_total(finished: &Finished) -> Result<(), String> {
    let fits = finished.stdout.lines().any(|line| line.starts_with("Total "));
    fits.then_some(()).ok_or_else(|| "no total".to_owned())
}

const PROFILE: &str = r#"<?xml version="1.0"?>
<profile name="Soak">
  <group nthreads="2">
    <transaction iterations="1">
      <flowop type="connect" options="remotehost=198.18.0.2 protocol=tcp"/>
    </transaction>
    <transaction iterations="200">
      <flowop type="write" options="size=1000"/>
      <flowop type="read" options="size=100"/>
      <flowop type="think" options="idle duration=5ms"/>
    </transaction>
    <transaction iterations="1">
      <flowop type="disconnect"/>
    </transaction>
  </group>
</profile>
"#;

/// A file that goes with the test.
struct Profile(PathBuf);

impl Profile {
    fn new() -> Self {
        let path = std::env::temp_dir().join(format!("lr-soak-{}.xml", std::process::id()));
        fs::write(&path, PROFILE).expect("write the profile");
        Self(path)
    }
}

impl Drop for Profile {
    fn drop(&mut self) {
        // It is only a leftover.
        let _removed = fs::remove_file(&self.0);
    }
}

fn command(netns: &Netns, kind: &Kind, profile: &Path) -> Command {
    let arguments =
        kind.arguments.replace("SERVER", SERVER).replace("PROFILE", &profile.display().to_string());
    let mut command = netns.command(kind.real.unwrap_or(env!("CARGO_BIN_EXE_linerate")));
    command.args(arguments.split_whitespace());
    command
}

/// What the server holds: descriptors, threads, and its own memory in KiB.
#[derive(Debug, Clone, Copy)]
struct Held {
    descriptors: usize,
    threads: usize,
    memory_kib: u64,
}

fn held(server: &ChildGuard) -> Held {
    // The command runs under `ip netns exec`, which becomes it.
    let folder = format!("/proc/{}", server.pid());
    let count = |name: &str| fs::read_dir(format!("{folder}/{name}")).expect("a running server").count();
    let status = fs::read_to_string(format!("{folder}/status")).expect("a running server");
    let anonymous = status.lines().find_map(|line| line.strip_prefix("RssAnon:")).expect("RssAnon");
    let memory_kib = anonymous.split_whitespace().next().and_then(|n| n.parse().ok()).expect("KiB");
    Held { descriptors: count("fd"), threads: count("task"), memory_kib }
}

/// The same order on each run.
struct Dice(u64);

impl Dice {
    fn below(&mut self, limit: u64) -> u64 {
        // xorshift64
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % limit
    }
}

struct Client {
    number: usize,
    kind: &'static Kind,
    child: ChildGuard,
    /// When it is killed, if it is.
    killed_at: Option<Instant>,
}

/// One in five is killed, up to two seconds after its start.
fn start(wire: &Wire, number: usize, kind: &'static Kind, profile: &Path, dice: &mut Dice) -> Client {
    let doomed = dice.below(5) == 0;
    let age = Duration::from_millis(300 + dice.below(1700));
    Client {
        number,
        kind,
        child: ChildGuard::spawn(command(&wire.left, kind, profile)),
        killed_at: doomed.then(|| Instant::now() + age),
    }
}

/// Takes those out that are over: the killed ones, and the others with what is wrong with their results.
fn reap(clients: &mut Vec<Client>, harm: &mut Vec<String>, killed: &mut usize) {
    let now = Instant::now();
    let is_over =
        |client: &mut Client| client.killed_at.is_some_and(|at| at <= now) || !client.child.is_running();
    for client in clients.extract_if(.., is_over) {
        if client.killed_at.is_some_and(|at| at <= now) {
            client.child.signal_group(Signal::SIGKILL);
            *killed += 1;
            continue;
        }
        let finished = client.child.wait_within(LIMIT);
        let found =
            if finished.code() == 0 { (client.kind.check)(&finished) } else { Err("failed".to_owned()) };
        if let Err(what) = found {
            let Client { number, kind, .. } = client;
            let name = kind.real.unwrap_or("linerate");
            harm.push(format!("client {number}, {name} {}: {what}\n{}", kind.arguments, finished.output()));
        }
    }
}

#[test]
fn two_hundred_clients_of_all_kinds_and_killed_ones_leave_no_trace_and_harm_nobody() {
    need!(netns(), tool("iperf3"), tool("netperf"));
    let wire = Wire::new();
    let profile = Profile::new();
    let mut serve = wire.right.command(env!("CARGO_BIN_EXE_linerate"));
    serve.args(["serve", "--max-clients", "300"]);
    let mut server = ChildGuard::spawn(serve);
    for protocol in ["linerate", "netperf", "uperf", "ttcp", "iperf3"] {
        server.wait_for_text(&format!("protocol=\"{protocol}\""), LIMIT);
    }
    // What first clients make it open for good is not counted against the later ones.
    let warm: Vec<_> =
        KINDS.iter().map(|kind| ChildGuard::spawn(command(&wire.left, kind, &profile.0))).collect();
    for (child, kind) in warm.into_iter().zip(KINDS) {
        let finished = child.wait_within(LIMIT).expect_code(0);
        (kind.check)(&finished).unwrap_or_else(|what| panic!("{}: {what}", kind.arguments));
    }
    thread::sleep(Duration::from_secs(4));
    let before = held(&server);

    let mut dice = Dice(SEED);
    let (mut clients, mut harm, mut killed) = (Vec::new(), Vec::new(), 0);
    let begin = Instant::now();
    for number in 0..CLIENTS {
        let due = begin + SPAN * number as u32 / CLIENTS as u32;
        while Instant::now() < due {
            reap(&mut clients, &mut harm, &mut killed);
            thread::sleep(Duration::from_millis(10));
        }
        let kind = &KINDS[dice.below(KINDS.len() as u64) as usize];
        clients.push(start(&wire, number, kind, &profile.0, &mut dice));
    }
    let last = Instant::now() + LIMIT;
    while !clients.is_empty() {
        assert!(Instant::now() < last, "{} clients do not end", clients.len());
        reap(&mut clients, &mut harm, &mut killed);
        thread::sleep(Duration::from_millis(10));
    }
    assert!(
        harm.is_empty(),
        "seed {SEED:#x}: {} of {CLIENTS} clients harmed:\n{}",
        harm.len(),
        harm.join("\n")
    );
    assert!((10..80).contains(&killed), "{killed} killed");
    assert!(server.is_running());
    let after = eventually(Duration::from_secs(15), "the server to let go of everything", || {
        let now = held(&server);
        (now.descriptors <= before.descriptors && now.threads <= before.threads).then_some(now)
    });
    assert!(after.memory_kib < before.memory_kib + KEPT_KIB, "{before:?} before, {after:?} after");
    // It serves on.
    for kind in [&KINDS[0], &KINDS[8], &KINDS[13]] {
        run_within(command(&wire.left, kind, &profile.0), LIMIT).expect_code(0);
    }
    server.signal(Signal::SIGTERM);
    server.wait_within(LIMIT).expect_code(0);
}
