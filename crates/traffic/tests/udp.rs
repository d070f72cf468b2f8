//! UDP workloads, both sides in one process over loopback.

mod common;

use std::net::UdpSocket;
use std::time::{Duration, Instant};

use common::{Pair, no_errors, sides, trial, udp, udp_rr};
use linerate_model::trial::{Amount, Family, Trial};
use linerate_model::units::{ByteCount, Rate, RateUnit};
use linerate_model::workload::{UdpOptions, UdpStream, Workload};
use linerate_traffic::{Endpoint, Phase};

const FAMILIES: [Family; 2] = [Family::V4, Family::V6];

fn pps(per_second: u64) -> Option<Rate> {
    Some(Rate { per_second, unit: RateUnit::PacketsPerSecond })
}

fn rps(per_second: u64) -> Option<Rate> {
    Some(Rate { per_second, unit: RateUnit::RequestsPerSecond })
}

#[test]
fn a_paced_stream_arrives_whole_and_in_order() {
    for family in FAMILIES {
        for size in [16, 64, 1472, 65_507] {
            let seen = Pair::open(&Trial { family, streams: 2, ..trial(udp(size, pps(2000))) }).run();
            no_errors(&seen.dut);
            no_errors(&seen.peer);
            for (dut, peer) in seen.dut.streams.iter().zip(&seen.peer.streams) {
                let (sent, got) = (dut.udp.unwrap(), peer.udp.unwrap());
                assert!((150..=300).contains(&sent.sent), "{}", sent.sent);
                assert_eq!(sent.sent, got.received);
                assert_eq!((got.duplicates, got.reordered, got.too_late, got.socket_drops), (0, 0, 0, 0));
                assert!(got.jitter_ns > 0 && got.jitter_ns < 100_000_000);
                assert_eq!(dut.total.sent, peer.total.received);
                assert_eq!(dut.total.sent.bytes, dut.total.sent.messages * size);
                assert_eq!(dut.local, peer.remote);
            }
        }
    }
}

#[test]
fn counted_bytes_are_all_sent() {
    let amount = Amount::Bytes(100_001);
    let (dut, peer) = Pair::open(&Trial { streams: 2, amount, ..trial(udp(1000, pps(2000))) }).run_counted();
    no_errors(&dut);
    no_errors(&peer);
    assert_eq!(dut.streams[0].total.sent.bytes, 50_001 + 15, "the last datagram is a header at least");
    assert_eq!(dut.streams[1].total.sent.bytes, 50_000);
    assert_eq!(peer.streams[0].udp.unwrap().received, 51);
}

#[test]
fn every_byte_is_checked() {
    let workloads = [
        udp(16, pps(2000)),
        udp(1472, pps(2000)),
        udp_rr(100, 1400, None, None),
        udp_rr(3000, 9, Some(5), None),
    ];
    for workload in workloads {
        let seen = Pair::open(&Trial { streams: 2, verify_seed: Some(9), ..trial(workload.clone()) }).run();
        for (side, receives) in [(&seen.peer, true), (&seen.dut, workload.peer_sends())] {
            no_errors(side);
            for stream in side.streams.iter().filter(|_| receives) {
                let found = stream.verify.unwrap();
                assert_eq!((found.bad_bytes, found.first_bad_offset), (0, None), "{workload:?}");
                assert_eq!(found.checked_bytes > 0, workload.size_text() != "16");
            }
        }
    }
}

#[test]
fn what_the_receivers_socket_drops_is_counted() {
    let socket = UdpOptions { buffer_bytes: Some(ByteCount(3000)), tos: None };
    let workload = Workload::UdpStream(UdpStream { size: ByteCount(1000), rate: None, socket });
    let seen = Pair::open(&trial(workload)).run();
    no_errors(&seen.dut);
    no_errors(&seen.peer);
    let (sent, got) = (seen.dut.streams[0].udp.unwrap(), seen.peer.streams[0].udp.unwrap());
    assert!(got.received < sent.sent, "a socket of 6000 bytes can't keep up");
    let lost = sent.sent - got.received;
    // Between the last datagram of the warm-up and the first of the window nothing tells whose drops they were.
    assert!(got.socket_drops.abs_diff(lost) * 10 <= lost, "{} of {lost}", got.socket_drops);
}

#[test]
fn transactions_are_timed() {
    for family in FAMILIES {
        for workload in [
            udp_rr(1, 1, None, None),
            udp_rr(1, 1, Some(100), None),
            udp_rr(64, 1000, Some(8), None),
            udp_rr(64, 64, None, rps(2000)),
        ] {
            let seen = Pair::open(&Trial { family, streams: 2, ..trial(workload.clone()) }).run();
            no_errors(&seen.dut);
            no_errors(&seen.peer);
            for (stream, window) in seen.dut.streams.iter().zip(&seen.dut_window.streams) {
                let (udp, latency) = (stream.udp.unwrap(), stream.latency.as_ref().unwrap());
                assert_eq!(udp.sent, udp.received + udp.requests_lost, "{workload:?}");
                assert_eq!((udp.requests_lost, udp.duplicates, udp.too_late), (0, 0, 0), "{workload:?}");
                assert!(latency.total() > 0 && latency.min_ns > 1000);
                if workload.rate().is_some() {
                    assert!((150..=250).contains(&window.transactions), "{}", window.transactions);
                }
            }
        }
    }
}

#[test]
fn counted_transactions_are_exact() {
    for in_flight in [None, Some(10)] {
        let amount = Amount::Transactions(1001);
        let (dut, peer) =
            Pair::open(&Trial { streams: 2, amount, ..trial(udp_rr(8, 8, in_flight, None)) }).run_counted();
        no_errors(&dut);
        no_errors(&peer);
        assert_eq!(dut.streams[0].total.transactions, 501);
        assert_eq!(dut.streams[1].total.transactions, 500);
    }
}

/// A relay between client and server that passes on what `keep` lets it: the n-th datagram towards the server, from 0.
#[expect(clippy::unwrap_used, reason = "helper of tests")]
fn relay(server: u16, keep: impl Fn(usize) -> bool + Send + 'static) -> u16 {
    let front = UdpSocket::bind("127.0.0.1:0").unwrap();
    let back = UdpSocket::bind("127.0.0.1:0").unwrap();
    back.connect(("127.0.0.1", server)).unwrap();
    let port = front.local_addr().unwrap().port();
    for socket in [&front, &back] {
        socket.set_read_timeout(Some(Duration::from_secs(3))).unwrap();
    }
    let (front_too, back_too) = (front.try_clone().unwrap(), back.try_clone().unwrap());
    let (client, known) = std::sync::mpsc::channel();
    std::thread::spawn(move || {
        let mut buffer = [0; 2000];
        for number in 0.. {
            let Ok((count, from)) = front.recv_from(&mut buffer) else { return };
            if number == 0 {
                client.send(from).unwrap();
            }
            if keep(number) && back.send(&buffer[..count]).is_err() {
                return;
            }
        }
    });
    std::thread::spawn(move || {
        let mut buffer = [0; 2000];
        let client = known.recv().unwrap();
        while let Ok(count) = back_too.recv(&mut buffer) {
            if front_too.send_to(&buffer[..count], client).is_err() {
                return;
            }
        }
    });
    port
}

#[test]
fn a_lossy_path_is_proved_and_its_loss_counted() {
    // Loses the first HELLO and the first PROOF, then every tenth datagram.
    let (dut, peer) = sides(&trial(udp(100, pps(2000))));
    let mut server = Endpoint::listen(&peer).unwrap();
    let port = relay(server.ports()[0], |n| n != 0 && n != 2 && (n < 5 || n % 10 != 0));
    let mut client = Endpoint::connect(&dut, dut.local, &[port]).unwrap();
    server.wait_ready(Duration::from_secs(5)).unwrap();
    server.start(0);
    client.enter_phase(Phase::Window);
    client.start(0);
    std::thread::sleep(Duration::from_millis(200));
    client.stop();
    let sent = client.finish(None);
    no_errors(&sent);
    let sent = sent.streams[0].udp.unwrap().sent;
    let got = server.finish(Some(&[sent]));
    no_errors(&got);
    let lost = sent - got.streams[0].udp.unwrap().received;
    assert!(sent >= 300 && lost.abs_diff(sent / 10) <= 2, "{lost} of {sent}");
}

#[test]
fn lost_requests_are_replaced() {
    let mut workload = udp_rr(8, 8, Some(2), None);
    if let Workload::UdpRr(w) = &mut workload {
        w.timeout_ns = 10_000_000;
    }
    let amount = Amount::Transactions(200);
    let (dut, peer) = sides(&Trial { amount, ..trial(workload) });
    let mut server = Endpoint::listen(&peer).unwrap();
    let port = relay(server.ports()[0], |n| n < 5 || n % 10 != 0);
    let mut client = Endpoint::connect(&dut, dut.local, &[port]).unwrap();
    server.wait_ready(Duration::from_secs(5)).unwrap();
    server.start(0);
    client.enter_phase(Phase::Window);
    client.start(0);
    assert!(client.wait_done(Duration::from_secs(20)).unwrap().is_some());
    let result = client.finish(None);
    no_errors(&result);
    let udp = result.streams[0].udp.unwrap();
    assert_eq!(result.streams[0].total.transactions, 200);
    assert!((15..=30).contains(&udp.requests_lost), "{}", udp.requests_lost);
    assert_eq!(udp.received, 200);
}

#[test]
fn a_server_answers_only_who_knows_the_token() {
    let (dut, peer) = sides(&trial(udp(100, pps(1000))));
    let mut server = Endpoint::listen(&peer).unwrap();
    let stranger = UdpSocket::bind("127.0.0.1:0").unwrap();
    stranger.set_read_timeout(Some(Duration::from_millis(100))).unwrap();
    stranger.connect(("127.0.0.1", server.ports()[0])).unwrap();
    for _ in 0..10 {
        stranger.send(&[b'x'; 48]).unwrap();
    }
    assert!(stranger.recv(&mut [0; 100]).is_err());
    let mut client = Endpoint::connect(&dut, dut.local, server.ports()).unwrap();
    server.wait_ready(Duration::from_secs(5)).unwrap();
    server.start(0);
    client.start(0);
    for _ in 0..10 {
        // Refused by the kernel now: the socket belongs to the client.
        let _refused = stranger.send(&[b'x'; 100]);
    }
    std::thread::sleep(Duration::from_millis(50));
    client.stop();
    let sent = client.finish(None).streams[0].total.sent;
    let result = server.finish(None);
    assert_eq!(result.streams[0].total.received, sent);
    assert_eq!(result.strays, 10);
}

#[test]
fn nobody_there_is_refused_in_time() {
    let (dut, peer) = sides(&trial(udp(100, None)));
    let server = Endpoint::listen(&peer).unwrap();
    let port = server.ports()[0];
    drop(server);
    let start = Instant::now();
    let error = Endpoint::connect(&dut, dut.local, &[port]).unwrap_err().to_string();
    assert!(error.contains(&format!("127.0.0.1:{port}")) && error.contains("refused"), "{error}");
    assert!(start.elapsed() < Duration::from_secs(11));
    let error = Endpoint::connect(&dut, dut.local, &[]).unwrap_err().to_string();
    assert!(error.contains("0 ports where 1"), "{error}");
}

#[test]
fn a_dead_peer_is_an_error_and_not_a_hang() {
    for workload in [udp(100, pps(1000)), udp_rr(1, 1, None, None)] {
        let mut pair = Pair::open(&trial(workload.clone()));
        pair.start();
        pair.enter(Phase::Window);
        std::thread::sleep(Duration::from_millis(30));
        drop(pair.peer);
        let error = pair.dut.wait_done(Duration::from_secs(2)).unwrap_err().to_string();
        assert!(error.contains("refused"), "{workload:?}: {error}");
        assert!(pair.dut.finish(None).streams[0].error.is_some());
    }
}

#[test]
fn a_sender_that_never_stops_does_not_hold_the_receiver() {
    let mut pair = Pair::open(&trial(udp(100, pps(1000))));
    pair.start();
    let start = Instant::now();
    let result = pair.peer.finish(Some(&[u64::MAX]));
    assert!(start.elapsed() < Duration::from_secs(5));
    no_errors(&result);
    drop(pair.dut);
}
