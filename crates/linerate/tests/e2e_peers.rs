//! Several peers at once against one dut.

#![expect(clippy::unwrap_used, reason = "helpers of tests; the lint knows only test functions")]

use std::process::{Command, Output};

use linerate_model::Record;
use linerate_model::summary::total_flow;
use linerate_testkit::{LeakCheck, need};

fn run(words: &str) -> Output {
    Command::new(env!("CARGO_BIN_EXE_linerate")).args(words.split_whitespace()).output().unwrap()
}

fn records(words: &str) -> Vec<Record> {
    let output = run(&format!("{words} --json --no-store --quiet --warmup 0.05"));
    assert!(output.status.success(), "{words}: {}", String::from_utf8_lossy(&output.stderr));
    linerate_report::parse_json(&String::from_utf8(output.stdout).unwrap()).unwrap()
}

/// What each peer got or sent is in the record by itself, and adds up to the figures; the machine's CPU counts once.
fn assert_adds_up(record: &Record) {
    let streams = record.trial.streams as usize;
    let peers = record.trial.peers as usize;
    assert_eq!(record.peers.len(), peers);
    let numbers: Vec<u32> = record.peers.iter().flat_map(|p| &p.reading.streams).map(|s| s.index).collect();
    assert_eq!(numbers, (0..(peers * streams) as u32).collect::<Vec<_>>());
    assert_eq!(record.dut.reading.streams.iter().map(|s| s.index).collect::<Vec<_>>(), numbers);
    for (ours, theirs) in
        record.dut.reading.streams.iter().zip(record.peers.iter().flat_map(|p| &p.reading.streams))
    {
        assert_eq!((ours.local, ours.remote), (theirs.remote, theirs.local), "stream {}", ours.index);
    }
    let by_peer: Vec<u64> =
        record.peers.iter().map(|p| total_flow(&p.reading, |s| s.received).bytes).collect();
    assert!(by_peer.iter().all(|bytes| *bytes > 0), "{by_peer:?}");
    assert_eq!(by_peer.iter().sum::<u64>(), total_flow(&record.peer.reading, |s| s.received).bytes);
    assert!(record.shared_kernel);
    let cpu = &record.dut.reading.meter.cpu;
    let cpus = cpu.cpus.len() as u64;
    assert!(cpu.total.busy_ns <= cpus * cpu.window_ns, "busier than it has CPUs");
    assert_eq!(record.summary.cpu.shared.as_ref().unwrap().busy_ns, cpu.total.busy_ns);
}

#[test]
fn each_peer_has_a_node_of_its_own_in_a_private_lab() {
    need!(netns());
    let leaks = LeakCheck::start();
    let all =
        records("run -w tcp-stream,tcp-rr,udp-stream --rate 5kpps,2krps --peers 1,3 --streams 2 -t 0.4");
    assert_eq!(all.len(), 6);
    for record in &all {
        if record.trial.peers == 1 {
            assert!(record.peers.is_empty());
            continue;
        }
        assert_adds_up(record);
        let mut nodes: Vec<String> = record.peers.iter().map(|p| p.node.to_string()).collect();
        nodes.dedup();
        assert_eq!(nodes.len(), 3);
        // All of it went over the one link of the dut.
        let sent = total_flow(&record.dut.reading, |s| s.sent).bytes;
        let link = record.dut.reading.meter.link.as_ref().unwrap().counters.tx_bytes;
        assert!(link >= sent * 9 / 10, "{link} bytes on the link of {sent} sent");
        if let Some(rate) = record.trial.workload.rate() {
            let seconds = record.dut.reading.window.duration_ns as f64 / 1e9;
            let done = match record.summary.transactions {
                Some(count) => count,
                None => total_flow(&record.dut.reading, |s| s.sent).messages,
            };
            let asked = 3.0 * rate.per_second as f64;
            let reached = done as f64 / seconds;
            assert!((reached / asked - 1.0).abs() < 0.2, "{reached} of {asked} a second");
        }
    }
    leaks.assert_none();
}

#[test]
fn a_count_is_each_peers() {
    need!(netns());
    let all = records("run -w tcp-stream --peers 2 --bytes 3M");
    assert_eq!(all[0].summary.goodput_bytes, 2 * (3 << 20));
}

#[test]
fn a_node_may_be_several_peers_and_too_few_are_told() {
    let all = records("run local local -w tcp-stream -t 0.3");
    assert_adds_up(&all[0]);
    let output = run("run local -w tcp-rr --peers 2 --no-store");
    assert_eq!(output.status.code(), Some(2));
    let words = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(words.contains("--peers 2: one peer is named"), "{words}");
}
