//! Strangers at `linerate serve`: it outlives them all, still serves, and holds nothing of theirs.

#![expect(clippy::unwrap_used, reason = "helpers of tests; the lint knows only test functions")]

use std::io::{Read, Write};
use std::net::{Shutdown, TcpStream};
use std::time::{Duration, Instant};

use linerate_testkit::{ChildGuard, Program, eventually, free_tcp_port};

const LIMIT: Duration = Duration::from_secs(30);

fn linerate() -> Program {
    Program::new(env!("CARGO_BIN_EXE_linerate"))
}

struct Server {
    child: ChildGuard,
    port: u16,
    descriptors: usize,
    threads: usize,
}

impl Server {
    fn start(options: &[&str]) -> Self {
        let port = free_tcp_port();
        let text = port.to_string();
        let own = ["serve", "--bind", "127.0.0.1", "--only", "linerate", "--port", &text];
        let mut child = ChildGuard::spawn(linerate().command(&[&own[..], options].concat()));
        child.wait_for_text("serving", LIMIT);
        let mut server = Self { child, port, descriptors: 0, threads: 0 };
        // What a first client makes it open for good is not counted against the later ones.
        server.serve_one();
        (server.descriptors, server.threads) = server.held();
        server
    }

    fn connect(&self) -> TcpStream {
        let stream = TcpStream::connect(("127.0.0.1", self.port)).unwrap();
        stream.set_read_timeout(Some(LIMIT)).unwrap();
        stream.set_write_timeout(Some(LIMIT)).unwrap();
        stream
    }

    /// Open files and threads.
    fn held(&self) -> (usize, usize) {
        let count =
            |folder: &str| std::fs::read_dir(format!("/proc/{}/{folder}", self.child.pid())).unwrap().count();
        (count("fd"), count("task"))
    }

    /// An honest client.
    fn serve_one(&mut self) {
        let node = format!("tcp:127.0.0.1:{}", self.port);
        let options = ["run", &node, "-w", "tcp-rr", "-t", "0.1", "--warmup", "0", "-q"];
        linerate().run(&options).expect_code(0);
        assert!(self.child.is_running());
    }

    #[track_caller]
    fn assert_unharmed(&mut self) {
        self.serve_one();
        let (descriptors, threads) = (self.descriptors, self.threads);
        eventually(Duration::from_secs(15), "the server to let go of everything", || {
            let held = self.held();
            (held.0 <= descriptors && held.1 <= threads).then_some(())
        });
    }
}

fn frame(json: &str) -> Vec<u8> {
    let length = u32::try_from(json.len()).unwrap();
    [&length.to_be_bytes(), json.as_bytes()].concat()
}

const HELLO: &str = r#"{"request":"hello","with":{"protocol":PROTOCOL,"version":"0","nonce":"00"}}"#;

fn hello() -> String {
    HELLO.replace("PROTOCOL", &linerate_agent::protocol::PROTOCOL.to_string())
}

/// Reads one frame; `None` where the server hung up.
fn answer(stream: &mut TcpStream) -> Option<String> {
    let mut header = [0; 4];
    stream.read_exact(&mut header).ok()?;
    let mut body = vec![0; u32::from_be_bytes(header) as usize];
    stream.read_exact(&mut body).ok()?;
    Some(String::from_utf8(body).unwrap())
}

/// A client that the server has welcomed.
fn welcomed(server: &Server) -> TcpStream {
    let mut stream = server.connect();
    stream.write_all(&frame(&hello())).unwrap();
    assert!(answer(&mut stream).unwrap().contains("hello"));
    assert!(answer(&mut stream).unwrap().contains("welcome"));
    stream
}

/// Waits for the server to hang up.
#[track_caller]
fn assert_hung_up(stream: &mut TcpStream, limit: Duration) {
    let start = Instant::now();
    stream.set_read_timeout(Some(limit)).unwrap();
    let mut rest = [0; 4096];
    loop {
        match stream.read(&mut rest) {
            Ok(0) => break,
            Ok(_) => assert!(start.elapsed() < limit, "still talking after {limit:?}"),
            Err(e) if e.kind() == std::io::ErrorKind::ConnectionReset => break,
            Err(e) => panic!("not hung up after {limit:?}: {e}"),
        }
    }
}

/// xorshift64: bytes that are the same in every run.
fn noise(seed: u64, length: usize) -> Vec<u8> {
    let mut state = seed * 2 + 1;
    let mut next = || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state as u8
    };
    (0..length).map(|_| next()).collect()
}

#[test]
fn random_truncated_and_oversize_frames_are_survived() {
    let mut server = Server::start(&[]);
    for seed in 0..60 {
        let _ = server.connect().write_all(&noise(seed, 1 + (seed as usize * 71) % 3000));
    }
    let hello = frame(&hello());
    for cut in 0..hello.len() {
        server.connect().write_all(&hello[..cut]).unwrap();
    }
    for length in [4097_u32, 1 << 20, 64 << 20, u32::MAX] {
        let mut stream = server.connect();
        stream.write_all(&length.to_be_bytes()).unwrap();
        assert_hung_up(&mut stream, Duration::from_secs(3));
    }
    let deep = "[".repeat(4000);
    for json in ["", "null", "{}", "\"hello\"", "{\"request\":\"hello\"}", "{\"request\":\"links\"}", &deep] {
        let mut stream = server.connect();
        stream.write_all(&frame(json)).unwrap();
        assert_hung_up(&mut stream, Duration::from_secs(3));
    }
    server.assert_unharmed();
}

#[test]
fn requests_out_of_order_and_noise_after_the_greeting_are_survived() {
    let mut server = Server::start(&[]);
    let schedule = r#"{"traffic_start_ns":0,"window_start_ns":0,"window_end_ns":18446744073709551615}"#;
    for json in [
        r#"{"request":"await-ready"}"#.to_owned(),
        r#"{"request":"finish","with":{"sent_in_window":[]}}"#.to_owned(),
        format!(r#"{{"request":"run","with":{schedule}}}"#),
        r#"{"request":"route","with":{"to":"127.0.0.1"}}"#.to_owned(),
        hello(),
    ] {
        let mut stream = welcomed(&server);
        stream.write_all(&frame(&json)).unwrap();
        let answer = answer(&mut stream);
        assert!(answer.as_ref().is_none_or(|a| a.contains("refused")), "{json}: {answer:?}");
    }
    for seed in 0..30 {
        let mut stream = welcomed(&server);
        let bytes = noise(seed, 500);
        stream.write_all(&frame(&String::from_utf8_lossy(&bytes))).unwrap();
        assert_hung_up(&mut stream, Duration::from_secs(3));
    }
    server.assert_unharmed();
}

#[test]
fn an_open_trial_that_nobody_comes_to_is_let_go_of_with_its_client() {
    let mut server = Server::start(&[]);
    let trial = r#"{"workload":{"kind":"udp-rr","request":64,"response":1400,"in_flight":null,"rate":null,
        "timeout_ns":200000000,"socket":{"buffer_bytes":null,"tos":null}},"family":"4","streams":64,
        "amount":{"duration-ns":1000000000},"warmup_ns":0,"interval_ns":null,"verify_seed":null,
        "pin":{"dut":[],"peer":[]},"repeat":0}"#;
    for side in ["peer", "dut"] {
        let mut stream = welcomed(&server);
        let prepare = format!(
            r#"{{"request":"prepare","with":{{"trial":{trial},"side":"{side}","token":"{}","local":"198.51.100.1",
            "scope_id":0,"remote":{{"address":"198.51.100.7","ports":[9]}},"link":"eth0"}}}}"#,
            "ab".repeat(16)
        );
        stream.write_all(&frame(&prepare)).unwrap();
        let answer = answer(&mut stream).unwrap();
        // A server is never the end that connects: nobody can send it against others.
        let expected = if side == "peer" { "prepared" } else { "refused" };
        assert!(answer.contains(expected), "{answer}");
    }
    server.assert_unharmed();
}

#[test]
fn slow_and_silent_clients_hold_up_nobody() {
    let mut server = Server::start(&[]);
    let silent: Vec<TcpStream> = (0..10).map(|_| server.connect()).collect();
    let mut slow = server.connect();
    let bytes = frame(&hello());
    let started = Instant::now();
    for byte in &bytes {
        slow.write_all(std::slice::from_ref(byte)).unwrap();
        std::thread::sleep(Duration::from_millis(5));
    }
    assert!(answer(&mut slow).unwrap().contains("hello"));
    server.serve_one();
    assert!(started.elapsed() < Duration::from_secs(5), "{:?}", started.elapsed());
    // They are sent away when they have not greeted for long enough.
    for mut stream in silent {
        assert_hung_up(&mut stream, Duration::from_secs(12));
    }
    drop(slow);
    server.assert_unharmed();
}

#[test]
fn two_hundred_connections_at_once_are_survived() {
    let mut server = Server::start(&["--max-clients", "16"]);
    let many: Vec<TcpStream> = (0..200).map(|_| server.connect()).collect();
    let turned_away = many
        .iter()
        .filter(|stream| {
            let mut stream = stream.try_clone().unwrap();
            stream.set_read_timeout(Some(Duration::from_millis(200))).unwrap();
            answer(&mut stream).is_some_and(|a| a.contains("--max-clients"))
                || stream.peek(&mut [0]).is_ok_and(|n| n == 0)
        })
        .count();
    assert!(turned_away >= 150, "{turned_away} of 200 were turned away");
    for stream in &many {
        let _ = stream.shutdown(Shutdown::Both);
    }
    drop(many);
    eventually(LIMIT, "a place for an honest client", || {
        let node = format!("tcp:127.0.0.1:{}", server.port);
        linerate()
            .run(&["run", &node, "-w", "tcp-rr", "-t", "0.1", "--warmup", "0", "-q"])
            .success()
            .then_some(())
    });
    server.assert_unharmed();
}

#[test]
fn a_client_that_stops_reading_or_vanishes_in_the_middle_is_let_go_of() {
    let mut server = Server::start(&[]);
    let node = format!("tcp:127.0.0.1:{}", server.port);
    for workload in ["tcp-stream", "tcp-reverse", "tcp-bidir", "udp-stream", "tcp-rr", "udp-rr", "tcp-crr"] {
        let options = ["run", &node, "-w", workload, "-t", "20", "-q"];
        let child = ChildGuard::spawn(linerate().command(&options));
        std::thread::sleep(Duration::from_millis(400));
        child.signal(nix::sys::signal::Signal::SIGKILL);
        child.wait_within(LIMIT);
    }
    server.assert_unharmed();
}
