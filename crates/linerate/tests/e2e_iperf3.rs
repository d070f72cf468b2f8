//! `linerate iperf3` between two namespaces: against the real iperf3 in both roles, and against itself.

use std::fs;
use std::io::{Read, Write};
use std::process::Command;
use std::time::{Duration, Instant};

use linerate_testkit::{ChildGuard, Finished, Netns, Wire, need, run_within};
use nix::sys::signal::Signal;

const LIMIT: Duration = Duration::from_secs(20);
const SERVER: &str = "198.18.0.2";

/// Which program takes a part.
#[derive(Clone, Copy)]
enum Who {
    Ours,
    Real,
}

fn command(netns: &Netns, who: Who, arguments: &str) -> Command {
    let mut command = match who {
        Who::Ours => {
            let mut command = netns.command(env!("CARGO_BIN_EXE_linerate"));
            command.arg("iperf3");
            command
        }
        Who::Real => netns.command("iperf3"),
    };
    command.args(arguments.split_whitespace());
    command
}

/// A server in the right namespace that listens.
fn serve(wire: &Wire, who: Who, arguments: &str) -> ChildGuard {
    let arguments = format!("-s --forceflush {arguments}");
    let mut server = ChildGuard::spawn(command(&wire.right, who, &arguments));
    if arguments.contains("-J") {
        std::thread::sleep(Duration::from_millis(500));
    } else {
        server.wait_for_text("Server listening", LIMIT);
    }
    server
}

fn client(wire: &Wire, who: Who, arguments: &str) -> Command {
    command(&wire.left, who, &format!("-c {SERVER} {arguments}"))
}

/// Runs a client with `-J`; returns its object.
fn json(wire: &Wire, who: Who, arguments: &str) -> Json {
    let finished = run_within(client(wire, who, &format!("-J {arguments}")), LIMIT).expect_code(0);
    let result = Json::of(&finished);
    // 3.12 ends with 0 although it failed.
    assert!(!result.has("/error"), "{arguments}: {}", result.0);
    result
}

struct Json(serde_json::Value);

impl Json {
    fn of(finished: &Finished) -> Self {
        Self(serde_json::from_str(&finished.stdout).unwrap_or_else(|e| panic!("{e}: {}", finished.output())))
    }

    fn number(&self, pointer: &str) -> f64 {
        let value = self.0.pointer(pointer).and_then(serde_json::Value::as_f64);
        value.unwrap_or_else(|| panic!("no number {pointer} in {}", self.0))
    }

    fn has(&self, pointer: &str) -> bool {
        self.0.pointer(pointer).is_some()
    }
}

/// Bytes of one link's counter while `work` runs.
fn counted<T>(wire: &Wire, counter: &str, work: impl FnOnce() -> T) -> (T, f64) {
    let before = wire.right.link_counter(Wire::RIGHT_LINK, counter);
    let result = work();
    (result, (wire.right.link_counter(Wire::RIGHT_LINK, counter) - before) as f64)
}

/// Payload in `on_link` bytes: veth counts each frame with its Ethernet header, but segments of TSO as one.
fn assert_on_link(bytes: f64, on_link: f64, what: &str) {
    let ratio = on_link / bytes;
    assert!((0.98..1.02).contains(&ratio), "{what}: {bytes} bytes reported, {on_link} on the link");
}

/// Sent bytes with their headers of Ethernet, IPv4 and UDP.
fn datagrams_on_link(result: &Json) -> f64 {
    result.number("/end/sum_sent/bytes") * (1400.0 + 14.0 + 20.0 + 8.0) / 1400.0
}

const MATRIX: &[&str] = &[
    "-t 1",
    "-t 1 -R",
    "-t 1 --bidir",
    "-t 1 -P 3",
    "-t 1 --bidir -P 2",
    "-n 20M",
    "-n 20M -R",
    "-k 100 -P 2",
    "-t 1 -O 1",
    "-t 1 -b 50M -l 16K",
    "-t 1 -w 256K -M 1000 -N -C reno -Z -S 16 -i 0.5",
    "-t 1 --get-server-output",
    "-u -t 1 -b 20M",
    "-u -t 1 -b 20M -R",
    "-u -t 1 -b 10M --bidir -P 2 -l 1200",
    "-u -n 1M -b 10M",
    "-u -t 1 -b 10M --udp-counters-64bit -R -l 1000",
];

fn run_matrix(server: Who, who: Who) {
    let wire = Wire::new();
    let _server = serve(&wire, server, "");
    for arguments in MATRIX {
        let result = json(&wire, who, arguments);
        let (sent, received) =
            (result.number("/end/sum_sent/bytes"), result.number("/end/sum_received/bytes"));
        assert!(sent > 0.0 && received > 0.0, "{arguments}: {sent} sent, {received} received");
        let ratio = received / sent;
        // Omitted times are cut at different moments by the two sides.
        let most = if arguments.contains("-O") { 1.2 } else { 1.01 };
        assert!(ratio < most && ratio > 0.5, "{arguments}: {sent} sent, {received} received");
        if arguments.contains("--bidir") {
            assert!(result.number("/end/sum_received_bidir_reverse/bytes") > 0.0, "{arguments}");
        }
    }
}

#[test]
fn the_real_client_runs_every_test_against_our_server() {
    need!(netns(), tool("iperf3"));
    run_matrix(Who::Ours, Who::Real);
}

#[test]
fn our_client_runs_every_test_against_the_real_server() {
    need!(netns(), tool("iperf3"));
    run_matrix(Who::Real, Who::Ours);
}

#[test]
fn ours_runs_every_test_against_ours() {
    need!(netns());
    run_matrix(Who::Ours, Who::Ours);
}

#[test]
fn bytes_agree_with_the_link_in_both_roles() {
    need!(netns(), tool("iperf3"));
    let wire = Wire::new();
    for (server, who) in [(Who::Ours, Who::Real), (Who::Real, Who::Ours), (Who::Ours, Who::Ours)] {
        let server = serve(&wire, server, "");
        let (forward, on_link) = counted(&wire, "rx_bytes", || json(&wire, who, "-n 100M -b 400M"));
        assert_on_link(forward.number("/end/sum_received/bytes"), on_link, "TCP forward");
        let (reverse, on_link) = counted(&wire, "tx_bytes", || json(&wire, who, "-n 100M -b 400M -R"));
        assert_on_link(reverse.number("/end/sum_received/bytes"), on_link, "TCP reverse");
        let udp = "-u -t 1 -b 20M -l 1400";
        let (forward, on_link) = counted(&wire, "rx_bytes", || json(&wire, who, udp));
        assert_on_link(datagrams_on_link(&forward), on_link, "UDP forward");
        let (reverse, on_link) = counted(&wire, "tx_bytes", || json(&wire, who, &format!("{udp} -R")));
        assert_on_link(datagrams_on_link(&reverse), on_link, "UDP reverse");
        drop(server);
    }
}

#[test]
fn byte_counts_are_exact_and_times_true() {
    need!(netns());
    let wire = Wire::new();
    let _server = serve(&wire, Who::Ours, "");
    for arguments in ["-n 10M", "-n 10M -i 0", "-n 10M -R", "-n 10M -P 3", "-n 1000001", "-k 80"] {
        let result = json(&wire, Who::Ours, arguments);
        let expected = if arguments.contains("1000001") { 1_000_001.0 } else { f64::from(10 << 20) };
        assert_eq!(result.number("/end/sum_sent/bytes"), expected, "{arguments}");
        assert_eq!(result.number("/end/sum_received/bytes"), expected, "{arguments}");
        assert!(result.number("/end/sum_sent/seconds") < 0.9, "{arguments}: not the time it took");
    }
    let paced = json(&wire, Who::Ours, "-n 5M -b 40M");
    assert_eq!(paced.number("/end/sum_received/bytes"), f64::from(5 << 20));
    let seconds = paced.number("/end/sum_received/seconds");
    assert!((0.95..1.3).contains(&seconds), "{seconds}");
}

#[test]
fn clients_are_served_side_by_side_with_their_own_options() {
    need!(netns(), tool("iperf3"));
    let wire = Wire::new();
    let _server = serve(&wire, Who::Ours, "");
    let options = [
        "-t 2 -b 20M -M 900",
        "-t 2 -b 10M -w 128K",
        "-t 2 -b 5M -R",
        "-u -t 2 -b 8M -l 1000",
        "-u -t 2 -b 4M -l 500 -R --udp-counters-64bit",
        "-u -t 2 -b 3M --bidir -P 2 -l 700",
    ];
    let clients: Vec<_> =
        options.iter().map(|o| ChildGuard::spawn(client(&wire, Who::Real, &format!("-J {o}")))).collect();
    let rates = [20e6, 10e6, 5e6, 8e6, 4e6, 6e6];
    for ((options, child), rate) in options.iter().zip(clients).zip(rates) {
        let result = Json::of(&child.wait_within(LIMIT).expect_code(0));
        let got = result.number("/end/sum_received/bits_per_second");
        assert!((0.85..1.15).contains(&(got / rate)), "{options}: {got} bit/s, {rate} wanted: {}", result.0);
    }
}

#[test]
fn one_at_a_time_is_the_old_way() {
    need!(netns(), tool("iperf3"));
    let wire = Wire::new();
    let _server = serve(&wire, Who::Ours, "--one-at-a-time");
    let mut first = ChildGuard::spawn(client(&wire, Who::Real, "-t 2 -b 10M"));
    std::thread::sleep(Duration::from_millis(700));
    let second = run_within(client(&wire, Who::Real, "-t 1"), LIMIT);
    assert_ne!(second.code(), 0);
    assert!(second.stderr.contains("busy"), "{}", second.output());
    assert!(first.is_running());
    first.wait_within(LIMIT).expect_code(0);
    run_within(client(&wire, Who::Real, "-t 1 -b 10M"), LIMIT).expect_code(0);
}

#[test]
fn rates_are_kept_and_datagrams_evenly_spaced() {
    need!(netns());
    let wire = Wire::new();
    let _server = serve(&wire, Who::Ours, "");
    for arguments in
        ["-t 2 -b 30M -l 10000", "-t 2 -b 30M/10 -l 10000", "-u -t 2 -b 30M/10", "-u -t 2 -b 30M -R"]
    {
        let result = json(&wire, Who::Ours, arguments);
        let rate = result.number("/end/sum_received/bits_per_second") / 30e6;
        assert!((0.97..1.03).contains(&rate), "{arguments}: {rate} of the rate");
    }
}

#[test]
fn merged_datagrams_arrive_whole_and_leave_no_trace() {
    need!(netns(), tool("iperf3"));
    let wire = Wire::new();
    let _server = serve(&wire, Who::Ours, "");
    let merged = json(&wire, Who::Ours, "-u -t 1 -b 200M -l 1000 --gsro");
    let (packets, bytes) = (merged.number("/end/sum_sent/packets"), merged.number("/end/sum_sent/bytes"));
    assert_eq!(packets * 1000.0, bytes);
    assert!(merged.number("/end/sum_received/bytes") > 0.9 * bytes);
    assert_eq!(merged.number("/start/test_start/gso"), 1.0);
    let (_, frames) = counted(&wire, "tx_packets", || json(&wire, Who::Real, "-u -t 1 -b 8M -l 1000 -R"));
    assert!(frames > 900.0, "the next client got merged datagrams: {frames} frames");
}

#[test]
fn a_wrong_client_is_refused_and_told_why() {
    need!(netns(), tool("iperf3"));
    let wire = Wire::new();
    let mut server = serve(&wire, Who::Ours, "--server-max-duration 5 --server-bitrate-limit 50M/1");
    let long = run_within(client(&wire, Who::Ours, "-t 6"), LIMIT).expect_code(1);
    assert!(long.stderr.contains("code 37"), "{}", long.output());
    let fast = run_within(client(&wire, Who::Ours, "-t 1 -b 30M -P 2"), LIMIT).expect_code(1);
    assert!(fast.stderr.contains("code 27"), "{}", fast.output());
    let unbounded = run_within(client(&wire, Who::Ours, "-t 4"), LIMIT).expect_code(1);
    assert!(unbounded.stderr.contains("code 27"), "{}", unbounded.output());
    let json = run_within(client(&wire, Who::Ours, "-J -t 6"), LIMIT).expect_code(1);
    assert!(Json::of(&json).has("/error"), "{}", json.output());
    run_within(client(&wire, Who::Real, "-t 1 -b 10M"), LIMIT).expect_code(0);
    assert!(server.is_running());
    let networks = serve(&wire, Who::Ours, "-p 5301 --allow 192.0.2.0/24");
    let foreign = run_within(client(&wire, Who::Ours, "-p 5301 -t 1"), LIMIT).expect_code(1);
    assert!(foreign.stderr.contains("busy"), "{}", foreign.output());
    drop(networks);
}

#[test]
fn users_authenticate_with_the_real_peer_and_with_ours() {
    need!(netns(), tool("iperf3"), tool("openssl"));
    let folder = std::env::temp_dir().join(format!("lr-iperf3-{}", std::process::id()));
    fs::create_dir_all(&folder).unwrap();
    let path = |name: &str| folder.join(name).display().to_string();
    let openssl = |arguments: &str| {
        let mut command = Command::new("openssl");
        command.args(arguments.split_whitespace());
        run_within(command, LIMIT).expect_code(0)
    };
    openssl(&format!("genrsa -traditional -out {} 2048", path("private.pem")));
    openssl(&format!("rsa -in {} -pubout -out {}", path("private.pem"), path("public.pem")));
    // SHA-256 of {mario}rossi.
    let hash = "bf7a49a846d44b454a5d11e7acfaf13d138bbe0b7483aa3e050879700572709b";
    fs::write(path("users.csv"), format!("# users\nmario,{hash}\n")).unwrap();
    let wire = Wire::new();
    let keys = format!(
        "--rsa-private-key-path {} --authorized-users-path {}",
        path("private.pem"),
        path("users.csv")
    );
    let user = format!("-t 1 -b 10M --username mario --rsa-public-key-path {}", path("public.pem"));
    let run = |who, port: u16, password: &str, padding: &str| {
        let mut command = client(&wire, who, &format!("-p {port} {user} {padding}"));
        command.env("IPERF3_PASSWORD", password);
        run_within(command, LIMIT)
    };
    // 3.12 pads in the old way.
    let _old = serve(&wire, Who::Ours, &format!("-p 5401 {keys} --use-pkcs1-padding"));
    run(Who::Real, 5401, "rossi", "").expect_code(0);
    run(Who::Ours, 5401, "rossi", "--use-pkcs1-padding").expect_code(0);
    assert_ne!(run(Who::Real, 5401, "verdi", "").code(), 0);
    let _new = serve(&wire, Who::Ours, &format!("-p 5402 {keys}"));
    run(Who::Ours, 5402, "rossi", "").expect_code(0);
    let refused = run(Who::Ours, 5402, "verdi", "").expect_code(1);
    assert!(refused.stderr.contains("authentication failed"), "{}", refused.output());
    let nobody = run_within(client(&wire, Who::Ours, "-p 5402 -t 1"), LIMIT).expect_code(1);
    assert!(nobody.stderr.contains("authentication failed"), "{}", nobody.output());
    let _real = serve(&wire, Who::Real, &format!("-p 5403 {keys}"));
    run(Who::Ours, 5403, "rossi", "--use-pkcs1-padding").expect_code(0);
    fs::remove_dir_all(&folder).unwrap();
}

#[test]
fn a_dead_client_leaves_the_server_as_it_was() {
    need!(netns(), tool("iperf3"));
    let wire = Wire::new();
    let mut server = serve(&wire, Who::Ours, "");
    let settle = || std::thread::sleep(Duration::from_millis(800));
    run_within(client(&wire, Who::Real, "-t 1 -b 10M"), LIMIT).expect_code(0);
    settle();
    let before = descriptors(&server);
    for arguments in ["-t 10", "-t 10 -R", "-u -t 10 -b 10M", "-t 10 --bidir -P 2"] {
        let victim = ChildGuard::spawn(client(&wire, Who::Real, arguments));
        settle();
        victim.signal_group(Signal::SIGKILL);
    }
    let interrupted = ChildGuard::spawn(client(&wire, Who::Ours, "-t 10"));
    settle();
    interrupted.signal_group(Signal::SIGINT);
    let shown = interrupted.wait_within(LIMIT);
    assert!(shown.stdout.contains("sender"), "{}", shown.output());
    settle();
    run_within(client(&wire, Who::Real, "-t 1 -b 10M"), LIMIT).expect_code(0);
    settle();
    assert_eq!(descriptors(&server), before);
    assert!(server.is_running());
    server.signal(Signal::SIGINT);
    server.wait_within(LIMIT).expect_code(0);
}

fn descriptors(server: &ChildGuard) -> usize {
    // The command runs under `ip netns exec`, which becomes it.
    fs::read_dir(format!("/proc/{}/fd", server.pid())).expect("a running server").count()
}

#[test]
fn strangers_take_no_stream_and_get_no_datagram() {
    need!(netns());
    let wire = Wire::new();
    let mut server = serve(&wire, Who::Ours, "");
    let mut stray = wire.left.command("bash");
    stray.args(["-c", "for i in $(seq 200); do echo 9876 >/dev/udp/198.18.0.2/5201; sleep 0.01; done"]);
    let strays = ChildGuard::spawn(stray);
    let result = json(&wire, Who::Ours, "-u -t 2 -b 5M -R -l 1000");
    assert!(result.number("/end/sum_received/packets") > 1000.0);
    drop(strays);
    let mut garbage = wire.left.command("bash");
    garbage.args([
        "-c",
        "exec 3<>/dev/tcp/198.18.0.2/5201; head -c 4000 /dev/urandom >&3; timeout 3 cat <&3 >/dev/null",
    ]);
    run_within(garbage, LIMIT);
    run_within(client(&wire, Who::Ours, "-t 1 -b 10M"), LIMIT).expect_code(0);
    assert!(server.is_running());
}

#[test]
fn a_server_that_stops_tells_its_clients() {
    need!(netns(), tool("iperf3"));
    let wire = Wire::new();
    for who in [Who::Ours, Who::Real] {
        let server = serve(&wire, Who::Ours, "");
        let begin = Instant::now();
        let running = ChildGuard::spawn(client(&wire, who, "-t 10 -b 10M"));
        std::thread::sleep(Duration::from_millis(800));
        server.signal(Signal::SIGINT);
        server.wait_within(LIMIT).expect_code(0);
        let ended = running.wait_within(LIMIT);
        assert_eq!(ended.code(), 1, "{}", ended.output());
        assert!(ended.stderr.contains("terminated"), "{}", ended.output());
        assert!(begin.elapsed() < Duration::from_secs(6));
    }
}

#[test]
fn json_has_the_keys_of_the_real_one() {
    need!(netns(), tool("iperf3"));
    let wire = Wire::new();
    let _ours = serve(&wire, Who::Ours, "");
    // Any file will do.
    let file = format!("-t 1 -F {}", env!("CARGO_MANIFEST_PATH"));
    for arguments in [
        "-t 1 -M 1000",
        "-t 1 -R",
        "-t 1 --bidir -P 2",
        "-u -t 1 -b 5M",
        "-u -t 1 -b 5M --bidir",
        "-t 1 -Z -S 16 --get-server-output",
        &file,
    ] {
        let real = json(&wire, Who::Real, arguments);
        let ours = json(&wire, Who::Ours, arguments);
        let mut missing = Vec::new();
        missing_keys(&real.0, &ours.0, String::new(), &mut missing);
        assert!(missing.is_empty(), "{arguments}: {missing:?}");
    }
}

fn missing_keys(real: &serde_json::Value, ours: &serde_json::Value, path: String, missing: &mut Vec<String>) {
    if let Some(object) = real.as_object() {
        for (key, value) in object {
            match ours.get(key) {
                None => missing.push(format!("{path}/{key}")),
                Some(other) => missing_keys(value, other, format!("{path}/{key}"), missing),
            }
        }
    }
    if let (Some(real), Some(ours)) = (real.as_array(), ours.as_array()) {
        for (index, (real, ours)) in real.iter().zip(ours).enumerate() {
            missing_keys(real, ours, format!("{path}/{index}"), missing);
        }
    }
}

#[test]
fn a_file_arrives_as_it_was_sent() {
    need!(netns());
    let folder = std::env::temp_dir().join(format!("lr-iperf3-file-{}", std::process::id()));
    fs::create_dir_all(&folder).unwrap();
    let (source, copy) = (folder.join("source"), folder.join("copy"));
    let content: Vec<u8> = (0..3_000_017_u32).map(|i| (i.wrapping_mul(2_654_435_761) >> 24) as u8).collect();
    fs::File::create(&source).unwrap().write_all(&content).unwrap();
    let wire = Wire::new();
    let server = serve(&wire, Who::Ours, &format!("-1 -F {}", copy.display()));
    let sent = json(&wire, Who::Ours, &format!("-F {}", source.display()));
    server.wait_within(LIMIT).expect_code(0);
    assert_eq!(sent.number("/end/sum_sent/bytes"), content.len() as f64);
    assert_eq!(sent.number("/end/streams/0/diskfile/size"), content.len() as f64);
    assert_eq!(sent.number("/end/streams/0/diskfile/percent_received"), 100.0);
    let mut received = Vec::new();
    fs::File::open(&copy).unwrap().read_to_end(&mut received).unwrap();
    assert!(received == content, "{} of {} bytes", received.len(), content.len());
    fs::remove_dir_all(&folder).unwrap();
}
