//! `linerate ttcp` between two namespaces: with itself, with plain sockets' peers, and with iperf (2).

use std::fs;
use std::process::{Command, Stdio};
use std::thread;
use std::time::Duration;

use linerate_testkit::{ChildGuard, Finished, Netns, Wire, need, run_within};

const LIMIT: Duration = Duration::from_secs(20);
const PORT: &str = "5001";

fn ttcp(netns: &Netns, arguments: &str) -> Command {
    let mut command = netns.command(env!("CARGO_BIN_EXE_linerate"));
    command.arg("ttcp").args(arguments.split_whitespace());
    command
}

/// Starts a receiver in the right namespace, and a transmitter to it in the left one once it listens.
fn transfer(wire: &Wire, receive: &str, transmit: &str) -> (Finished, Finished) {
    let receiver = ChildGuard::spawn(ttcp(&wire.right, receive));
    wait_for_port(&wire.right, receive.contains("-u"));
    let sent = run_within(ttcp(&wire.left, transmit), LIMIT).expect_code(0);
    (sent, receiver.wait_within(LIMIT).expect_code(0))
}

fn wait_for_port(netns: &Netns, udp: bool) {
    for _ in 0..100 {
        let mut ss = netns.command("ss");
        ss.args([if udp { "-uln" } else { "-tln" }, "sport", "=", PORT, "-H"]);
        if !run_within(ss, LIMIT).stdout.is_empty() {
            return;
        }
        thread::sleep(Duration::from_millis(30));
    }
    panic!("nothing listens on {PORT}");
}

fn bytes(finished: &Finished) -> u64 {
    let line = finished.stdout.lines().find(|line| line.ends_with("+++")).expect("a result line");
    line.split(' ').nth(1).and_then(|word| word.parse().ok()).expect("bytes")
}

#[test]
fn tcp_bytes_agree_with_the_link_and_lines_have_ttcps_layout() {
    need!(netns(), tool("ss"));
    let wire = Wire::new();
    let before = wire.right.link_counter(Wire::RIGHT_LINK, "rx_bytes");
    let (sent, received) = transfer(&wire, "-r -s", "-t -s -n 4096 -l 65536 198.18.0.2");
    let on_link = wire.right.link_counter(Wire::RIGHT_LINK, "rx_bytes") - before;
    assert_eq!(bytes(&sent), 4096 * 65536);
    assert_eq!(bytes(&received), 4096 * 65536);
    let ratio = on_link as f64 / bytes(&received) as f64;
    assert!((1.0..1.05).contains(&ratio), "{ratio}");
    let lines: Vec<_> = sent.stdout.lines().collect();
    assert_eq!(lines[0], "ttcp-t: buflen=65536, nbuf=4096, align=16384/0, port=5001  tcp  -> 198.18.0.2");
    // What Microsoft's LIS reads: the second line of stdout, third token from its end.
    let words: Vec<_> = lines[1].split(' ').collect();
    assert!(words[words.len() - 3].parse::<f64>().is_ok(), "{}", lines[1]);
    assert!(lines[1].ends_with("KB/sec +++"));
    assert!(lines[2].contains("I/O calls, msec/call = "));
    assert!(lines[3].contains("maxrss "));
    assert_eq!(lines.len(), 4);
    assert_eq!(sent.stderr, "ttcp-t: socket\nttcp-t: connect\n");
    assert_eq!(received.stderr, "ttcp-r: socket\nttcp-r: accept from 198.18.0.1\n");
}

#[test]
fn udp_counts_calls_as_ttcp_does() {
    need!(netns(), tool("ss"));
    let wire = Wire::new();
    let (sent, received) =
        transfer(&wire, "-r -s -u -b 4000000", "-t -s -u -n 1000 -l 1000 -w 20 198.18.0.2");
    assert_eq!(bytes(&sent), 1_000_000);
    assert_eq!(bytes(&received), 1_000_000);
    assert!(sent.stdout.contains("1006 I/O calls"), "{}", sent.stdout);
    assert!(received.stdout.contains("1002 I/O calls"), "{}", received.stdout);
}

#[test]
fn piped_data_arrives_whole_and_alone() {
    need!(netns(), tool("ss"));
    let wire = Wire::new();
    let path = std::env::temp_dir().join(format!("linerate-ttcp-{}", std::process::id()));
    let payload: Vec<u8> = (0..1_000_003u32).map(|i| b'a' + (i % 23) as u8).collect();
    fs::write(&path, &payload).unwrap();
    for flags in ["-r", "-r -B -l 4096"] {
        let receiver = ChildGuard::spawn(ttcp(&wire.right, flags));
        wait_for_port(&wire.right, false);
        let mut transmitter = ttcp(&wire.left, "-t 198.18.0.2");
        transmitter.stdin(Stdio::from(fs::File::open(&path).unwrap()));
        let sent = ChildGuard::spawn_with_stdin(transmitter).wait_within(LIMIT).expect_code(0);
        let received = receiver.wait_within(LIMIT).expect_code(0);
        assert_eq!(bytes(&sent), payload.len() as u64);
        assert!(received.stdout.as_bytes() == payload, "stdout is the payload and nothing else");
        assert!(received.stderr.contains("1000003 bytes in"), "{}", received.stderr);
    }
    fs::remove_file(&path).unwrap();
}

#[test]
fn udp_piped_data_ends_by_itself_and_has_no_markers() {
    need!(netns(), tool("ss"));
    let wire = Wire::new();
    let receiver = ChildGuard::spawn(ttcp(&wire.right, "-r -u"));
    wait_for_port(&wire.right, true);
    let path = std::env::temp_dir().join(format!("linerate-ttcp-udp-{}", std::process::id()));
    fs::write(&path, "0123456789".repeat(1000)).unwrap();
    let mut transmitter = ttcp(&wire.left, "-t -u -l 1000 198.18.0.2");
    transmitter.stdin(Stdio::from(fs::File::open(&path).unwrap()));
    ChildGuard::spawn_with_stdin(transmitter).wait_within(LIMIT).expect_code(0);
    fs::remove_file(&path).unwrap();
    assert_eq!(receiver.wait_within(LIMIT).expect_code(0).stdout, "0123456789".repeat(1000));
}

#[test]
fn the_receiver_may_connect_and_ipv6_works() {
    need!(netns(), tool("ss"));
    let wire = Wire::new();
    let transmitter = ChildGuard::spawn(ttcp(&wire.right, "-t -s -S -6"));
    wait_for_port(&wire.right, false);
    let received = run_within(ttcp(&wire.left, "-r -s -C fd00:18::2"), LIMIT).expect_code(0);
    assert_eq!(bytes(&transmitter.wait_within(LIMIT).expect_code(0)), 16_777_216);
    assert_eq!(bytes(&received), 16_777_216);
}

#[test]
fn iperf_2_sends_to_the_receiver() {
    need!(netns(), tool("ss"), tool("iperf"));
    let wire = Wire::new();
    let receiver = ChildGuard::spawn(ttcp(&wire.right, "-r -s"));
    wait_for_port(&wire.right, false);
    let mut iperf = wire.left.command("iperf");
    iperf.args(["-c", "198.18.0.2", "-p", PORT, "-n", "50M"]);
    run_within(iperf, LIMIT).expect_code(0);
    assert!(bytes(&receiver.wait_within(LIMIT).expect_code(0)) >= 50 << 20);
}

#[test]
fn the_transmitter_sends_to_iperf_2() {
    need!(netns(), tool("ss"), tool("iperf"));
    let wire = Wire::new();
    let mut iperf = wire.right.command("iperf");
    iperf.args(["-s", "-p", PORT, "-f", "K", "-P", "1"]);
    let mut iperf = ChildGuard::spawn(iperf);
    wait_for_port(&wire.right, false);
    // Blanks are no iperf header flag, so that the payload is payload to it.
    let sent = run_within(ttcp(&wire.left, "-t -s -n 6400"), LIMIT);
    assert_eq!(sent.code(), 1, "no host");
    let sent = run_within(ttcp(&wire.left, "-t -s -n 6400 198.18.0.2"), LIMIT).expect_code(0);
    assert_eq!(bytes(&sent), 6400 * 8192);
    iperf.wait_for_text("Bytes/sec", LIMIT);
}

#[test]
fn failures_end_as_ttcps_do() {
    need!(netns());
    let wire = Wire::new();
    let refused = run_within(ttcp(&wire.left, "-t -s 198.18.0.2"), LIMIT).expect_code(1);
    assert_eq!(refused.stderr, "ttcp-t: socket\nttcp-t: connect: Connection refused\nerrno=111\n");
    assert!(run_within(ttcp(&wire.left, "-t -z x"), LIMIT).expect_code(1).stderr.contains("Usage: ttcp"));
    assert!(run_within(ttcp(&wire.left, ""), LIMIT).expect_code(1).stderr.starts_with("Usage: ttcp"));
}
