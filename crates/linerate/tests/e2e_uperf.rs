//! `linerate uperf` as master and slave between two namespaces.

use std::fs;
use std::process::Command;
use std::thread;
use std::time::Duration;

use linerate_testkit::{ChildGuard, Netns, Wire, need, run_within};
use nix::sys::signal::Signal;

const LIMIT: Duration = Duration::from_secs(25);

const PROFILE: &str = r#"<?xml version="1.0"?>
<profile name="Stream">
  <group nthreads="2">
    <transaction iterations="1">
      <flowop type="connect" options="remotehost=$h protocol=$proto"/>
    </transaction>
    <transaction duration="1s">
      <flowop type="write" options="count=10 size=1400"/>
    </transaction>
    <transaction iterations="1">
      <flowop type="disconnect"/>
    </transaction>
  </group>
</profile>
"#;

fn uperf(netns: &Netns, arguments: &[&str]) -> Command {
    let mut command = netns.command(env!("CARGO_BIN_EXE_linerate"));
    command.arg("uperf").args(arguments);
    command
}

fn wait_for_slave(netns: &Netns) {
    for _ in 0..100 {
        let mut ss = netns.command("ss");
        ss.args(["-tlnH", "sport", "=", "20000"]);
        if !run_within(ss, LIMIT).stdout.is_empty() {
            return;
        }
        thread::sleep(Duration::from_millis(30));
    }
    panic!("no slave listens");
}

#[test]
fn a_stream_crosses_the_link_and_its_lines_are_uperfs() {
    need!(netns(), tool("ss"));
    let wire = Wire::new();
    let path = std::env::temp_dir().join(format!("linerate-uperf-{}.xml", std::process::id()));
    fs::write(&path, PROFILE).expect("write the profile");
    let file = path.to_str().expect("a path in UTF-8");
    let slave = ChildGuard::spawn(uperf(&wire.right, &["-s"]));
    wait_for_slave(&wire.right);
    let before = wire.right.link_counter(Wire::RIGHT_LINK, "rx_bytes");
    let mut master = uperf(&wire.left, &["-m", file, "-a", "-i", "200ms"]);
    master.env("h", "198.18.0.2").env("proto", "tcp");
    let finished = run_within(master, LIMIT).expect_code(0);
    let on_link = wire.right.link_counter(Wire::RIGHT_LINK, "rx_bytes") - before;

    let mut raw = uperf(&wire.left, &["-m", file, "-R"]);
    raw.env("h", "198.18.0.2").env("proto", "tcp");
    let lines = run_within(raw, LIMIT).expect_code(0).stdout;
    fs::remove_file(&path).expect("remove the profile");
    slave.signal_group(Signal::SIGTERM);
    slave.wait_within(LIMIT).expect_code(0);

    for part in [
        "Starting 2 threads running profile:stream ...",
        "Txn2 ",
        "Group Details",
        "Run Statistics",
        "198.18.0.2",
    ] {
        assert!(finished.stdout.contains(part), "{part}\n{}", finished.stdout);
    }
    let total = lines.lines().find(|line| line.contains("name:Total")).expect("a raw total");
    assert!(lines.starts_with("Starting") && total.starts_with("timestamp_ms:"), "{total}");
    assert!(on_link > 10_000_000, "{on_link}");
}

/// Payload of the raw `Total` line of a run, both ways.
fn total_bytes(lines: &str) -> u64 {
    let total = lines.lines().find(|line| line.contains("name:Total")).expect("a raw total");
    let bytes = total.split_whitespace().find_map(|word| word.strip_prefix("nr_bytes:")).expect("its bytes");
    bytes.parse().expect("a number")
}

#[test]
fn bytes_agree_with_the_link_within_two_percent_for_threads_and_processes() {
    need!(netns(), tool("ss"));
    let wire = Wire::new();
    let path = std::env::temp_dir().join(format!("linerate-uperf-link-{}.xml", std::process::id()));
    let file = path.to_str().expect("a path in UTF-8");
    let _slave = ChildGuard::spawn(uperf(&wire.right, &["-s"]));
    wait_for_slave(&wire.right);
    // Offloads make frames of up to 64 KB, each with one header: the link's packets tell how many.
    for (proto, strands, header) in [("tcp", "nthreads", 66), ("tcp", "nprocs", 66), ("udp", "nthreads", 42)]
    {
        fs::write(&path, PROFILE.replace("nthreads", strands)).expect("write the profile");
        let count = |counter| wire.left.link_counter(Wire::LEFT_LINK, counter);
        let before = (count("tx_bytes"), count("tx_packets"));
        let mut master = uperf(&wire.left, &["-m", file, "-R"]);
        master.env("h", "198.18.0.2").env("proto", proto);
        let lines = run_within(master, LIMIT).expect_code(0).stdout;
        let packets = count("tx_packets") - before.1;
        let on_link = (count("tx_bytes") - before.0).saturating_sub(packets * header) as f64;
        let ratio = on_link / total_bytes(&lines) as f64;
        assert!((0.98..1.02).contains(&ratio), "{proto} {strands}: {ratio}\n{lines}");
        let kind = if strands == "nprocs" { "2 processes" } else { "2 threads" };
        assert!(lines.contains(&format!("Starting {kind} running profile:stream")), "{lines}");
    }
    fs::remove_file(&path).expect("remove the profile");
}

#[test]
fn a_refused_master_and_a_bad_profile_end_with_1() {
    need!(netns());
    let wire = Wire::new();
    let path = std::env::temp_dir().join(format!("linerate-uperf-bad-{}.xml", std::process::id()));
    fs::write(&path, PROFILE).expect("write the profile");
    let file = path.to_str().expect("a path in UTF-8");
    let mut master = uperf(&wire.left, &["-m", file]);
    master.env("h", "198.18.0.2").env("proto", "tcp");
    let refused = run_within(master, LIMIT).expect_code(1);
    assert!(refused.stdout.contains("Error connecting to 198.18.0.2"), "{}", refused.stdout);
    let unset = run_within(uperf(&wire.left, &["-m", file]), LIMIT).expect_code(1);
    fs::remove_file(&path).expect("remove the profile");
    assert!(unset.stderr.contains("line 5, column 30"), "{}", unset.stderr);
    assert!(unset.stdout.contains("Error parsing"), "{}", unset.stdout);
}

/// The slave's part of a read is to send.
const DOWNLOAD: &str = r#"<?xml version="1.0"?>
<profile name="download">
  <group nthreads="2">
    <transaction iterations="1"><flowop type="connect" options="remotehost=$h protocol=tcp"/></transaction>
    <transaction duration="3s"><flowop type="read" options="size=16k"/></transaction>
    <transaction iterations="1"><flowop type="disconnect"/></transaction>
  </group>
</profile>"#;

#[test]
fn a_server_sends_a_master_no_more_than_its_rate() {
    need!(netns(), tool("ss"));
    let wire = Wire::new();
    let path = std::env::temp_dir().join(format!("linerate-uperf-rate-{}.xml", std::process::id()));
    let file = path.to_str().expect("a path in UTF-8");
    fs::write(&path, DOWNLOAD).expect("write the profile");
    let mut server = wire.right.command(env!("CARGO_BIN_EXE_linerate"));
    server.args(["serve", "--only", "uperf", "--max-rate", "8M"]);
    let _server = ChildGuard::spawn(server);
    wait_for_slave(&wire.right);
    let mut master = uperf(&wire.left, &["-m", file, "-R"]);
    master.env("h", "198.18.0.2");
    let lines = run_within(master, LIMIT).expect_code(0).stdout;
    fs::remove_file(&path).expect("remove the profile");
    let bits_per_second = total_bytes(&lines) as f64 * 8.0 / 3.0;
    assert!((4e6..10e6).contains(&bits_per_second), "{bits_per_second}\n{lines}");
}
