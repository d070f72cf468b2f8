//! `linerate netperf` and `linerate netserver` between two namespaces: each against netperf 2.7.0, and against each other.

use std::process::Command;
use std::time::Duration;

use linerate_testkit::{ChildGuard, Finished, Netns, Wire, need, run_within};

const LIMIT: Duration = Duration::from_secs(25);

#[derive(Clone, Copy, PartialEq)]
enum Who {
    Ours,
    Theirs,
}

use Who::{Ours, Theirs};

fn command(netns: &Netns, who: Who, tool: &str, arguments: &str) -> Command {
    let mut command = match who {
        Ours => netns.command(env!("CARGO_BIN_EXE_linerate")),
        Theirs => netns.command(tool),
    };
    if who == Ours {
        command.arg(tool);
    }
    command.args(arguments.split_whitespace());
    command
}

fn serve(wire: &Wire, who: Who, arguments: &str) -> ChildGuard {
    let server = ChildGuard::spawn(command(&wire.right, who, "netserver", &format!("-D {arguments}")));
    for _ in 0..200 {
        let mut ss = wire.right.command("ss");
        ss.args(["-tln", "sport", "=", "12865", "-H"]);
        if !run_within(ss, LIMIT).stdout.is_empty() {
            return server;
        }
        std::thread::sleep(Duration::from_millis(20));
    }
    panic!("nothing listens on 12865");
}

fn run(wire: &Wire, who: Who, arguments: &str) -> Finished {
    let arguments = format!("-H {} {arguments}", wire.right_ipv4());
    run_within(command(&wire.left, who, "netperf", &arguments), LIMIT)
}

/// Words of the line of a table that begins with the headers switched off.
fn words(wire: &Wire, who: Who, arguments: &str) -> Vec<String> {
    let found = run(wire, who, &format!("-P 0 -l 1 {arguments}")).expect_code(0);
    found.stdout.split_whitespace().map(str::to_owned).collect()
}

fn number(words: &[String], index: usize) -> f64 {
    words
        .get(index)
        .and_then(|word| word.parse().ok())
        .unwrap_or_else(|| panic!("no number {index} in {words:?}"))
}

/// Every test of the table, with both programs.
fn all_tests(wire: &Wire, client: Who) {
    for test in ["TCP_STREAM", "TCP_MAERTS", "TCP_SENDFILE"] {
        let found = words(wire, client, &format!("-t {test}"));
        assert!(found.len() == 5 && number(&found, 4) > 1.0, "{test}: {found:?}");
    }
    for (test, own) in
        [("TCP_RR", ""), ("TCP_RR", "-- -b 4"), ("TCP_CRR", ""), ("TCP_CC", ""), ("UDP_RR", "")]
    {
        let found = words(wire, client, &format!("-t {test} {own}"));
        assert!(found.len() == 8 && number(&found, 5) > 10.0, "{test}: {found:?}");
    }
    let found = words(wire, client, "-t UDP_STREAM -- -m 1000 -R 1");
    assert!(found.len() == 10 && number(&found, 8) > 10.0, "UDP_STREAM: {found:?}");
    let found = words(wire, client, "-t omni -- -d rr -k TRANSACTION_RATE,RT_LATENCY");
    assert!(found.len() == 2 && found[0].starts_with("TRANSACTION_RATE="), "{found:?}");
    for (test, count) in [
        ("TCP_STREAM", 50_000_000),
        ("TCP_MAERTS", 50_000_000),
        ("TCP_RR", 2000),
        ("TCP_CRR", 300),
        ("UDP_RR", 2000),
    ] {
        let found = words(wire, client, &format!("-t {test} -l -{count}"));
        assert!(found.len() >= 5, "{test}: {found:?}");
    }
}

#[test]
fn netperf_works_against_our_netserver() {
    need!(netns(), tool("ss"), tool("netperf"));
    let wire = Wire::new();
    let _server = serve(&wire, Ours, "");
    all_tests(&wire, Theirs);
}

#[test]
fn our_netperf_works_against_netserver() {
    need!(netns(), tool("ss"), tool("netserver"));
    let wire = Wire::new();
    let _server = serve(&wire, Theirs, "");
    for test in ["TCP_STREAM", "TCP_MAERTS", "TCP_SENDFILE", "TCP_RR", "UDP_RR"] {
        let found = words(&wire, Ours, &format!("-t {test} -c -C"));
        assert!(number(&found, found.len() - 1) > 0.0, "{test}: {found:?}");
    }
    for (test, count) in [("TCP_CRR", 300), ("TCP_CC", 300), ("TCP_RR", 2000), ("UDP_RR", 2000)] {
        let found = words(&wire, Ours, &format!("-t {test} -l -{count}"));
        assert!(found.len() == 8 && number(&found, 5) > 10.0, "{test}: {found:?}");
    }
    let found = words(&wire, Ours, "-t UDP_STREAM -- -m 1000 -R 1");
    assert!(found.len() == 10 && number(&found, 8) > 10.0, "{found:?}");
}

#[test]
fn our_netperf_works_against_our_netserver() {
    need!(netns(), tool("ss"));
    let wire = Wire::new();
    let _server = serve(&wire, Ours, "");
    all_tests(&wire, Ours);
}

#[test]
fn ipv6_carries_every_test_of_real_clients() {
    need!(netns(), tool("ss"), tool("netperf"));
    all_tests_ipv6(Ours, Theirs);
}

#[test]
fn ipv6_carries_every_test_to_real_servers() {
    need!(netns(), tool("ss"), tool("netserver"));
    all_tests_ipv6(Theirs, Ours);
}

fn all_tests_ipv6(server: Who, client: Who) {
    let wire = Wire::new();
    let _serving = serve(&wire, server, "-6");
    let to = format!("-H {} -6", wire.right_ipv6());
    for (test, own) in [
        ("TCP_STREAM", ""),
        ("TCP_MAERTS", ""),
        ("TCP_SENDFILE", ""),
        ("TCP_RR", "-c -C"),
        ("TCP_CRR", ""),
        ("TCP_CC", ""),
        ("UDP_RR", ""),
        ("UDP_STREAM", "-- -m 1000 -R 1"),
    ] {
        let line = format!("{to} -P 0 -l 1 -t {test} {own}");
        let found = run_within(command(&wire.left, client, "netperf", &line), LIMIT).expect_code(0);
        let numbers = found.stdout.split_whitespace().filter_map(|w| w.parse::<f64>().ok());
        assert!(numbers.fold(0.0, f64::max) > 10.0, "{test}: {}", found.stdout);
    }
    let line = format!("{to} -l 1 -t TCP_STREAM");
    let found = run_within(command(&wire.left, client, "netperf", &line), LIMIT).expect_code(0);
    assert!(found.stdout.contains("AF_INET6"), "{}", found.stdout);
}

#[test]
fn a_fill_file_is_what_is_sent() {
    need!(netns(), tool("ss"), tool("netserver"));
    let wire = Wire::new();
    let _server = serve(&wire, Theirs, "");
    let path = std::env::temp_dir().join(format!("lr-fill-{}", std::process::id()));
    std::fs::write(&path, b"what is sent").unwrap();
    let file = path.to_str().unwrap();
    for test in ["TCP_STREAM", "TCP_SENDFILE", "UDP_RR"] {
        let found = words(&wire, Ours, &format!("-t {test} -F {file}"));
        assert!(number(&found, if test == "UDP_RR" { 5 } else { 4 }) > 1.0, "{test}: {found:?}");
    }
    std::fs::remove_file(&path).unwrap();
    let gone = run(&wire, Ours, &format!("-l 1 -F {file}")).expect_code(1);
    assert!(gone.stderr.contains(file) && gone.stderr.contains("No such file"), "{}", gone.stderr);
}

#[test]
fn numbers_agree_with_the_link_within_two_percent() {
    need!(netns(), tool("ss"), tool("netperf"));
    let wire = Wire::new();
    for (server, client) in [(Ours, Theirs), (Theirs, Ours)] {
        let serving = serve(&wire, server, "");
        let count = |counter| wire.right.link_counter(Wire::RIGHT_LINK, counter);
        // Offloads make frames of up to 64 KB, each with one header: the link's packets tell how many.
        for (test, own, header) in [("TCP_STREAM", "--", 66), ("UDP_STREAM", "-- -m 1000 -R 1", 42)] {
            let before = (count("rx_bytes"), count("rx_packets"));
            let names = "LOCAL_BYTES_SENT,ELAPSED_TIME,LOCAL_SEND_THROUGHPUT";
            let found = words(&wire, client, &format!("-t {test} {own} -k {names}"));
            let packets = count("rx_packets") - before.1;
            let on_link = (count("rx_bytes") - before.0).saturating_sub(packets * header) as f64;
            let value = |name: &str| {
                let word = found.iter().find_map(|word| word.strip_prefix(name)?.strip_prefix('='));
                word.and_then(|word| word.parse::<f64>().ok())
                    .unwrap_or_else(|| panic!("no {name} in {found:?}"))
            };
            let payload = value("LOCAL_BYTES_SENT");
            assert!((on_link / payload - 1.0).abs() < 0.02, "{test}: {on_link} on the link, {payload} sent");
            let rate = value("LOCAL_SEND_THROUGHPUT") * 1e6 / 8.0 * value("ELAPSED_TIME");
            assert!((rate / payload - 1.0).abs() < 0.02, "{test}: {rate} {payload}");
        }
        drop(serving);
    }
}

#[test]
fn tables_have_netperfs_layout() {
    need!(netns(), tool("ss"), tool("netperf"));
    let wire = Wire::new();
    let _server = serve(&wire, Ours, "");
    // Digits become 9, so that two runs compare: what remains is the layout.
    let shape = |text: &str| {
        let mut shape = String::new();
        for c in text.chars().map(|c| if c.is_ascii_digit() { '9' } else { c }) {
            if !(matches!(c, '9' | ' ') && shape.ends_with(c)) {
                shape.push(c);
            }
        }
        shape
    };
    for arguments in [
        "-l 1 -t TCP_STREAM -v 2",
        "-l 1 -t TCP_STREAM -c -C -f M",
        "-l 1 -t TCP_MAERTS -c",
        "-l 1 -t TCP_RR -v 2",
        "-l -500 -t TCP_RR -c -C",
        "-l -300 -t TCP_CRR -v 2",
        "-l 1 -t UDP_STREAM -c -C -- -R 1 -m 1000",
        "-l -500 -t UDP_RR -f m",
        "-l 1 -t omni -- -o THROUGHPUT,THROUGHPUT_UNITS,LOCAL_SEND_SIZE",
        "-l 1 -t omni -- -d recv",
        "-t TCP_MSS",
        "-t REM_CPU -v 2",
    ] {
        let theirs = run(&wire, Theirs, arguments).expect_code(0);
        let ours = run(&wire, Ours, arguments).expect_code(0);
        assert_eq!(shape(&ours.stdout), shape(&theirs.stdout), "{arguments}");
    }
}

#[test]
fn what_netperf_does_wrong_is_not_done() {
    need!(netns(), tool("ss"), tool("netperf"));
    let wire = Wire::new();
    let server = serve(&wire, Ours, "-d -Z open");
    let wrong = run(&wire, Ours, "-t TCP_RR -l 1 -Z shut");
    assert_eq!(wrong.code(), 1);
    assert!(wrong.stderr.contains("passphrase"), "{}", wrong.stderr);
    // No file is opened for a client.
    let file = run(&wire, Theirs, "-Z open -t TCP_MAERTS -l 1 -F /etc/hostname,/etc/hostname");
    assert_ne!(file.code(), 0);
    // Connections end with the test, not four seconds later; CPU is at most all of it.
    let begun = std::time::Instant::now();
    let crr = run(&wire, Theirs, "-P 0 -Z open -t TCP_CRR -l 1 -C").expect_code(0);
    assert!(begun.elapsed() < Duration::from_secs(4));
    let crr: Vec<String> = crr.stdout.split_whitespace().map(str::to_owned).collect();
    assert!(number(&crr, 7) <= 100.0, "{crr:?}");
    // A pause of more than four seconds before the data.
    run(&wire, Theirs, "-P 0 -Z open -t TCP_STREAM -l 1 -s 5").expect_code(0);
    // A client may not pin the server.
    run(&wire, Theirs, "-P 0 -Z open -t TCP_RR -l 1 -T ,0").expect_code(0);
    assert!(server.stderr_so_far().contains("may not pin"), "{}", server.stderr_so_far());
    // A name that is not known is an empty column; a level alone leaves the width at 5 %.
    let unknown = run(&wire, Ours, "-Z open -l 1 -t TCP_RR -- -o THROUGHPUT,NO_SUCH").expect_code(0);
    assert!(unknown.stdout.lines().nth(1) == Some("Throughput,"), "{}", unknown.stdout);
    let level = run(&wire, Ours, "-Z open -l -100 -I 99 -t TCP_RR").expect_code(0);
    assert!(level.stdout.contains("+/-2.500% @ 99% conf."), "{}", level.stdout);
}

#[test]
fn no_server_is_exit_code_255() {
    need!(netns());
    let wire = Wire::new();
    assert_eq!(run(&wire, Ours, "-l 1").code(), 255);
    assert_eq!(run(&wire, Ours, "-t NO_SUCH").code(), 1);
    assert_eq!(run(&wire, Ours, "-F some,file").code(), 1);
}
