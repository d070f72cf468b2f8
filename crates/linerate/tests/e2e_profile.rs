//! `linerate run --profile`: uperf profiles as workloads, with CPU, latency and verdicts.

use std::fs;
use std::path::PathBuf;
use std::time::Duration;

use linerate_model::Record;
use linerate_model::workload::WorkloadKind;
use linerate_testkit::{ChildGuard, Finished, Program, Wire, need, run_within};

const LIMIT: Duration = Duration::from_secs(50);

const PING: &str = r#"<profile name="ping">
  <group nthreads="2">
    <transaction iterations="1"><flowop type="connect" options="remotehost=$h protocol=tcp tcp_nodelay"/></transaction>
    <transaction duration="1s"><flowop type="write" options="size=90"/><flowop type="read" options="size=900"/></transaction>
    <transaction iterations="1"><flowop type="disconnect"/></transaction>
  </group>
</profile>"#;

/// Two groups at once: the peer connects and bulk flows to it; datagrams of random sizes are thought about and answered.
const MIX: &str = r#"<profile name="mix">
  <group nthreads="1">
    <transaction iterations="1"><flowop type="accept" options="remotehost=$h protocol=tcp wndsz=200k"/></transaction>
    <transaction duration="1s"><flowop type="write" options="size=64k count=10"/></transaction>
  </group>
  <group nthreads="1">
    <transaction iterations="1"><flowop type="connect" options="remotehost=$h protocol=udp"/></transaction>
    <transaction duration="1s" rate="200">
      <flowop type="write" options="size=100"/><flowop type="read" options="size=200 timeout=1s"/>
      <flowop type="think" options="duration=500us idle"/>
    </transaction>
  </group>
</profile>"#;

struct Profiles(PathBuf);

impl Profiles {
    fn new(test: &str) -> Self {
        let folder = std::env::temp_dir().join(format!("lr-profile-{test}-{}", std::process::id()));
        fs::create_dir_all(&folder).expect("make a folder");
        for (name, text) in [("ping.xml", PING), ("mix.xml", MIX)] {
            fs::write(folder.join(name), text).expect("write a profile");
        }
        Self(folder)
    }

    fn file(&self, name: &str) -> String {
        self.0.join(name).to_str().expect("UTF-8").to_owned()
    }
}

impl Drop for Profiles {
    fn drop(&mut self) {
        let _gone = fs::remove_dir_all(&self.0);
    }
}

fn program() -> Program {
    Program::new(env!("CARGO_BIN_EXE_linerate"))
}

fn ours(arguments: &[&str]) -> Finished {
    run_within(program().command(arguments), LIMIT).expect_code(0)
}

fn bytes(record: &Record) -> (u64, u64) {
    let [to_peer, to_dut] = record.summary.directions.as_slice() else { panic!("two directions") };
    (to_peer.received_bytes, to_dut.received_bytes)
}

#[test]
fn two_profiles_are_measured_with_cpu_latency_and_link_counters() {
    need!(netns());
    let profiles = Profiles::new("two");
    let wire = Wire::new();
    let (peer, dut) = (format!("netns:{}", wire.right.name()), format!("netns:{}", wire.left.name()));
    let (ping, mix) = (profiles.file("ping.xml"), profiles.file("mix.xml"));
    let records = program().measure(&[&peer, "--dut", &dut, "--profile", &ping, "--profile", &mix]);
    let of = |name: &str| {
        let named = |r: &&Record| r.trial.workload.size_text().starts_with(name);
        records.iter().find(named).unwrap()
    };
    for record in &records {
        assert_eq!((record.trial.workload.kind(), record.trial.streams), (WorkloadKind::Profile, 2));
        let seconds = record.dut.reading.window.duration_ns as f64 / 1e9;
        // Neither connections nor the time between transactions are in the window.
        assert!((0.95..1.35).contains(&seconds), "{seconds}");
        assert!(record.summary.cpu.shared.as_ref().unwrap().busy_ns > 0);
        assert!(
            record.summary.cpu.dut_threads_percent > 0.0 && record.summary.cpu.peer_threads_percent > 0.0
        );
        assert!(record.dut.reading.streams.iter().all(|s| s.error.is_none()));
        let latency = record.summary.latency.as_ref().unwrap();
        assert_eq!(Some(latency.count), record.summary.transactions);
        assert!(latency.p50_ns > 0 && latency.p50_ns <= latency.p99_ns && latency.p99_ns <= latency.max_ns);
        let (sent, _) = bytes(record);
        let link = record.dut.reading.meter.link.as_ref().unwrap();
        assert!(link.counters.tx_bytes as f64 > sent as f64 * 0.98, "{} of {sent}", link.counters.tx_bytes);
    }
    let ping = of("ping#");
    let transactions = ping.summary.transactions.unwrap();
    assert!(transactions > 100);
    assert!(bytes(ping).0.abs_diff(90 * transactions) <= 180, "{:?} {transactions}", bytes(ping));
    assert_eq!(bytes(ping).1, 900 * transactions);
    let mix = of("mix#");
    let paced = &mix.dut.reading.streams[1];
    assert!((150..=201).contains(&paced.transactions), "{}", paced.transactions);
    // The last may be answered and not be over: it thinks about it.
    assert!(paced.received.bytes.abs_diff(200 * paced.transactions) <= 200, "{paced:?}");
    let bulk = &mix.dut.reading.streams[0];
    assert!(bulk.sent.bytes > 1_000_000 && bulk.received.bytes == 0);
    let at_peer = mix.peer.reading.streams[0].received.bytes;
    let ratio = at_peer as f64 / bulk.sent.bytes as f64;
    assert!((0.95..=1.0).contains(&ratio), "{at_peer} of {}", bulk.sent.bytes);
}

#[test]
fn runs_of_a_profile_are_stored_and_judged() {
    need!(netns());
    let profiles = Profiles::new("judged");
    let (ping, db) = (profiles.file("ping.xml"), profiles.file("history.db"));
    for tag in ["base", "new"] {
        ours(&["run", "--quiet", "--profile", &ping, "--repeat", "3", "--db", &db, "--tag", tag]);
    }
    let verdict = ours(&["compare", "base", "new", "--margin", "90%", "--db", &db]);
    for figure in ["transactions", "cpu-demand", "p99"] {
        assert!(verdict.stdout.contains(figure), "{}", verdict.stdout);
    }
    let shown = ours(&["show", "last", "--db", &db]);
    assert!(shown.stdout.contains("ping#"), "{}", shown.stdout);
    let listed = ours(&["history", "--workload", "profile", "--db", &db]);
    assert!(listed.stdout.contains("profile"), "{}", listed.stdout);
    let ab = ours(&[
        "ab",
        "--quiet",
        "--profile",
        &ping,
        "--set",
        "dut.tso=on,off",
        "--budget",
        "12s",
        "--db",
        &db,
    ]);
    assert!(ab.stdout.contains("transactions"), "{}", ab.stdout);
}

#[test]
fn a_server_is_the_peer_of_a_profile_and_mistakes_are_told() {
    need!(netns(), tool("ss"));
    let profiles = Profiles::new("server");
    let ping = profiles.file("ping.xml");
    let wire = Wire::new();
    let mut serve = wire.right.command(env!("CARGO_BIN_EXE_linerate"));
    serve.args(["serve", "--only", "linerate"]);
    let mut server = ChildGuard::spawn(serve);
    server.wait_for_text("serving", Duration::from_secs(10));
    let mut run = wire.left.command(env!("CARGO_BIN_EXE_linerate"));
    let peer = format!("tcp:{}", wire.right_ipv4());
    run.args(["run", &peer, "--profile", &ping, "--json", "--quiet", "--no-store"]);
    let records = linerate_report::parse_json(&run_within(run, LIMIT).expect_code(0).stdout).unwrap();
    assert!(records[0].summary.transactions.unwrap() > 100);

    let bad = profiles.file("bad.xml");
    fs::write(&bad, PING.replace("type=\"read\"", "type=\"reed\"")).unwrap();
    let refused = run_within(program().command(&["run", "--profile", &bad]), LIMIT).expect_code(2);
    assert!(
        refused.stderr.contains("line 4, column") && refused.stderr.contains("reed"),
        "{}",
        refused.stderr
    );
    for option in ["--bytes=1M", "--pin=dut=0", "--size=1K"] {
        run_within(program().command(&["run", "--profile", &ping, option]), LIMIT).expect_code(2);
    }
    run_within(program().command(&["run", "-w", "profile"]), LIMIT).expect_code(2);
}
