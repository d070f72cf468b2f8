//! What goes wrong: each fault has an exit code and a message with node, operation and cause, an end in time, and leaves nothing.

#![expect(clippy::unwrap_used, reason = "helpers of tests; the lint knows only test functions")]

use std::io::{Read, Write};
use std::net::{TcpListener, UdpSocket};
use std::process::Command;
use std::time::{Duration, Instant};

use linerate_model::hazard::HazardKind;
use linerate_testkit::{
    ChildGuard, Finished, LeakCheck, Netns, Program, Relay, Wire, eventually, free_tcp_port, need, records,
    run_within,
};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

const LIMIT: Duration = Duration::from_secs(30);
const QUICK: [&str; 6] = ["-w", "tcp-rr", "-t", "0.2", "--warmup", "0"];

fn linerate() -> Program {
    Program::new(env!("CARGO_BIN_EXE_linerate"))
}

/// Starts a run from the left end of a wire to the right one.
fn start(wire: &Wire, options: &str) -> ChildGuard {
    let (dut, peer) = (wire.left.node(), wire.right.node());
    let words = ["run", &peer, "--dut", &dut].into_iter().chain(options.split_whitespace());
    ChildGuard::spawn(linerate().command(&words.collect::<Vec<_>>()))
}

/// Starts a run, waits until its traffic flows, and gives the agents of the dut and the peer.
fn start_flowing(wire: &Wire, options: &str) -> (ChildGuard, u32, u32) {
    let before = wire.left.link_counter(Wire::LEFT_LINK, "tx_packets");
    let child = start(wire, options);
    let [dut, peer] = [&wire.left, &wire.right].map(|netns| agent_in(child.pid(), netns.name()));
    eventually(LIMIT, "traffic", || {
        (wire.left.link_counter(Wire::LEFT_LINK, "tx_packets") > before + 100).then_some(())
    });
    (child, dut, peer)
}

/// The agent that a controller starts in a namespace.
fn agent_in(controller: u32, netns: &str) -> u32 {
    let list = format!("/proc/{controller}/task/{controller}/children");
    let in_netns = |pid: &&str| {
        // Between fork and exec it still has the controller's words, in which both names are.
        std::fs::read_to_string(format!("/proc/{pid}/cmdline"))
            .is_ok_and(|words| words.contains("--stdio") && words.contains(netns))
    };
    eventually(LIMIT, &format!("an agent in {netns}"), || {
        let children = std::fs::read_to_string(&list).ok()?;
        children.split_whitespace().find(in_netns)?.parse().ok()
    })
}

fn signal(pid: u32, signal: Signal) {
    kill(Pid::from_raw(pid.cast_signed()), signal).unwrap();
}

#[track_caller]
fn assert_says(finished: &Finished, words: &[&str]) {
    for word in words {
        assert!(finished.stderr.contains(word), "no {word:?} in\n{}", finished.output());
    }
}

#[test]
fn an_agent_killed_in_the_middle_is_named() {
    need!(netns());
    let leaks = LeakCheck::start();
    let wire = Wire::new();
    for (workload, kill_peer) in
        [("tcp-stream", true), ("tcp-stream", false), ("udp-stream", true), ("tcp-rr", true)]
    {
        let (child, dut, peer) = start_flowing(&wire, &format!("-w {workload} -t 20"));
        let (victim, node) = if kill_peer { (peer, wire.right.node()) } else { (dut, wire.left.node()) };
        signal(victim, Signal::SIGKILL);
        let finished = child.wait_within(Duration::from_secs(10)).expect_code(3);
        assert_says(&finished, &[&node, "run the traffic"]);
    }
    drop(wire);
    leaks.assert_none();
}

#[test]
fn a_link_that_goes_down_in_the_middle_is_named() {
    need!(netns());
    let leaks = LeakCheck::start();
    for workload in ["tcp-stream", "tcp-rr", "udp-stream"] {
        let wire = Wire::new();
        let (child, ..) = start_flowing(&wire, &format!("-w {workload} -t 20"));
        wire.right.ip(&["link", "set", Wire::RIGHT_LINK, "down"]);
        let finished = child.wait_within(LIMIT).expect_code(3);
        assert_says(&finished, &["node netns:lr-t", "run the traffic", "lr-"]);
    }
    leaks.assert_none();
}

/// A `linerate serve` on loopback with a relay before it.
fn relayed_server() -> (ChildGuard, Relay, String) {
    let port = free_tcp_port();
    let text = port.to_string();
    let options = ["serve", "--bind", "127.0.0.1", "--only", "linerate", "--port", &text];
    let mut server = ChildGuard::spawn(linerate().command(&options));
    server.wait_for_text("serving", LIMIT);
    let relay = Relay::start(("127.0.0.1", port));
    let node = format!("tcp:127.0.0.1:{}", relay.port());
    (server, relay, node)
}

#[test]
fn a_control_connection_that_is_cut_or_falls_silent_ends_the_run() {
    let leaks = LeakCheck::start();
    let (mut server, relay, node) = relayed_server();
    let run = |time: &str| {
        ChildGuard::spawn(linerate().command(&[
            "run",
            &node,
            "-w",
            "tcp-stream",
            "-t",
            time,
            "--rate",
            "10m",
        ]))
    };
    let child = run("20");
    eventually(LIMIT, "the start of the traffic", || contains(&relay.seen(), b"traffic_start_ns"));
    std::thread::sleep(Duration::from_millis(500));
    relay.cut();
    let finished = child.wait_within(Duration::from_secs(5)).expect_code(3);
    assert_says(&finished, &[&node, "run the traffic", "connection"]);

    let seen = relay.seen().len();
    let child = run("1");
    eventually(LIMIT, "the start of the traffic", || contains(&relay.seen()[seen..], b"traffic_start_ns"));
    relay.fall_silent();
    let finished = child.wait_within(LIMIT).expect_code(3);
    assert_says(&finished, &[&node, "no answer"]);
    assert!(server.is_running());
    drop(server);
    leaks.assert_none();
}

fn contains(bytes: &[u8], part: &[u8]) -> Option<()> {
    bytes.windows(part.len()).any(|window| window == part).then_some(())
}

#[test]
fn another_version_of_the_protocol_is_told_with_both_versions() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let node = format!("tcp:127.0.0.1:{}", listener.local_addr().unwrap().port());
    let server = std::thread::spawn(move || {
        let (mut client, _) = listener.accept().unwrap();
        let hello =
            br#"{"reply":"hello","with":{"protocol":4711,"version":"9.8.7","nonce":"00","secret_needed":false}}"#;
        client.write_all(&u32::try_from(hello.len()).unwrap().to_be_bytes()).unwrap();
        client.write_all(hello).unwrap();
        let _ = client.read_to_end(&mut Vec::new());
    });
    let finished = linerate().run(&[&["run", &node], &QUICK[..]].concat()).expect_code(3);
    assert_says(&finished, &[&node, "greet its agent", "9.8.7", "4711", env!("CARGO_PKG_VERSION")]);
    server.join().unwrap();
}

#[test]
fn something_else_that_listens_is_no_server() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let node = format!("tcp:127.0.0.1:{}", listener.local_addr().unwrap().port());
    let server = std::thread::spawn(move || {
        for answer in [b"SSH-2.0-OpenSSH_9.2\r\n".as_slice(), b"HTTP/1.1 400 Bad Request\r\n\r\n", b""] {
            let (mut client, _) = listener.accept().unwrap();
            client.write_all(answer).unwrap();
        }
    });
    for _ in 0..3 {
        let finished = linerate().run(&[&["run", &node], &QUICK[..]].concat()).expect_code(3);
        assert_says(&finished, &[&node, "greet its agent"]);
        assert!(finished.elapsed < Duration::from_secs(5), "{:?}", finished.elapsed);
    }
    server.join().unwrap();
}

#[test]
fn a_refused_port_a_firewall_and_a_missing_route_are_told_apart() {
    need!(netns());
    let leaks = LeakCheck::start();
    let wire = Wire::new();
    let run = |node: &str| {
        let mut command = wire.left.command(env!("CARGO_BIN_EXE_linerate"));
        command.args(["run", node]).args(QUICK);
        run_within(command, LIMIT).expect_code(3)
    };
    let refused = run("tcp:198.18.0.2:5999");
    assert_says(&refused, &["tcp:198.18.0.2:5999", "connect", "refused", "linerate serve"]);
    // A neighbour that takes packets and never answers is what a firewall looks like.
    let silent = ["neigh", "add", "198.18.0.77", "lladdr", "02:00:00:00:00:77", "dev", Wire::LEFT_LINK];
    wire.left.ip(&[&silent[..], &["nud", "permanent"]].concat());
    let dropped = run("tcp:198.18.0.77");
    assert_says(&dropped, &["tcp:198.18.0.77", "connect", "no answer within 10 s", "firewall"]);
    assert!(dropped.elapsed >= Duration::from_secs(9) && dropped.elapsed < Duration::from_secs(15));
    let unrouted = run("tcp:203.0.113.5");
    assert_says(&unrouted, &["tcp:203.0.113.5", "connect", "unreachable"]);
    assert!(unrouted.elapsed < Duration::from_secs(3), "{:?}", unrouted.elapsed);
    let unknown = run("tcp:no-such-host.invalid");
    assert_says(&unknown, &["no-such-host.invalid", "look up"]);
    drop(wire);
    leaks.assert_none();
}

#[test]
fn nodes_without_a_way_between_them_are_told_so() {
    need!(netns());
    let (one, other) = (Netns::new("one"), Netns::new("other"));
    let finished =
        linerate().run(&[&["run", &other.node(), "--dut", &one.node()], &QUICK[..]].concat()).expect_code(3);
    assert_says(&finished, &[&other.node(), "IPv4"]);
    let missing = linerate().run(&[&["run", "netns:lr-not-there"], &QUICK[..]].concat()).expect_code(3);
    assert_says(&missing, &["netns:lr-not-there", "no such namespace"]);
}

#[test]
fn a_signal_in_the_middle_keeps_and_shows_what_was_measured() {
    need!(netns());
    let leaks = LeakCheck::start();
    let wire = Wire::new();
    for (kind, workload) in
        [(Signal::SIGINT, "tcp-stream"), (Signal::SIGTERM, "tcp-rr"), (Signal::SIGINT, "udp-stream")]
    {
        // A seed with which the order is the one written.
        let options = format!("-w tcp-crr,{workload} --seed 7 -t 1.5 --warmup 0.1");
        let (child, ..) = start_flowing(&wire, &options);
        std::thread::sleep(Duration::from_millis(2600));
        child.signal(kind);
        let finished = child.wait_within(Duration::from_secs(5)).expect_code(5);
        for word in ["tcp-crr", workload, "interrupted"] {
            assert!(finished.stdout.contains(word), "no {word:?} in\n{}", finished.output());
        }
    }
    // As a terminal does it: the whole group gets it.
    let (child, ..) = start_flowing(&wire, "-w tcp-stream -t 20 --json");
    std::thread::sleep(Duration::from_millis(1200));
    child.signal_group(Signal::SIGINT);
    let finished = child.wait_within(Duration::from_secs(5)).expect_code(5);
    let record = records(&finished.stdout).remove(0);
    assert!(record.summary.goodput_bytes > 0);
    assert!(record.hazards.iter().any(|h| h.kind == HazardKind::Interrupted));
    drop(wire);
    leaks.assert_none();
}

#[test]
fn a_signal_ends_the_private_lab_too() {
    need!(netns());
    let leaks = LeakCheck::start();
    for delay_ms in [30, 100, 250, 600] {
        let child = ChildGuard::spawn(linerate().command(&["run", "-w", "tcp-stream", "-t", "20"]));
        std::thread::sleep(Duration::from_millis(delay_ms));
        child.signal(Signal::SIGTERM);
        let finished = child.wait_within(Duration::from_secs(10));
        // Before the handler is there, the signal ends the process by itself.
        assert!(finished.status.code().is_none_or(|code| code == 5), "{}", finished.output());
    }
    linerate().run(&[&["run"], &QUICK[..]].concat()).expect_code(0);
    leaks.assert_none();
}

#[test]
fn a_second_interrupt_ends_at_once() {
    need!(netns());
    let leaks = LeakCheck::start();
    let wire = Wire::new();
    let (child, dut, peer) = start_flowing(&wire, "-w tcp-stream -t 20");
    // Agents that stand still can't stop in order.
    signal(dut, Signal::SIGSTOP);
    signal(peer, Signal::SIGSTOP);
    child.signal(Signal::SIGINT);
    // One that comes within a second counts as the same.
    std::thread::sleep(Duration::from_millis(1500));
    let second = Instant::now();
    child.signal(Signal::SIGINT);
    child.wait_within(Duration::from_secs(5)).expect_code(5);
    assert!(second.elapsed() < Duration::from_secs(1), "{:?}", second.elapsed());
    for agent in [dut, peer] {
        let _ = kill(Pid::from_raw(agent.cast_signed()), Signal::SIGCONT);
    }
    drop(wire);
    leaks.assert_none();
}

#[test]
fn strangers_at_the_data_port_do_not_disturb_a_run() {
    need!(netns(), tool("ss"), tool("bash"));
    let wire = Wire::new();
    let (child, ..) = start_flowing(&wire, "-w tcp-stream -t 2 --json -q");
    let mut list = wire.right.command("ss");
    list.args(["-ltnH"]);
    let listening = run_within(list, LIMIT).expect_code(0).stdout;
    let port: u16 = listening
        .lines()
        .find_map(|line| line.split_whitespace().nth(3)?.strip_prefix("198.18.0.2:")?.parse().ok())
        .unwrap_or_else(|| panic!("no data port in {listening}"));
    for script in [
        format!("exec 3<>/dev/tcp/198.18.0.2/{port}; head -c 300 /dev/urandom >&3"),
        format!("exec 3<>/dev/tcp/198.18.0.2/{port}; printf x >&3; sleep 0.2"),
        format!("for i in 1 2 3 4 5; do exec 3<>/dev/tcp/198.18.0.2/{port}; done"),
    ] {
        let mut stranger = wire.left.command("bash");
        stranger.args(["-c", &script]);
        run_within(stranger, LIMIT);
    }
    let record = records(&child.wait_within(LIMIT).expect_code(0).stdout).remove(0);
    assert!(record.summary.goodput_bits_per_second > 1e6);
    assert!(record.peer.reading.strays >= 6, "{} strays", record.peer.reading.strays);
    assert!(record.hazards.iter().any(|h| h.kind == HazardKind::Strays));
}

#[test]
fn a_server_sends_no_datagram_to_whom_has_not_proved_itself() {
    need!(tool("ss"));
    let (server, _relay, node) = relayed_server();
    let child = ChildGuard::spawn(linerate().command(&[
        "run",
        &node,
        "-w",
        "udp-rr,udp-stream",
        "-t",
        "1.5",
        "--rate",
        "1k",
    ]));
    let stranger = UdpSocket::bind("127.0.0.1:0").unwrap();
    stranger.set_read_timeout(Some(Duration::from_millis(50))).unwrap();
    let (mut asked, own) = (0, format!("pid={},", server.pid()));
    while asked < 200 {
        let mut list = Command::new("ss");
        list.args(["-uanpH"]);
        let sockets = run_within(list, LIMIT).expect_code(0).stdout;
        for line in sockets.lines().filter(|line| line.contains(&own)) {
            let Some(port) = line.split_whitespace().nth(3).and_then(|a| a.rsplit(':').next()) else {
                continue;
            };
            for length in [0, 1, 16, 32, 48, 64, 1400] {
                let bytes: Vec<u8> = (0..length).map(|i| (i * 37 + asked) as u8).collect();
                let _ = stranger.send_to(&bytes, format!("127.0.0.1:{port}"));
                asked += 1;
            }
        }
        assert!(stranger.recv_from(&mut [0; 2048]).is_err(), "the server answered a stranger");
        std::thread::sleep(Duration::from_millis(20));
    }
    child.wait_within(LIMIT).expect_code(0);
}

#[test]
fn nonsense_is_refused_before_any_traffic_with_what_would_be_right() {
    need!(netns());
    let leaks = LeakCheck::start();
    let wire = Wire::new();
    let before = wire.left.link_counter(Wire::LEFT_LINK, "tx_bytes");
    for (options, right) in [
        ("-w tcp-stream --size 0", "1 to"),
        ("-w udp-stream --size 65508", "65507"),
        ("-w udp-stream --size 15", "16 to"),
        ("-w udp-rr --request 65508", "65507"),
        ("-w tcp-stream --size 1X", "K, M, G"),
        ("-w tcp-stream --size 4K,...,1K", "..."),
        ("-w tcp-stream --streams 0", "1 to"),
        ("-w tcp-stream -t 0", "seconds"),
        ("-w tcp-stream --time=-1", "seconds"),
        ("-w tcp-stream --interval 0", "seconds"),
        ("-w tcp-stream --bytes 0", "1 to"),
        ("-w tcp-rr --transactions 0", "1 to"),
        ("-w tcp-rr --bytes 1M", "--transactions"),
        ("-w tcp-rr --in-flight 0", "1 to"),
        ("-w tcp-rr --size 64", "--request"),
        ("-w tcp-stream --rate 0", "above 0"),
        ("-w tcp-stream --rate 5krps", "bits or pps"),
        ("-w tcp-stream --mss 5", "88 to"),
        ("-w tcp-stream --tos 256", "255"),
        ("-w tcp-stream --send teleport", "sendfile"),
        ("-w udp-stream --send sendfile", "TCP"),
        ("-w tcp-stream --socket-buffer 10", "1024 to"),
        ("-w tcp-stream --one-connection", "tcp-bidir"),
        ("-w tcp-stream --family 5", "4, 6"),
        ("-w tcp-streem", "tcp-stream, tcp-reverse"),
        ("-w tcp-stream --congestion warp", "cubic"),
        ("-w tcp-stream --congestion cubic,warp", "cubic"),
        ("-w tcp-stream --pin dut=4095", "[0"),
        ("-w tcp-stream --pin both=0", "dut="),
        ("-w tcp-stream --repeat 0", "1"),
    ] {
        let finished = start(&wire, options).wait_within(LIMIT);
        assert_eq!(finished.code(), 2, "{options}\n{}", finished.output());
        assert!(finished.stderr.contains(right), "{options}: no {right:?} in\n{}", finished.stderr);
        assert!(finished.stdout.trim().is_empty(), "{options}\n{}", finished.stdout);
    }
    let sent = wire.left.link_counter(Wire::LEFT_LINK, "tx_bytes") - before;
    assert!(sent < 20_000, "{sent} bytes were sent");
    drop(wire);
    leaks.assert_none();
}

#[test]
fn a_wrong_link_is_a_clear_error() {
    need!(netns());
    let wire = Wire::new();
    for (netns, link) in [(&wire.left, "lr-idle"), (&wire.right, "lr-idle")] {
        netns.ip(&["link", "add", link, "type", "ifb"]);
    }
    let (dut, peer) = (wire.left.node(), wire.right.node());
    for (options, words) in [
        ("--link lr-nope", vec![dut.as_str(), "lr-nope", Wire::LEFT_LINK]),
        ("--peer-link lr-nope", vec![peer.as_str(), "lr-nope", Wire::RIGHT_LINK]),
        ("--link lr-idle", vec![dut.as_str(), "lr-idle", "down"]),
        ("--peer-link lr-idle", vec![peer.as_str(), "lr-idle", "down"]),
        ("--link lo", vec![dut.as_str(), "not over lo"]),
    ] {
        let finished = start(&wire, &format!("-w tcp-rr -t 0.2 {options}")).wait_within(LIMIT);
        assert_eq!(finished.code(), 3, "{options}\n{}", finished.output());
        assert_says(&finished, &words);
    }
    let named = format!("-w tcp-rr -t 0.2 --link {} --peer-link {}", Wire::LEFT_LINK, Wire::RIGHT_LINK);
    start(&wire, &named).wait_within(LIMIT).expect_code(0);
}

#[test]
fn a_path_of_one_ip_version_is_used_and_the_other_is_said_to_be_missing() {
    need!(netns());
    for (flushed, left, version) in [("-4", "6", "IPv4"), ("-6", "4", "IPv6")] {
        let wire = Wire::new();
        for (netns, link) in [(&wire.left, Wire::LEFT_LINK), (&wire.right, Wire::RIGHT_LINK)] {
            netns.ip(&[flushed, "address", "flush", "dev", link]);
        }
        let finished = start(&wire, "-w tcp-rr -t 0.2 --json").wait_within(LIMIT).expect_code(0);
        let remote = records(&finished.stdout).remove(0).dut.reading.streams[0].remote.unwrap();
        assert_eq!(remote.is_ipv6(), left == "6");
        let missing = if left == "6" { "4" } else { "6" };
        let refused =
            start(&wire, &format!("-w tcp-rr -t 0.2 --family {missing}")).wait_within(LIMIT).expect_code(3);
        assert_says(&refused, &["netns:", version]);
        let both =
            start(&wire, "-t 0.1 --warmup 0 --json -q").wait_within(Duration::from_secs(60)).expect_code(0);
        let records = records(&both.stdout);
        assert_eq!(records.len(), 7);
        assert!(records[0].hazards.iter().any(|h| h.evidence.contains(version)), "{:?}", records[0].hazards);
    }
}
