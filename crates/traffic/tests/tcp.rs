//! TCP workloads, both sides in one process over loopback.

mod common;

use std::io::{Read, Write};
use std::net::TcpStream as Plain;
use std::time::{Duration, Instant};

use common::{Pair, bidir, crr, no_errors, rr, sides, stream, trial};
use linerate_model::trial::{Amount, Family, Pinning, Trial};
use linerate_model::units::{ByteCount, Rate, RateUnit};
use linerate_model::workload::{SendMethod, TcpOptions, Workload};
use linerate_traffic::{Endpoint, Phase};

const FAMILIES: [Family; 2] = [Family::V4, Family::V6];

fn byte_workloads() -> Vec<Workload> {
    let sendfile = linerate_model::workload::TcpStream { send: SendMethod::Sendfile, ..stream(65536) };
    let zerocopy = |size| linerate_model::workload::TcpStream { send: SendMethod::Zerocopy, ..stream(size) };
    vec![
        Workload::TcpStream(stream(131_072)),
        Workload::TcpStream(stream(100)),
        Workload::TcpStream(sendfile),
        Workload::TcpStream(zerocopy(65536)),
        Workload::TcpReverse(zerocopy(100)),
        Workload::TcpBidir(linerate_model::workload::TcpBidir {
            stream: zerocopy(16384),
            one_connection: true,
        }),
        Workload::TcpReverse(stream(16384)),
        bidir(16384, false),
        bidir(16384, true),
    ]
}

#[test]
fn streams_move_the_same_bytes_on_both_ends() {
    for family in FAMILIES {
        for workload in byte_workloads() {
            let seen = Pair::open(&Trial { family, streams: 2, ..trial(workload.clone()) }).run();
            no_errors(&seen.dut);
            no_errors(&seen.peer);
            for (dut, peer) in seen.dut.streams.iter().zip(&seen.peer.streams) {
                assert_eq!(dut.total.sent.bytes, peer.total.received.bytes, "{workload:?}");
                assert_eq!(dut.total.received.bytes, peer.total.sent.bytes, "{workload:?}");
                assert_eq!(dut.total.sent.bytes > 0, workload.dut_sends());
                assert_eq!(peer.total.sent.bytes > 0, workload.peer_sends());
                assert_eq!(dut.local, peer.remote);
                assert!(dut.socket.send_buffer_bytes > 0 && dut.socket.mss_bytes > Some(0));
            }
            let moved = |s: &linerate_traffic::StreamCount| s.sent.bytes + s.received.bytes;
            assert!(seen.dut_window.streams.iter().all(|s| moved(s) > 0));
            assert!(seen.peer_window.streams.iter().all(|s| moved(s) > 0));
        }
    }
}

#[test]
fn counted_bytes_arrive_to_the_last() {
    for workload in byte_workloads() {
        let total = 1_000_003;
        let (dut, peer) =
            Pair::open(&Trial { streams: 3, amount: Amount::Bytes(total), ..trial(workload.clone()) })
                .run_counted();
        no_errors(&dut);
        no_errors(&peer);
        let sum =
            |r: &linerate_traffic::SideResult| r.streams.iter().map(|s| s.total.received.bytes).sum::<u64>();
        assert_eq!(sum(&peer), if workload.dut_sends() { total } else { 0 }, "{workload:?}");
        assert_eq!(sum(&dut), if workload.peer_sends() { total } else { 0 }, "{workload:?}");
    }
}

#[test]
fn every_byte_is_checked() {
    for workload in byte_workloads().into_iter().chain([
        rr(100, 3000, None, None),
        rr(7000, 50, Some(9), None),
        crr(100, 5000),
    ]) {
        let seen = Pair::open(&Trial { streams: 2, verify_seed: Some(42), ..trial(workload.clone()) }).run();
        no_errors(&seen.dut);
        no_errors(&seen.peer);
        for (side, sends) in [(&seen.peer, workload.dut_sends()), (&seen.dut, workload.peer_sends())] {
            for stream in side.streams.iter().filter(|_| sends) {
                let found = stream.verify.unwrap();
                assert_eq!((found.bad_bytes, found.first_bad_offset), (0, None), "{workload:?}");
                assert!(found.checked_bytes > 0, "{workload:?}");
                if !matches!(workload, Workload::TcpCrr(_)) {
                    assert_eq!(found.checked_bytes, stream.total.received.bytes);
                }
            }
        }
    }
}

#[test]
fn a_wrong_byte_is_located() {
    let trial = Trial {
        verify_seed: Some(1),
        amount: Amount::Bytes(10_000),
        ..trial(Workload::TcpStream(stream(4096)))
    };
    let (dut, peer) = sides(&trial);
    let mut server = Endpoint::listen(&peer).unwrap();
    // A man in the middle flips a bit of payload byte 5000; the preamble is 32 bytes.
    let relay = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let relay_port = relay.local_addr().unwrap().port();
    let server_port = server.ports()[0];
    let middle = std::thread::spawn(move || {
        let (mut from, _) = relay.accept().unwrap();
        let mut to = Plain::connect(("127.0.0.1", server_port)).unwrap();
        let mut bytes = Vec::new();
        let mut head = [0; 32];
        from.read_exact(&mut head).unwrap();
        to.write_all(&head).unwrap();
        from.read_to_end(&mut bytes).unwrap();
        bytes[5000] ^= 4;
        to.write_all(&bytes).unwrap();
    });
    let mut client = Endpoint::connect(&dut, dut.local, &[relay_port]).unwrap();
    server.wait_ready(Duration::from_secs(5)).unwrap();
    server.start(0);
    client.start(0);
    server.wait_done(Duration::from_secs(5)).unwrap().unwrap();
    middle.join().unwrap();
    no_errors(&client.finish(None));
    let found = server.finish(None).streams[0].verify.unwrap();
    assert_eq!((found.checked_bytes, found.bad_bytes, found.first_bad_offset), (10_000, 1, Some(5000)));
}

#[test]
fn transactions_are_timed() {
    let rate = Rate { per_second: 2000, unit: RateUnit::RequestsPerSecond };
    for family in FAMILIES {
        for workload in [
            rr(1, 1, None, None),
            rr(1, 1, Some(16), None),
            rr(200_000, 300_000, Some(16), None),
            rr(64, 128, None, Some(rate)),
            rr(64, 128, Some(1), Some(rate)),
            crr(1, 1),
            crr(64, 1024),
        ] {
            let seen = Pair::open(&Trial { family, streams: 2, ..trial(workload.clone()) }).run();
            no_errors(&seen.dut);
            no_errors(&seen.peer);
            for (stream, window) in seen.dut.streams.iter().zip(&seen.dut_window.streams) {
                let latency = stream.latency.as_ref().unwrap();
                assert!(latency.total() > 0, "{workload:?}");
                let share = latency.total() as f64 / window.transactions as f64;
                assert!((0.8..1.25).contains(&share), "{workload:?}: {share}");
                assert!(latency.min_ns > 1000 && latency.max_ns < 1_000_000_000, "{workload:?}");
                if workload.rate().is_some() {
                    assert!((150..=250).contains(&window.transactions), "{}", window.transactions);
                }
            }
            let transactions: u64 = seen.dut.streams.iter().map(|s| s.total.transactions).sum();
            let answered: u64 = seen.peer.streams.iter().map(|s| s.total.sent.messages).sum();
            assert!(transactions <= answered && answered <= transactions + 64);
            assert_eq!((seen.dut.strays, seen.peer.strays), (0, 0), "{workload:?}");
        }
    }
}

#[test]
fn counted_transactions_are_exact() {
    for workload in [rr(1, 1, None, None), rr(100, 100, Some(10), None), crr(20, 20)] {
        let amount = Amount::Transactions(1001);
        let (dut, peer) = Pair::open(&Trial { streams: 2, amount, ..trial(workload) }).run_counted();
        no_errors(&dut);
        no_errors(&peer);
        assert_eq!(dut.streams[0].total.transactions, 501);
        assert_eq!(dut.streams[1].total.transactions, 500);
        assert_eq!(dut.streams[0].latency.as_ref().unwrap().total(), 501);
        assert_eq!(peer.streams.iter().map(|s| s.total.sent.messages).sum::<u64>(), 1001);
    }
}

#[test]
fn a_paced_stream_keeps_its_rate() {
    let rate = Some(Rate { per_second: 80_000_000, unit: RateUnit::BitsPerSecond });
    let workload = Workload::TcpStream(linerate_model::workload::TcpStream { rate, ..stream(1000) });
    let seen = Pair::open(&Trial { streams: 2, ..trial(workload) }).run();
    no_errors(&seen.peer);
    let bytes: u64 = seen.peer_window.streams.iter().map(|s| s.received.bytes).sum();
    let expected = 10_000_000.0 * seen.peer_window.at_ns as f64 / 1e9;
    assert!((0.85..1.15).contains(&(bytes as f64 / expected)), "{bytes} of {expected}");
}

#[test]
fn options_reach_the_socket() {
    let socket = TcpOptions {
        buffer_bytes: Some(ByteCount(100_000)),
        nodelay: true,
        mss_bytes: Some(900),
        congestion: Some("reno".into()),
        tos: Some(0x20),
    };
    let workload = Workload::TcpStream(linerate_model::workload::TcpStream { socket, ..stream(8192) });
    let mut pair = Pair::open(&Trial { pin: Pinning { dut: vec![0], peer: vec![1] }, ..trial(workload) });
    assert_eq!(pair.dut.threads()[0].pinned_cpu, Some(0));
    assert_eq!(pair.peer.threads()[0].pinned_cpu, Some(1));
    pair.start();
    std::thread::sleep(Duration::from_millis(50));
    let info = pair.dut.tcp_info().unwrap()[0][0];
    assert!(info.snd_mss <= 900 && info.bytes_sent > Some(32) && info.busy_time_us > Some(0));
    let (dut, peer) = pair.finish();
    for side in [&dut, &peer] {
        let granted = &side.streams[0].socket;
        assert_eq!(granted.send_buffer_bytes, 200_000);
        assert_eq!(granted.receive_buffer_bytes, 200_000);
        assert_eq!(granted.congestion.as_deref(), Some("reno"));
        assert!(granted.mss_bytes <= Some(900));
        assert!(side.threads[0].cpu_ns > 0);
    }
}

#[test]
fn what_can_not_be_had_is_refused_by_name() {
    let socket = TcpOptions { congestion: Some("nosuch".into()), ..TcpOptions::default() };
    let workload = Workload::TcpStream(linerate_model::workload::TcpStream { socket, ..stream(8192) });
    let (_, peer) = sides(&trial(workload));
    assert!(Endpoint::listen(&peer).unwrap_err().to_string().contains("nosuch"));

    let pin = Pinning { dut: vec![900], peer: vec![] };
    let (dut, peer) = sides(&Trial { pin, ..trial(rr(1, 1, None, None)) });
    let server = Endpoint::listen(&peer).unwrap();
    let error = Endpoint::connect(&dut, dut.local, server.ports()).unwrap_err().to_string();
    assert!(error.contains("900"), "{error}");
    let port = server.ports()[0];
    drop(server);
    let (dut, _) = sides(&trial(rr(1, 1, None, None)));
    let error = Endpoint::connect(&dut, dut.local, &[port]).unwrap_err().to_string();
    assert!(error.contains(&format!("connect to 127.0.0.1:{port}")) && error.contains("refused"), "{error}");
}

#[test]
fn strangers_do_not_disturb() {
    for workload in [Workload::TcpStream(stream(16384)), rr(1, 1, None, None), crr(20, 20)] {
        let (dut, peer) = sides(&trial(workload.clone()));
        let mut server = Endpoint::listen(&peer).unwrap();
        let address = ("127.0.0.1", server.ports()[0]);
        let _silent = Plain::connect(address).unwrap();
        let mut loud = Plain::connect(address).unwrap();
        loud.write_all(&[b'x'; 100]).unwrap();
        let mut client = Endpoint::connect(&dut, dut.local, server.ports()).unwrap();
        server.wait_ready(Duration::from_secs(2)).unwrap();
        server.start(0);
        client.start(0);
        client.enter_phase(Phase::Window);
        let _silent_too = Plain::connect(address).unwrap();
        let mut loud = Plain::connect(address).unwrap();
        loud.write_all(&[b'x'; 100]).unwrap();
        std::thread::sleep(Duration::from_millis(100));
        server.enter_phase(Phase::Tail);
        client.enter_phase(Phase::Tail);
        client.stop();
        let result = client.finish(None);
        no_errors(&result);
        if let Some(latency) = &result.streams[0].latency {
            assert!(latency.max_ns < 500_000_000, "{workload:?}: {}", latency.max_ns);
        }
        let result = server.finish(None);
        no_errors(&result);
        assert!(result.strays >= 2, "{workload:?}: {}", result.strays);
    }
}

#[test]
fn not_enough_connections_is_said() {
    let (_, peer) = sides(&Trial { streams: 3, ..trial(rr(1, 1, None, None)) });
    let mut server = Endpoint::listen(&peer).unwrap();
    let error = server.wait_ready(Duration::from_millis(50)).unwrap_err().to_string();
    assert!(error.starts_with("3 of 3 connections did not arrive"), "{error}");
}

#[test]
fn a_dead_peer_is_an_error_and_not_a_hang() {
    for workload in [
        Workload::TcpStream(stream(16384)),
        Workload::TcpReverse(stream(16384)),
        rr(1, 1, None, None),
        rr(1, 1, Some(8), None),
        crr(20, 20),
    ] {
        let start = Instant::now();
        let mut pair = Pair::open(&trial(workload.clone()));
        pair.start();
        pair.enter(Phase::Window);
        std::thread::sleep(Duration::from_millis(30));
        drop(pair.peer);
        let outcome = pair.dut.wait_done(Duration::from_secs(4));
        let Err(error) = outcome else { panic!("{workload:?}: {outcome:?}") };
        assert!(error.to_string().contains("127.0.0.1"), "{workload:?}: {error}");
        let result = pair.dut.finish(None);
        assert!(result.streams[0].error.is_some(), "{workload:?}");
        assert!(start.elapsed() < Duration::from_secs(8));
    }
}

#[test]
fn a_stop_frees_threads_that_are_blocked() {
    // The peer never starts, so that the dut's threads block in send and in receive.
    for workload in [
        Workload::TcpStream(stream(1 << 20)),
        bidir(1 << 20, true),
        rr(1, 1, None, None),
        rr(1, 1, Some(8), None),
        crr(20, 20),
    ] {
        let mut pair = Pair::open(&trial(workload.clone()));
        pair.dut.start(0);
        std::thread::sleep(Duration::from_millis(50));
        let start = Instant::now();
        pair.dut.stop();
        drop(pair.dut.finish(None));
        assert!(start.elapsed() < Duration::from_secs(4), "{workload:?}");
    }
}

#[test]
fn silence_is_told_from_refusal() {
    // A listener whose queue is full drops what comes, as a firewall would.
    let full = socket2::Socket::new(socket2::Domain::IPV4, socket2::Type::STREAM, None).unwrap();
    full.bind(&"127.0.0.1:0".parse::<std::net::SocketAddr>().unwrap().into()).unwrap();
    full.listen(0).unwrap();
    let address = full.local_addr().unwrap().as_socket().unwrap();
    let _first = Plain::connect(address).unwrap();
    let (dut, _) = sides(&trial(rr(1, 1, None, None)));
    let start = Instant::now();
    let error = Endpoint::connect(&dut, dut.local, &[address.port()]).unwrap_err().to_string();
    assert!(error.contains(&address.to_string()) && error.contains("no answer within 10 s"), "{error}");
    assert!(start.elapsed() < Duration::from_secs(12));
}

#[test]
fn what_never_started_ends_at_once() {
    for workload in [Workload::TcpStream(stream(16384)), rr(1, 1, None, None), crr(1, 1)] {
        let pair = Pair::open(&trial(workload));
        let start = Instant::now();
        let (dut, peer) = pair.finish();
        assert!(start.elapsed() < Duration::from_secs(1));
        no_errors(&dut);
        no_errors(&peer);
    }
}

#[test]
fn many_streams_are_all_there() {
    let amount = Amount::Bytes(10_000_000);
    let (dut, peer) =
        Pair::open(&Trial { streams: 200, amount, ..trial(Workload::TcpStream(stream(4096))) }).run_counted();
    no_errors(&dut);
    no_errors(&peer);
    assert!(peer.streams.iter().all(|s| s.total.received.bytes == 50_000));
    assert_eq!(peer.threads.len(), 200);
}

#[test]
fn an_endpoint_may_be_shared() {
    fn shared<T: Send + Sync>() {}
    shared::<Endpoint>();
}

#[test]
fn dropping_ends_every_thread() {
    let mut pair = Pair::open(&Trial { streams: 4, ..trial(bidir(16384, false)) });
    pair.start();
    let tids: Vec<u32> = pair.dut.threads().iter().chain(&pair.peer.threads()).map(|t| t.tid).collect();
    assert_eq!(tids.len(), 16);
    let start = Instant::now();
    drop(pair);
    assert!(start.elapsed() < Duration::from_secs(2));
    for tid in tids {
        assert!(!std::path::Path::new(&format!("/proc/self/task/{tid}")).exists());
    }
}
