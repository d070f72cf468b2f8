//! What linerate says of its traffic, against counts that it has no part in.

#![expect(clippy::unwrap_used, reason = "helpers of tests; the lint knows only test functions")]

use std::time::{Duration, Instant};

use linerate_model::Record;
use linerate_model::limit::Limiter;
use linerate_model::reading::IntervalStream;
use linerate_model::trial::Side;
use linerate_model::workload::WorkloadKind;
use linerate_testkit::{ChildGuard, Netns, Program, Wire, eventually, need, records, run_within};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

const SHORT: Duration = Duration::from_secs(10);

fn linerate() -> Program {
    Program::new(env!("CARGO_BIN_EXE_linerate"))
}

/// Measures from the left end of the wire to the right one.
fn measure(wire: &Wire, options: &str) -> Vec<Record> {
    let (dut, peer) = (wire.left.node(), wire.right.node());
    let words: Vec<&str> = [&peer, "--dut", &dut].into_iter().chain(options.split_whitespace()).collect();
    linerate().measure(&words)
}

fn measure_one(wire: &Wire, options: &str) -> Record {
    let mut records = measure(wire, options);
    assert_eq!(records.len(), 1, "{options}");
    records.remove(0)
}

/// Measures until `off`, the percent by which a record is off, is at most 2: a machine with other work may keep a sender from
/// its pace now and then, but not three times in a row.
#[track_caller]
fn assert_reached(wire: &Wire, options: &str, off: impl Fn(&Record) -> f64) {
    let tries: Vec<f64> =
        (0..3).map(|_| off(&measure_one(wire, options))).take_while(|&off| off > 2.0).collect();
    assert!(tries.len() < 3, "{options}: {tries:.2?} % off");
}

fn percent_off(seen: f64, expected: f64) -> f64 {
    (seen - expected).abs() * 100.0 / expected
}

#[track_caller]
fn assert_within(what: &str, percent: f64, seen: f64, expected: f64) {
    let off = (seen - expected).abs() * 100.0 / expected.abs().max(1.0);
    assert!(off <= percent, "{what}: {seen} is {off:.2} % off {expected}, more than {percent} %");
}

/// Bytes and packets of a link, by sysfs.
#[derive(Debug, Clone, Copy)]
struct LinkCount {
    tx_bytes: u64,
    tx_packets: u64,
    rx_bytes: u64,
    rx_packets: u64,
}

impl LinkCount {
    fn of(netns: &Netns, link: &str) -> Self {
        let read = |name: &str| netns.link_counter(link, name);
        Self {
            tx_bytes: read("tx_bytes"),
            tx_packets: read("tx_packets"),
            rx_bytes: read("rx_bytes"),
            rx_packets: read("rx_packets"),
        }
    }

    fn since(self, before: Self) -> Self {
        Self {
            tx_bytes: self.tx_bytes - before.tx_bytes,
            tx_packets: self.tx_packets - before.tx_packets,
            rx_bytes: self.rx_bytes - before.rx_bytes,
            rx_packets: self.rx_packets - before.rx_packets,
        }
    }
}

/// Ethernet, IP and TCP with timestamps or UDP, bytes.
fn headers(kind: WorkloadKind, family: u8) -> u64 {
    let ip = if family == 4 { 20 } else { 40 };
    14 + ip + if kind.is_udp() { 8 } else { 32 }
}

/// Counters of `/proc/net/snmp`, `netstat` and `snmp6`, as `nstat` names them.
fn protocol_counter(netns: &Netns, name: &str) -> u64 {
    let mut command = netns.command("nstat");
    command.args(["-asz", name]);
    let text = run_within(command, SHORT).expect_code(0).stdout;
    let line =
        text.lines().find(|line| line.starts_with(name)).unwrap_or_else(|| panic!("no {name} in {text}"));
    line.split_whitespace().nth(1).unwrap().parse().unwrap()
}

/// Payload of one direction, as the receiver got it.
fn received(record: &Record, from: Side) -> u64 {
    record.summary.directions.iter().filter(|d| d.from == from).map(|d| d.received_bytes).sum()
}

const COUNTED: [(&str, &str); 8] = [
    ("tcp-stream", "--bytes 64M"),
    ("tcp-reverse", "--bytes 64M"),
    ("tcp-bidir", "--bytes 64M"),
    ("tcp-bidir", "--bytes 64M --one-connection"),
    ("tcp-rr", "--transactions 3000 --request 1400 --response 1400"),
    ("tcp-crr", "--transactions 1000 --request 1400 --response 1400"),
    ("udp-stream", "--bytes 8M --rate 400m --socket-buffer 200K"),
    ("udp-rr", "--transactions 3000 --request 1400 --response 1400"),
];

fn counts_agree(family: u8) {
    let wire = Wire::new();
    let octets = if family == 4 { "IpExtInOctets" } else { "Ip6InOctets" };
    let link = || LinkCount::of(&wire.left, Wire::LEFT_LINK);
    let by_ip = || (protocol_counter(&wire.left, octets), protocol_counter(&wire.right, octets));
    for (name, options) in COUNTED {
        let kind: WorkloadKind = name.parse().unwrap();
        let (link_before, ip_before) = (link(), by_ip());
        let record = measure_one(&wire, &format!("-w {name} {options} --family {family}"));
        let (count, ip) = (link().since(link_before), by_ip());
        let header = headers(kind, family);
        for (from, bytes, packets, octets) in [
            (Side::Dut, count.tx_bytes, count.tx_packets, ip.1 - ip_before.1),
            (Side::Peer, count.rx_bytes, count.rx_packets, ip.0 - ip_before.0),
        ] {
            let payload = received(&record, from);
            if payload == 0 {
                continue;
            }
            // What was sent again was counted again.
            let sender = if from == Side::Dut { &record.dut } else { &record.peer };
            let again: u64 =
                sender.reading.streams.iter().flat_map(|s| &s.tcp).map(|t| t.retransmitted_bytes).sum();
            // What the socket had no room for had come.
            let dropped: u64 =
                record.peer.reading.streams.iter().filter_map(|s| s.udp).map(|u| u.socket_drops).sum();
            let payload = payload + again + dropped * if family == 4 { 1472 } else { 1452 };
            let what = |by: &str| format!("{name} {options} IPv{family} from {from:?}, by {by}");
            assert_within(&what("the link"), 1.0, (bytes - packets * header) as f64, payload as f64);
            let above_ip = octets - packets * (header - 14);
            assert_within(&what("IP counters"), 1.0, above_ip as f64, payload as f64);
        }
        assert!(record.summary.goodput_bytes > 1_000_000, "{name} {options}");
    }
}

#[test]
fn every_workload_agrees_with_link_and_ip_counters_over_ipv4() {
    need!(netns(), tool("nstat"));
    counts_agree(4);
}

#[test]
fn every_workload_agrees_with_link_and_ip_counters_over_ipv6() {
    need!(netns(), tool("nstat"));
    counts_agree(6);
}

#[test]
fn goodput_of_a_window_agrees_with_the_link_counters_of_the_window() {
    need!(netns());
    let wire = Wire::new();
    for options in [
        "-w tcp-stream,tcp-reverse --rate 1g --family 4,6",
        "-w tcp-bidir --rate 500m",
        "-w udp-stream --rate 200m --socket-buffer 200K",
        "-w tcp-rr,udp-rr --rate 2krps --request 1000 --response 1400",
    ] {
        for record in measure(&wire, &format!("{options} -t 1 --warmup 0.2")) {
            let kind = record.trial.workload.kind();
            let family = if record.dut.reading.streams[0].remote.unwrap().is_ipv4() { 4 } else { 6 };
            for (from, receiver) in [(Side::Dut, &record.peer), (Side::Peer, &record.dut)] {
                let payload = received(&record, from);
                if payload == 0 {
                    continue;
                }
                let link = receiver.reading.meter.link.as_ref().unwrap().counters;
                let by_link = link.rx_bytes - link.rx_packets * headers(kind, family);
                // What the socket had no room for has crossed the link too.
                let dropped: u64 =
                    receiver.reading.streams.iter().filter_map(|s| s.udp).map(|u| u.socket_drops).sum();
                let payload = payload + dropped * 1472;
                let what = format!("{kind} IPv{family} from {from:?}");
                assert_within(&what, 1.0, by_link as f64, payload as f64);
            }
        }
    }
}

#[test]
fn bytes_and_transactions_move_exactly_that() {
    need!(netns());
    let wire = Wire::new();
    for streams in [1, 3] {
        let options = format!("--bytes 10000001 --streams {streams} --size 10000");
        for kind in ["tcp-stream", "tcp-reverse", "tcp-bidir", "tcp-bidir --one-connection"] {
            let record = measure_one(&wire, &format!("-w {kind} {options}"));
            for direction in &record.summary.directions {
                assert_eq!(direction.received_bytes, 10_000_001, "{kind} {options}");
            }
        }
        let udp = format!("-w udp-stream --bytes 999000 --rate 20m --size 1000 --streams {streams}");
        let record = measure_one(&wire, &udp);
        let loss = record.summary.loss.unwrap();
        assert_eq!((loss.sent, record.summary.goodput_bytes / 1000 + loss.lost), (999, 999), "{udp}");
        for kind in ["tcp-rr", "tcp-crr", "udp-rr"] {
            let record = measure_one(&wire, &format!("-w {kind} --transactions 1001 --streams {streams}"));
            assert_eq!(record.summary.transactions, Some(1001), "{kind} x{streams}");
            assert_eq!(record.summary.latency.unwrap().count, 1001, "{kind} x{streams}");
        }
    }
}

/// Percent by which the counters' sum is off the datagrams lost.
fn unexplained(record: &Record) -> (f64, String) {
    let loss = record.summary.loss.as_ref().unwrap();
    assert!(loss.lost > 100, "a small buffer loses datagrams: {loss:?}");
    let explained: u64 = loss.places.iter().map(|place| place.packets).sum();
    (explained.abs_diff(loss.lost) as f64 * 100.0 / loss.lost as f64, format!("{loss:?}"))
}

#[test]
fn losses_are_explained_by_the_counters() {
    need!(netns());
    let wire = Wire::new();
    // Room for a few datagrams only.
    let record = measure_one(&wire, "-w udp-stream --bytes 200M --size 1400 --socket-buffer 4K");
    let (off, text) = unexplained(&record);
    assert!(off <= 1.0, "{off:.2} % off: {text}");
    let loss = record.summary.loss.unwrap();
    let received: u64 = record.peer.reading.streams.iter().map(|s| s.udp.unwrap().received).sum();
    assert_eq!(received + loss.lost, loss.sent);
}

#[test]
fn drops_outside_the_window_are_not_said_to_explain_its_losses() {
    need!(netns());
    let wire = Wire::new();
    let record = measure_one(&wire, "-w udp-stream -t 0.3 --warmup 1 --size 1400 --socket-buffer 4K");
    let (off, text) = unexplained(&record);
    assert!(off <= 5.0, "{off:.2} % off: {text}");
}

#[test]
fn verify_checks_every_byte_of_every_workload() {
    need!(netns());
    let wire = Wire::new();
    let workloads = "tcp-stream,tcp-reverse,tcp-bidir,tcp-rr,tcp-crr,udp-stream,udp-rr";
    let common = "--request 100 --response 1400 --size 1400 -t 0.2 --warmup 0.1";
    for extra in ["--family 4,6", "--send sendfile", "--streams 2 --one-connection"] {
        for record in measure(&wire, &format!("-w {workloads} {common} {extra} --verify")) {
            let kind = record.trial.workload.kind();
            let nodes = [&record.dut, &record.peer];
            let found: Vec<_> =
                nodes.iter().flat_map(|n| n.reading.streams.iter().filter_map(|s| s.verify)).collect();
            let checked: u64 = found.iter().map(|v| v.checked_bytes).sum();
            let payload = match kind {
                // Sequence and time of sending are no payload.
                WorkloadKind::UdpStream => record.summary.goodput_bytes * (1400 - 16) / 1400,
                _ => record.summary.goodput_bytes,
            };
            assert!(checked > 10_000, "{kind} {extra}: checked {checked} bytes");
            assert!(checked >= payload, "{kind} {extra}: checked {checked} of {payload} bytes");
            assert_eq!(record.summary.bad_bytes, Some(0), "{kind} {extra}: {found:?}");
        }
    }
}

#[test]
fn what_verify_costs() {
    need!(netns());
    let wire = Wire::new();
    let goodput = |extra: &str| {
        let records = measure(&wire, &format!("-w tcp-stream -t 0.5 --warmup 0.1 --repeat 3 {extra}"));
        records.iter().map(|r| r.summary.goodput_bits_per_second).fold(0.0, f64::max)
    };
    let (plain, checked) = (goodput(""), goodput("--verify"));
    println!("tcp-stream --verify: {:.2} of the goodput without it", checked / plain);
    assert!(checked > 0.02 * plain, "{checked} of {plain} bit/s");
}

#[test]
fn rates_are_reached() {
    need!(netns());
    let wire = Wire::new();
    let time = "-t 1 --warmup 0.2";
    for (kind, family) in
        [("tcp-stream", 4), ("tcp-reverse", 6), ("tcp-bidir", 4), ("udp-stream", 4), ("udp-stream", 6)]
    {
        let options = format!("-w {kind} --family {family} --rate 20m --size 1400 {time}");
        assert_reached(&wire, &options, |record| {
            let off = record.summary.directions.iter().map(|d| percent_off(d.goodput_bits_per_second, 20e6));
            let off = off.fold(0.0, f64::max);
            assert!(off > 2.0 || record.limit.limiter == Limiter::Pace, "{kind}: {:?}", record.limit);
            off
        });
    }
    let packets = format!("-w udp-stream --rate 5kpps --size 100 --streams 2 {time}");
    assert_reached(&wire, &packets, |record| percent_off(record.summary.packets_per_second.unwrap(), 5e3));
    for kind in ["tcp-rr", "udp-rr", "tcp-crr"] {
        let options = format!("-w {kind} --rate 1krps --streams 2 {time}");
        assert_reached(&wire, &options, |record| {
            percent_off(record.summary.transactions_per_second.unwrap(), 1e3)
        });
    }
}

#[test]
fn a_rate_is_paced_evenly() {
    need!(netns());
    let wire = Wire::new();
    let options = "-w udp-stream --rate 2kpps --size 100 -t 2 --warmup 0.2 --interval 0.1";
    let record = measure_one(&wire, options);
    let whole = record.dut.reading.intervals.iter().filter(|i| i.duration_ns > 50_000_000);
    let rates: Vec<f64> =
        whole.map(|i| i.streams[0].sent.messages as f64 * 1e9 / i.duration_ns as f64).collect();
    assert!(rates.len() >= 19, "{rates:?}");
    // 200 packets in each: on a machine with other work one may be late now and then, and its packets come in the next.
    let uneven = rates.iter().filter(|&&rate| (rate - 2e3).abs() > 0.05 * 2e3).count();
    assert!(uneven <= 4, "{rates:?}");
}

#[test]
fn an_open_loop_counts_latency_from_when_a_request_was_due() {
    need!(netns());
    let wire = Wire::new();
    let (dut, peer) = (wire.left.node(), wire.right.node());
    for kind in ["tcp-rr", "udp-rr", "tcp-crr"] {
        let arguments = ["run", &peer, "--dut", &dut, "-w", kind, "--rate", "1krps", "-t", "1.5"];
        let rest = ["--warmup", "0", "--json", "-q"];
        let child = ChildGuard::spawn(linerate().command(&[&arguments[..], &rest].concat()));
        let agent = agent_in(child.pid(), wire.right.name());
        std::thread::sleep(Duration::from_millis(700));
        // The peer's whole agent stands still for 300 ms.
        signal(agent, Signal::SIGSTOP);
        std::thread::sleep(Duration::from_millis(300));
        signal(agent, Signal::SIGCONT);
        let finished = child.wait_within(SHORT).expect_code(0);
        let record = records(&finished.stdout).remove(0);
        // Some 300 of 1500 requests were due during the stall and waited up to 300 ms; a closed loop would see one.
        // udp-rr gives those up that waited for 200 ms.
        let latency = record.summary.latency.unwrap();
        let lost = record.summary.loss.map_or(0, |loss| loss.lost);
        let text = format!("{kind}: {latency:?}, {lost} lost");
        assert!(latency.max_ns > 150_000_000, "{text}");
        assert!(latency.p90_ns > 50_000_000, "{text}");
        assert!(latency.p50_ns < 50_000_000, "{text}");
        assert!((1400..=1510).contains(&(latency.count + lost)), "{text}");
    }
}

/// The agent that a controller starts in a namespace.
fn agent_in(controller: u32, netns: &str) -> u32 {
    let list = format!("/proc/{controller}/task/{controller}/children");
    let in_netns = |pid: &&str| {
        // Between fork and exec it still has the controller's words, in which both names are.
        std::fs::read_to_string(format!("/proc/{pid}/cmdline"))
            .is_ok_and(|words| words.contains("--stdio") && words.contains(netns))
    };
    eventually(SHORT, &format!("an agent in {netns}"), || {
        let children = std::fs::read_to_string(&list).ok()?;
        children.split_whitespace().find(in_netns)?.parse().ok()
    })
}

fn signal(pid: u32, signal: Signal) {
    kill(Pid::from_raw(pid.cast_signed()), signal).unwrap();
}

#[test]
fn requests_in_flight_are_as_many_as_asked_for() {
    need!(netns());
    let wire = Wire::new();
    for kind in ["tcp-rr", "udp-rr"] {
        let options = format!("-w {kind} --in-flight 1,32 --request 64 --response 64 -t 0.5 --warmup 0.1");
        for (record, asked) in measure(&wire, &options).iter().zip([1.0, 32.0]) {
            // Little's law: requests in flight = rate x time.
            let latency = record.summary.latency.as_ref().unwrap();
            let in_flight = record.summary.transactions_per_second.unwrap() * latency.mean_ns / 1e9;
            assert!(in_flight > asked * 0.5 && in_flight < asked * 1.05, "{kind} {asked}: {in_flight}");
        }
    }
}

#[test]
fn a_list_of_sizes_is_a_sweep_and_sendfile_moves_the_same() {
    need!(netns());
    let wire = Wire::new();
    let records = measure(&wire, "-w tcp-stream --size 1K,...,8K --send write,sendfile -t 0.1 --warmup 0");
    let sizes: Vec<String> = records.iter().map(|r| r.trial.workload.size_text()).collect();
    assert_eq!(sizes, ["1K", "1K", "2K", "2K", "4K", "4K", "8K", "8K"]);
    for (record, size) in records.iter().zip([1024, 1024, 2048, 2048, 4096, 4096, 8192, 8192]) {
        let sent = record.dut.reading.streams[0].sent;
        assert!(record.summary.goodput_bytes > 1_000_000, "{:?}", record.trial.workload);
        let a_call = sent.bytes / sent.messages.max(1);
        assert!(a_call.abs_diff(size) <= size / 10, "{a_call} bytes a call of {size}");
    }
}

#[test]
fn threads_run_on_the_cpus_they_are_pinned_to() {
    need!(netns());
    let wire = Wire::new();
    let (dut, peer) = (wire.left.node(), wire.right.node());
    let arguments = ["run", &peer, "--dut", &dut, "-w", "tcp-stream", "--pin", "dut=1,peer=0", "-t", "1"];
    let child = ChildGuard::spawn(linerate().command(&[&arguments[..], &["--json", "-q"]].concat()));
    let agents = [wire.left.name(), wire.right.name()].map(|netns| agent_in(child.pid(), netns));
    std::thread::sleep(Duration::from_millis(700));
    let mut seen = Vec::new();
    for (agent, role) in agents.into_iter().zip(["lr-send-0", "lr-receive-0"]) {
        let tasks = format!("/proc/{agent}/task");
        for task in std::fs::read_dir(tasks).unwrap() {
            let status = std::fs::read_to_string(task.unwrap().path().join("status")).unwrap();
            if status.contains(role) {
                let line = status.lines().find_map(|l| l.strip_prefix("Cpus_allowed_list:\t"));
                seen.push(line.unwrap().to_owned());
            }
        }
    }
    assert_eq!(seen, ["1", "0"]);
    let record = records(&child.wait_within(SHORT).expect_code(0).stdout).remove(0);
    assert_eq!(record.dut.reading.threads[0].pinned_cpu, Some(1));
    assert_eq!(record.peer.reading.threads[0].pinned_cpu, Some(0));
}

#[test]
fn the_tos_byte_is_on_the_wire() {
    need!(netns(), tool("tshark"));
    let wire = Wire::new();
    let file = std::env::temp_dir().join(format!("lr-tos-{}.pcap", std::process::id()));
    for (kind, family, field) in
        [("tcp-rr", 4, "ip.dsfield"), ("udp-rr", 4, "ip.dsfield"), ("tcp-rr", 6, "ipv6.tclass")]
    {
        let mut tshark = wire.right.command("tshark");
        tshark.args(["-i", Wire::RIGHT_LINK, "-c", "400", "-s", "128", "-F", "pcap", "-w"]).arg(&file);
        let mut capture = ChildGuard::spawn(tshark);
        capture.wait_for_text("Capturing on", SHORT);
        std::thread::sleep(Duration::from_millis(500));
        measure_one(&wire, &format!("-w {kind} --family {family} --tos 0xb8 --transactions 2000"));
        capture.wait_within(SHORT);
        let mut read = std::process::Command::new("tshark");
        read.arg("-r").arg(&file).args(["-Y", &kind[..3], "-T", "fields", "-e", field]);
        let text = run_within(read, Duration::from_secs(20)).expect_code(0).stdout;
        std::fs::remove_file(&file).unwrap();
        let marked = text.lines().filter(|value| value.trim_start_matches("0x").ends_with("b8")).count();
        // The kernel answers the first SYN before the accepted socket has its mark.
        let all = text.lines().count();
        assert!(all > 100 && marked + 3 >= all, "{kind} IPv{family}: {marked} of {all} marked:\n{text}");
    }
}

#[test]
fn socket_options_are_read_back() {
    need!(netns());
    let wire = Wire::new();
    let options = "--mss 1000 --congestion reno --socket-buffer 64K --nodelay -t 0.2 --warmup 0";
    let record = measure_one(&wire, &format!("-w tcp-stream {options}"));
    for node in [&record.dut, &record.peer] {
        let socket = &node.reading.streams[0].socket;
        assert_eq!(socket.congestion.as_deref(), Some("reno"));
        assert_eq!((socket.send_buffer_bytes, socket.receive_buffer_bytes), (131_072, 131_072));
    }
    let tcp = record.dut.reading.streams[0].tcp[0];
    assert!((900..=1000).contains(&tcp.send_mss_bytes), "{tcp:?}");
    assert!(record.dut.reading.streams[0].socket.mss_bytes.unwrap() <= 1000);
}

#[test]
fn service_demand_is_busy_time_divided_by_work() {
    need!(netns());
    let wire = Wire::new();
    for record in measure(&wire, "-w tcp-stream,tcp-bidir,tcp-rr,udp-rr,udp-stream -t 0.5 --warmup 0.1") {
        let kind = record.trial.workload.kind();
        // One kernel: the machine is counted once, and told as shared.
        assert!(
            record.shared_kernel && record.summary.cpu.dut.is_none() && record.summary.cpu.peer.is_none()
        );
        let shared = record.summary.cpu.shared.clone().unwrap();
        let cpus = &record.dut.reading.meter.cpu.cpus;
        let busy_ns: u64 = cpus.iter().map(|c| c.time.busy_ns).sum();
        let steps = cpus.len() as u64 * record.dut.reading.meter.cpu.busy_resolution_ns;
        assert!(shared.busy_ns.abs_diff(busy_ns) <= steps, "{kind}: {} and {busy_ns} busy", shared.busy_ns);
        let nodes = [&record.dut, &record.peer];
        let bytes: u64 = nodes.iter().flat_map(|n| &n.reading.streams).map(|s| s.received.bytes).sum();
        let transactions: u64 = record.dut.reading.streams.iter().map(|s| s.transactions).sum();
        let busy_us = shared.busy_ns as f64 / 1e3;
        let (demand, expected) = if kind.is_transactional() {
            (shared.service_demand_us_per_transaction, busy_us / transactions as f64)
        } else {
            (shared.service_demand_us_per_kib, busy_us * 1024.0 / bytes as f64)
        };
        assert_within(&format!("{kind}: service demand"), 0.0001, demand.unwrap(), expected);
    }
}

#[test]
fn intervals_add_up_to_the_window() {
    need!(netns());
    let wire = Wire::new();
    let workloads = "tcp-stream,tcp-bidir,udp-stream,tcp-rr,udp-rr";
    for record in measure(&wire, &format!("-w {workloads} --streams 2 -t 0.75 --warmup 0.1 --interval 0.2")) {
        let kind = record.trial.workload.kind();
        for reading in [&record.dut.reading, &record.peer.reading] {
            assert_eq!(reading.intervals.len(), 4, "{kind}");
            let length: u64 = reading.intervals.iter().map(|i| i.duration_ns).sum();
            assert_eq!(length, reading.window.duration_ns, "{kind}");
            for stream in &reading.streams {
                let of = |pick: fn(&IntervalStream) -> u64| -> u64 {
                    let all = reading.intervals.iter().flat_map(|i| &i.streams);
                    all.filter(|s| s.index == stream.index).map(pick).sum()
                };
                let (kind, index) = (kind.name(), stream.index);
                assert_eq!(of(|s| s.sent.bytes), stream.sent.bytes, "{kind} stream {index}: sent");
                assert_eq!(
                    of(|s| s.received.bytes),
                    stream.received.bytes,
                    "{kind} stream {index}: received"
                );
                assert_eq!(
                    of(|s| s.transactions),
                    stream.transactions,
                    "{kind} stream {index}: transactions"
                );
            }
        }
    }
}

#[test]
fn a_bidir_trial_ends_at_once_and_no_stream_is_said_to_have_ended_early() {
    need!(netns());
    let wire = Wire::new();
    for extra in ["", "--one-connection", "--streams 4"] {
        let started = Instant::now();
        let record = measure_one(&wire, &format!("-w tcp-bidir -t 0.3 --warmup 0.1 {extra}"));
        let elapsed = started.elapsed();
        let nodes = [&record.dut, &record.peer];
        let errors: Vec<_> =
            nodes.iter().flat_map(|n| n.reading.streams.iter().filter_map(|s| s.error.clone())).collect();
        assert!(errors.is_empty(), "{extra}: {errors:?}");
        assert!(elapsed < Duration::from_millis(2500), "{extra}: {elapsed:?}");
    }
}
