//! `--linerate-json`: what a stand-in measured beside a real server is a record as any other, which `show`, `import` and
//! `compare` take.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use linerate_model::Record;
use linerate_model::hazard::HazardKind;
use linerate_model::reading::Knowledge;
use linerate_model::trial::Side;
use linerate_model::workload::WorkloadKind;
use linerate_testkit::{ChildGuard, Finished, Netns, Wire, need, run_within};

const LIMIT: Duration = Duration::from_secs(25);

/// A folder that goes with the test.
struct Folder(PathBuf);

impl Folder {
    fn new(name: &str) -> Self {
        let path = std::env::temp_dir().join(format!("lr-records-{name}-{}", std::process::id()));
        fs::create_dir_all(&path).expect("make a folder");
        Self(path)
    }

    fn file(&self, name: &str) -> String {
        self.0.join(name).to_str().expect("UTF-8").to_owned()
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _gone = fs::remove_dir_all(&self.0);
    }
}

fn ours(netns: &Netns, arguments: &str) -> Command {
    let mut command = netns.command(env!("CARGO_BIN_EXE_linerate"));
    command.args(arguments.split_whitespace());
    command
}

fn run(netns: &Netns, arguments: &str) -> Finished {
    run_within(ours(netns, arguments), LIMIT).expect_code(0)
}

fn theirs(netns: &Netns, arguments: &str, port: u16) -> ChildGuard {
    let mut words = arguments.split_whitespace();
    let mut command = netns.command(words.next().expect("a program"));
    command.args(words);
    let server = ChildGuard::spawn(command);
    await_port(netns, port);
    server
}

fn await_port(netns: &Netns, port: u16) {
    for _ in 0..200 {
        let mut ss = netns.command("ss");
        ss.args(["-tln", "sport", "=", &port.to_string(), "-H"]);
        if !run_within(ss, LIMIT).stdout.is_empty() {
            return;
        }
        std::thread::sleep(Duration::from_millis(20));
    }
    panic!("nothing listens on {port}");
}

fn records(path: &str) -> Vec<Record> {
    linerate_report::parse_json(&fs::read_to_string(Path::new(path)).expect("read the file"))
        .expect("records")
}

/// What holds of every record of a client whose server is another program.
fn check_told(record: &Record, tool: &str) {
    let stand_in = record.stand_in.as_ref().expect("a stand-in");
    assert_eq!((stand_in.tool.as_str(), stand_in.command[0].as_str()), (tool, tool));
    assert_eq!(record.dut.reading.knowledge, Knowledge::Measured);
    assert_eq!(record.peer.reading.knowledge, Knowledge::Told);
    assert!(record.peer.environment.kernel.is_empty() && !record.dut.environment.kernel.is_empty());
    assert!(record.dut.environment.link.is_some() && record.dut.reading.meter.cpu.total.busy_ns > 0);
    assert!(record.hazards.iter().any(|h| h.kind == HazardKind::ForeignEnd && h.side == Some(Side::Peer)));
    assert!(record.summary.cpu.dut.is_some());
}

/// The sender's link carried the payload that the receiver got, and little more, in the same window.
fn check_link(record: &Record, sent: bool) {
    let link = record.dut.reading.meter.link.as_ref().expect("a link");
    let bytes = if sent { link.counters.tx_bytes } else { link.counters.rx_bytes };
    let ratio = bytes as f64 / record.summary.goodput_bytes as f64;
    assert!((0.97..1.10).contains(&ratio), "link {bytes}, goodput {}", record.summary.goodput_bytes);
}

#[test]
fn iperf3_tests_gather_as_trials_of_one_run() {
    need!(netns(), tool("iperf3"), tool("ss"));
    let wire = Wire::new();
    let _server = theirs(&wire.right, "iperf3 -s", 5201);
    let folder = Folder::new("iperf3");
    let (base, new) = (folder.file("base.json"), folder.file("new.json"));
    let to = format!("iperf3 -c {}", wire.right_ipv4());
    for file in [&base, &base, &base, &new, &new, &new] {
        run(&wire.left, &format!("{to} -t 1 --linerate-json {file}"));
    }
    let found = records(&base);
    assert_eq!(found.len(), 3);
    assert_eq!(
        found.iter().map(|r| (r.sequence, r.trial.repeat)).collect::<Vec<_>>(),
        [(0, 0), (1, 1), (2, 2)]
    );
    for record in &found {
        check_told(record, "iperf3");
        check_link(record, true);
        assert_eq!(record.run, found[0].run);
        assert_eq!(record.trial.workload.kind(), WorkloadKind::TcpStream);
        assert!(record.summary.cpu.peer.is_none() && record.summary.cpu.peer_threads_percent > 0.0);
        assert!(record.summary.retransmits.is_some());
    }
    let shown = run(&wire.left, &format!("show {base}"));
    assert!(shown.stdout.contains("tcp-stream") && shown.stdout.contains("foreign-end"), "{}", shown.stdout);
    let verdict = run(&wire.left, &format!("compare {base} {new} --margin 90%"));
    assert!(verdict.stdout.contains("goodput"), "{}", verdict.stdout);
    let db = folder.file("history.db");
    let imported = run(&wire.left, &format!("import {base} --db {db}"));
    assert!(imported.stdout.contains("1 new runs with 3 trials"), "{}", imported.stdout);
    let again = run(&wire.left, &format!("import {base} --db {db}"));
    assert!(again.stdout.contains("3 trials were there already"), "{}", again.stdout);
    let shown = run(&wire.left, &format!("show last --db {db}"));
    assert!(shown.stdout.contains("iperf3 -c"), "{}", shown.stdout);
}

#[test]
fn iperf3_directions_and_datagrams_are_told_apart() {
    need!(netns(), tool("iperf3"), tool("ss"));
    let wire = Wire::new();
    let _server = theirs(&wire.right, "iperf3 -s", 5201);
    let folder = Folder::new("directions");
    let file = folder.file("all.json");
    let to = format!("iperf3 -c {} -t 1 --linerate-json {file}", wire.right_ipv4());
    for options in ["-R", "--bidir", "-u -b 50M", "-u -b 50M -R", "-u -b 20M --bidir", "-P 3 -O 1"] {
        run(&wire.left, &format!("{to} {options}"));
    }
    let found = records(&file);
    let kinds: Vec<_> = found.iter().map(|r| r.trial.workload.kind().name()).collect();
    let udp = "udp-stream";
    assert_eq!(kinds, ["tcp-reverse", "tcp-bidir", udp, udp, udp, udp, "tcp-stream"]);
    check_link(&found[0], false);
    assert_eq!(found[1].summary.directions.len(), 2);
    // Datagrams go from the dut: with -R that is the server.
    assert_eq!(found[2].dut.reading.knowledge, Knowledge::Measured);
    assert_eq!(found[3].dut.reading.knowledge, Knowledge::Told);
    for record in &found[2..6] {
        let loss = record.summary.loss.as_ref().unwrap();
        assert!(loss.sent > 1000 && loss.lost_percent < 50.0 && loss.jitter_ns.is_some(), "{loss:?}");
    }
    let last = &found[6];
    assert_eq!((last.trial.streams, last.trial.warmup_ns), (3, 1_000_000_000));
    assert_eq!(last.dut.reading.streams.len(), 3);
    check_link(last, true);
}

#[test]
fn a_server_keeps_what_it_saw_of_real_clients() {
    need!(netns(), tool("iperf3"), tool("ss"));
    let wire = Wire::new();
    let folder = Folder::new("server");
    let file = folder.file("server.json");
    let server = ChildGuard::spawn(ours(&wire.right, &format!("iperf3 -s --linerate-json {file}")));
    await_port(&wire.right, 5201);
    let mut client = wire.left.command("iperf3");
    client.args(["-c", &wire.right_ipv4().to_string(), "-t", "1"]);
    run_within(client, LIMIT).expect_code(0);
    for _ in 0..100 {
        if Path::new(&file).is_file() {
            break;
        }
        std::thread::sleep(Duration::from_millis(50));
    }
    drop(server);
    let found = records(&file);
    let stand_in = found[0].stand_in.as_ref().unwrap();
    assert_eq!(stand_in.side, Side::Peer);
    assert_eq!(found[0].dut.reading.knowledge, Knowledge::Untold);
    assert!(found[0].peer.reading.meter.cpu.total.busy_ns > 0);
    assert!(found[0].summary.goodput_bits_per_second > 1e6);
}

#[test]
fn netperf_tests_have_records_with_the_servers_own_cpu() {
    need!(netns(), tool("netperf"), tool("netserver"), tool("ss"));
    let wire = Wire::new();
    let _server = theirs(&wire.right, "netserver -D", 12865);
    let folder = Folder::new("netperf");
    let file = folder.file("all.json");
    let to = format!("netperf -H {} -l 1 --linerate-json {file}", wire.right_ipv4());
    for options in
        ["-c -C", "-t TCP_MAERTS", "-t TCP_RR", "-t TCP_CRR", "-t UDP_RR", "-t UDP_STREAM -- -m 1000 -R 1"]
    {
        run(&wire.left, &format!("{to} {options}"));
    }
    let found = records(&file);
    let kinds: Vec<_> = found.iter().map(|r| r.trial.workload.kind().name()).collect();
    assert_eq!(kinds, ["tcp-stream", "tcp-reverse", "tcp-rr", "tcp-crr", "udp-rr", "udp-stream"]);
    for record in &found {
        check_told(record, "netperf");
    }
    let cpu = found[0].summary.cpu.peer.as_ref().unwrap();
    assert!(cpu.busy_percent > 0.0 && found[1].summary.cpu.peer.is_none());
    check_link(&found[0], true);
    check_link(&found[1], false);
    for record in &found[2..5] {
        assert!(record.summary.transactions_per_second.unwrap() > 10.0);
        assert!(record.summary.latency.as_ref().unwrap().p99_ns > 0);
    }
    assert!(found[5].summary.loss.as_ref().unwrap().sent > 1000);
    run(&wire.left, &format!("show {file}"));
    run(&wire.left, &format!("import {file} --db {}", folder.file("history.db")));
}

#[test]
fn iterations_of_netperf_are_repeats() {
    need!(netns(), tool("netserver"), tool("ss"));
    let wire = Wire::new();
    let _server = theirs(&wire.right, "netserver -D", 12865);
    let folder = Folder::new("iterations");
    let file = folder.file("all.json");
    let to = wire.right_ipv4();
    run(&wire.left, &format!("netperf -H {to} -l 1 -i 3,3 --linerate-json {file}"));
    assert_eq!(records(&file).iter().map(|r| r.trial.repeat).collect::<Vec<_>>(), [0, 1, 2]);
}

#[test]
fn ttcp_and_uperf_runs_have_records_too() {
    need!(netns(), tool("ss"));
    let wire = Wire::new();
    let folder = Folder::new("ttcp");
    let (sent, received) = (folder.file("sent.json"), folder.file("received.json"));
    let receiver = ChildGuard::spawn(ours(&wire.right, &format!("ttcp -r -s --linerate-json {received}")));
    await_port(&wire.right, 5001);
    let to = wire.right_ipv4();
    run(&wire.left, &format!("ttcp -t -s -n 20000 --linerate-json {sent} {to}"));
    receiver.wait_within(LIMIT);
    let (near, far) = (records(&sent).remove(0), records(&received).remove(0));
    assert_eq!((near.stand_in.unwrap().side, far.stand_in.unwrap().side), (Side::Dut, Side::Peer));
    assert_eq!(near.summary.goodput_bytes, 20000 * 8192);
    assert_eq!(far.summary.goodput_bytes, 20000 * 8192);
    assert_eq!(near.peer.reading.knowledge, Knowledge::Untold);
    assert!(near.summary.cpu.peer.is_none() && near.summary.cpu.dut.is_some());

    let _slave = ChildGuard::spawn(ours(&wire.right, "uperf -s"));
    await_port(&wire.right, 20000);
    let profile = folder.file("profile.xml");
    let text = format!(
        r#"<profile name="ping"><group nthreads="2">
             <transaction iterations="1"><flowop type="connect" options="remotehost={to} protocol=tcp"/></transaction>
             <transaction duration="1s"><flowop type="write" options="size=90"/><flowop type="read" options="size=90"/>
             </transaction></group></profile>"#
    );
    fs::write(&profile, text).unwrap();
    let file = folder.file("uperf.json");
    run(&wire.left, &format!("uperf -m {profile} --linerate-json {file}"));
    let record = records(&file).remove(0);
    check_told(&record, "uperf");
    assert_eq!((record.trial.workload.kind(), record.trial.streams), (WorkloadKind::Profile, 2));
    let transactions = record.summary.transactions.unwrap();
    assert!(transactions > 100, "{transactions}");
    assert_eq!(record.summary.latency.unwrap().count, transactions);
    let [to_peer, to_dut] = record.summary.directions.as_slice() else { panic!("two directions") };
    assert!(to_peer.received_bytes.abs_diff(90 * transactions) <= 180);
    assert_eq!(to_dut.received_bytes, 90 * transactions);
}
