//! Ours against ours over loopback.

use std::net::TcpListener;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use crate::uperf::master::{MasterOptions, Outcome, RunEvent, run_profile};
use crate::uperf::profile;
use crate::uperf::slave::{Limits, SlaveSummary, serve_connection};
use crate::uperf::wire::Layout;

/// A slave on a port of its own, until dropped.
struct Slave {
    port: u16,
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<Vec<SlaveSummary>>>,
}

impl Slave {
    fn start(limits: Limits) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        listener.set_nonblocking(true).unwrap();
        let stop = Arc::new(AtomicBool::new(false));
        let flag = stop.clone();
        let thread = thread::spawn(move || {
            let mut sessions = Vec::new();
            while !flag.load(Relaxed) {
                let Ok((stream, _)) = listener.accept() else {
                    thread::sleep(Duration::from_millis(2));
                    continue;
                };
                stream.set_nonblocking(false).unwrap();
                let flag = flag.clone();
                sessions.push(thread::spawn(move || serve_connection(&stream, &limits, &flag).unwrap()));
            }
            sessions.into_iter().map(|s| s.join().unwrap()).filter(|s| s.strands > 0).collect()
        });
        Self { port, stop, thread: Some(thread) }
    }

    fn finish(mut self) -> Vec<SlaveSummary> {
        self.stop.store(true, Relaxed);
        self.thread.take().unwrap().join().unwrap()
    }
}

fn options(port: u16, layout: Option<Layout>) -> MasterOptions {
    MasterOptions {
        control_port: port,
        interval: Duration::from_millis(100),
        layout,
        history: None,
        goodbyes: true,
        latencies: true,
    }
}

fn run_in(text: &str, layout: Option<Layout>) -> (Outcome, Vec<SlaveSummary>) {
    let environment = |name: &str| (name == "h").then(|| "127.0.0.1".to_owned());
    let profile = profile::read(text, &environment).unwrap();
    let slave = Slave::start(Limits::default());
    let outcome =
        run_profile(&profile, &options(slave.port, layout), &AtomicBool::new(false), &mut |_| {}).unwrap();
    (outcome, slave.finish())
}

fn run(text: &str) -> (Outcome, Vec<SlaveSummary>) {
    run_in(text, None)
}

/// Both sides counted the same payload, and nobody complained.
fn assert_agree(outcome: &Outcome, slaves: &[SlaveSummary]) {
    assert_eq!(outcome.errors, Vec::<String>::new());
    assert!(!outcome.slave_aborted);
    let told: u64 = outcome.hosts.iter().map(|h| h.goodbye.as_ref().unwrap().bytes).sum();
    assert_eq!(told, outcome.total.bytes);
    assert_eq!(slaves.iter().map(|s| s.bytes).sum::<u64>(), told);
    assert_eq!(slaves.iter().find_map(|s| s.failure.clone()), None);
}

fn group(strands: u32, opening: &str, middle: &str) -> String {
    format!(
        "<group nthreads=\"{strands}\"><transaction><flowop type=\"{opening}\" options=\"remotehost=$h protocol=tcp \
         tcp_nodelay\"/></transaction>{middle}<transaction><flowop type=\"disconnect\"/></transaction></group>"
    )
}

const EXCHANGE: &str = "<transaction iterations=\"50\"><flowop type=\"write\" options=\"size=90 count=3\"/>\
                        <flowop type=\"read\" options=\"size=4k\"/></transaction>";
const STREAM: &str =
    "<transaction duration=\"400m\"><flowop type=\"write\" options=\"size=8k count=10\"/></transaction>";

#[test]
fn operations_are_flowops_and_strands() {
    let (outcome, slaves) = run(&format!("<profile>{}</profile>", group(2, "connect", EXCHANGE)));
    assert_agree(&outcome, &slaves);
    assert_eq!(outcome.total.operations, 2 * (50 * (3 + 1) + 2) + 2);
    assert_eq!(outcome.total.bytes, 2 * 50 * (3 * 90 + 4096));
    assert_eq!(slaves[0].operations, outcome.total.operations);
    let write = outcome.flowops.iter().find(|(name, _)| *name == "write").unwrap().1;
    assert_eq!(write.count, 300);
    assert_eq!(outcome.iterations[1].count, 100);
    assert!(write.min_ns <= write.mean_ns() && write.mean_ns() <= write.max_ns);
}

#[test]
fn every_layout_and_either_opening_works() {
    for layout in Layout::ALL {
        for opening in ["connect", "accept"] {
            let text = format!("<profile>{}</profile>", group(2, opening, EXCHANGE));
            let (outcome, slaves) = run_in(&text, Some(layout));
            assert_agree(&outcome, &slaves);
            assert_eq!(slaves[0].layout, Some(layout), "{opening}");
        }
    }
}

#[test]
fn a_stream_then_an_exchange_over_the_same_connection_then_the_other_way() {
    let back = STREAM.replace("write", "read");
    let text = format!("<profile>{}</profile>", group(3, "accept", &format!("{STREAM}{EXCHANGE}{back}")));
    let (outcome, slaves) = run(&text);
    assert_eq!(outcome.errors, Vec::<String>::new());
    assert_eq!(slaves[0].failure, None);
    assert_eq!(outcome.transactions.len(), 5);
    let [_, stream, exchange, back, _] = outcome.transactions[..] else { panic!() };
    assert_eq!(exchange.total.operations, 3 * 50 * 4);
    assert!(stream.total.bytes > 1 << 20 && back.total.bytes > 1 << 20);
    for timed in [stream, back] {
        assert!((300_000_000..1_500_000_000).contains(&timed.elapsed_ns), "{}", timed.elapsed_ns);
    }
}

#[test]
fn several_groups_with_unlike_last_durations_end() {
    let long = STREAM.replace("400m", "900m");
    let one = |opening: &str, middle: &str| {
        group(2, opening, middle).replace("<transaction><flowop type=\"disconnect\"/></transaction>", "")
    };
    let text = format!(
        "<profile>{}{}{}</profile>",
        one("connect", STREAM),
        one("accept", &long),
        group(1, "connect", EXCHANGE)
    );
    let (outcome, slaves) = run(&text);
    assert_agree(&outcome, &slaves);
    assert_eq!((outcome.hosts.len(), outcome.groups.len(), outcome.strands.len()), (3, 3, 5));
    let sum: u64 = outcome.groups.iter().map(|g| g.total.bytes).sum();
    assert_eq!(sum, outcome.total.bytes, "a group's line is its own");
}

#[test]
fn udp_moves_datagrams_both_ways() {
    for opening in ["connect", "accept"] {
        let text = format!("<profile>{}</profile>", group(2, opening, EXCHANGE))
            .replace("protocol=tcp tcp_nodelay", "protocol=udp")
            .replace("size=90 count=3", "size=90");
        let (outcome, slaves) = run(&text);
        assert_agree(&outcome, &slaves);
        assert_eq!(outcome.total.bytes, 2 * 50 * (90 + 4096));
    }
}

#[test]
fn lost_datagrams_do_not_stall_the_run() {
    // The slave sends fewer than the master waits for: as if the rest were lost.
    let text = format!(
        "<profile>{}</profile>",
        group(
            1,
            "connect",
            "<transaction duration=\"300m\"><flowop type=\"read\" options=\"size=64\"/>\
             <flowop type=\"think\" options=\"idle duration=200m\"/><flowop type=\"read\" options=\"size=64 \
             canfail\"/></transaction>"
        )
    )
    .replace("protocol=tcp tcp_nodelay", "protocol=udp");
    let (outcome, _) = run(&text);
    assert_eq!(outcome.errors, Vec::<String>::new());
}

#[test]
fn random_sizes_and_rates_are_kept() {
    let middle = "<transaction duration=\"500m\" rate=\"50\"><flowop type=\"write\" \
                  options=\"size=rand(100,20k)\"/><flowop type=\"read\" options=\"size=100\"/></transaction>";
    // The far side reads what one call gives of up to 20k.
    let (outcome, slaves) = run(&format!("<profile>{}</profile>", group(1, "connect", middle)));
    assert_eq!(outcome.errors, Vec::<String>::new());
    assert_eq!(slaves[0].failure, None);
    let iterations = outcome.iterations[1].count;
    assert!((20..=27).contains(&iterations), "{iterations} in half a second at 50 a second");
}

#[test]
fn a_failing_flowop_fails_the_run_unless_it_may() {
    let middle = |options: &str| {
        format!("<transaction><flowop type=\"write\" options=\"size=10 conn=7 {options}\"/></transaction>")
    };
    let (outcome, _) = run(&format!("<profile>{}</profile>", group(1, "connect", &middle(""))));
    // Whichever end met it first.
    let told = outcome.hosts[0].goodbye.as_ref().map(|g| g.text.clone()).unwrap_or_default();
    let said = format!("{:?} {told}", outcome.errors);
    assert!(said.contains("No such connection 7"), "{said}");
    assert!(outcome.slave_aborted || !outcome.errors.is_empty());
    let (outcome, _) = run(&format!("<profile>{}</profile>", group(1, "connect", &middle("canfail"))));
    assert_eq!(outcome.errors, Vec::<String>::new());
}

#[test]
fn a_fixed_port_serves_all_threads() {
    let port = linerate_testkit::free_tcp_port().to_string();
    let text = format!("<profile>{}</profile>", group(3, "connect", EXCHANGE))
        .replace("protocol=tcp", &format!("protocol=tcp port={port}"));
    let (outcome, slaves) = run(&text);
    assert_agree(&outcome, &slaves);
}

#[test]
fn two_masters_at_once_do_not_see_each_other() {
    let slave = Slave::start(Limits::default());
    let texts = [group(2, "connect", EXCHANGE), group(3, "accept", STREAM)];
    let outcomes: Vec<Outcome> = thread::scope(|scope| {
        let runs: Vec<_> = texts
            .iter()
            .map(|text| {
                let port = slave.port;
                scope.spawn(move || {
                    let text = format!("<profile>{text}</profile>").replace("$h", "127.0.0.1");
                    let profile = profile::read(&text, &|_| None).unwrap();
                    run_profile(&profile, &options(port, None), &AtomicBool::new(false), &mut |_| {}).unwrap()
                })
            })
            .collect();
        runs.into_iter().map(|r| r.join().unwrap()).collect()
    });
    let mut slaves = slave.finish();
    slaves.sort_by_key(|s| s.strands);
    for (outcome, slave) in outcomes.iter().zip(&slaves) {
        assert_agree(outcome, std::slice::from_ref(slave));
    }
}

#[test]
fn limits_hold() {
    let profile = profile::read(&format!("<profile>{}</profile>", group(3, "connect", STREAM)), &|_| {
        Some("127.0.0.1".into())
    })
    .unwrap();
    let never = AtomicBool::new(false);
    let slave = Slave::start(Limits { most_strands: 2, ..Limits::default() });
    let error = run_profile(&profile, &options(slave.port, None), &never, &mut |_| {}).unwrap_err();
    assert!(error.to_string().contains("threads 3 is more than 2"), "{error}");
    drop(slave.finish());
    let slave = Slave::start(Limits { max_duration: Some(Duration::from_millis(100)), ..Limits::default() });
    let outcome = run_profile(&profile, &options(slave.port, None), &never, &mut |_| {}).unwrap();
    assert!(outcome.slave_aborted || !outcome.errors.is_empty());
    assert!(slave.finish()[0].failure.as_deref().is_some_and(|f| f.contains("longest duration")));
}

#[test]
fn an_interrupt_ends_a_run_and_its_slave() {
    let profile = profile::read(
        &format!("<profile>{}</profile>", group(1, "connect", &STREAM.replace("400m", "30s"))),
        &|_| Some("127.0.0.1".into()),
    )
    .unwrap();
    let slave = Slave::start(Limits::default());
    let stop = AtomicBool::new(false);
    let outcome = run_profile(&profile, &options(slave.port, None), &stop, &mut |event| {
        if matches!(event, RunEvent::Progress(_)) {
            stop.store(true, Relaxed);
        }
    })
    .unwrap();
    assert!(outcome.interrupted);
    assert!(outcome.elapsed_ns < 5_000_000_000);
    assert!(slave.finish()[0].bytes > 0);
}

/// Workloads that this kernel or any Linux can't run, and what is said.
const SKIPPED: [(&str, &str); 8] = [
    ("sctp", "Protocol sctp not supported"),
    ("sctp-over-udp", "Protocol sctp not supported"),
    ("sctp_flowop_test", "Protocol sctp not supported"),
    ("ssl", "Protocol ssl not supported"),
    ("vsock", "Protocol vsock not supported"),
    ("rdstest", "Protocol rds not supported"),
    ("tcp-freebsd-change-stack", "Linux has one TCP stack"),
    ("oraclerac", "Protocol udapl not supported"),
];

/// Reads an example with its times and numbers cut to what a test can bear.
fn example(name: &str) -> Result<crate::uperf::workorder::Profile, String> {
    let path = format!("{}/../../examples/uperf/{name}.xml", env!("CARGO_MANIFEST_DIR"));
    let text = std::fs::read_to_string(&path).unwrap();
    let environment = |variable: &str| {
        let value = match variable {
            "nthr" | "conn" | "nth" => "2",
            "iter" => "5",
            "proto" => "tcp",
            "dur" => "1s",
            "msg_w" | "msg_r" => "1k",
            // One slave may be several hosts: each control connection is its own.
            "h1" => "localhost",
            _ => "127.0.0.1",
        };
        Some(value.to_owned())
    };
    let mut profile = profile::read(&text, &environment).map_err(|e| e.to_string())?;
    for group in &mut profile.groups {
        group.strands = group.strands.min(3);
        for transaction in &mut group.transactions {
            transaction.duration_ns = transaction.duration_ns.min(300_000_000);
            transaction.iterations = transaction.iterations.min(5);
            for flowop in &mut transaction.flowops {
                flowop.duration_ns = flowop.duration_ns.min(10_000_000);
            }
        }
    }
    Ok(profile)
}

#[test]
fn the_examples_run_or_say_why_not() {
    let folder = format!("{}/../../examples/uperf", env!("CARGO_MANIFEST_DIR"));
    let names: Vec<String> = std::fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().path().file_stem().unwrap().to_str().unwrap().to_owned())
        .collect();
    assert_eq!(names.len(), 24);
    for name in names {
        let skipped = SKIPPED.iter().find(|(skipped, _)| *skipped == name).map(|(_, why)| *why);
        let outcome = example(&name).and_then(|profile| {
            let slave = Slave::start(Limits::default());
            let run = run_profile(
                &profile,
                &options(slave.port, Some(Layout::F)),
                &AtomicBool::new(false),
                &mut |_| {},
            );
            drop(slave.finish());
            let outcome = run.map_err(|e| e.to_string())?;
            match outcome.errors.first() {
                Some(error) => Err(error.clone()),
                None if outcome.slave_aborted => Err(format!("{:?}", outcome.hosts)),
                None => Ok(outcome.total),
            }
        });
        match (outcome, skipped) {
            (Ok(total), None) => {
                assert!(total.operations > 0, "{name}");
                assert!(
                    total.bytes > 0 || ["accept", "connect"].contains(&name.as_str()),
                    "{name}: {total:?}"
                );
            }
            (Err(error), Some(why)) => assert!(error.contains(why), "{name}: {error}"),
            (outcome, _) => panic!("{name}: {outcome:?}"),
        }
    }
}
