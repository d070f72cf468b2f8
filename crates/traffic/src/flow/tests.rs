use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream, UdpSocket};

use linerate_model::bench::flow::FlowRole;

use super::*;

const LIMIT: Duration = Duration::from_secs(20);

fn spec(transport: FlowTransport, role: FlowRole) -> FlowSpec {
    FlowSpec {
        transport,
        role,
        bind: None,
        sends: matches!(role, FlowRole::Connect(_)),
        receives: matches!(role, FlowRole::Listen(_)),
        connections: 1,
        write_bytes: vec![1000, 17, 65_000],
        method: FlowMethod::Write,
        bits_per_second: 0,
        bytes_per_connection: Some(1_000_000),
        duration_ns: 0,
        seed: 42,
        mss_bytes: 0,
        reconnect: false,
    }
}

fn pair(transport: FlowTransport, edit: impl Fn(&mut FlowSpec)) -> (Flow, Flow) {
    let here: SocketAddr = "127.0.0.1:0".parse().unwrap();
    let mut listen = spec(transport, FlowRole::Listen(here));
    edit(&mut listen);
    let listener = Flow::start(&listen).unwrap();
    let mut connect = spec(transport, FlowRole::Connect(SocketAddr::new(here.ip(), listener.port())));
    edit(&mut connect);
    (listener, Flow::start(&connect).unwrap())
}

fn wait(flow: &Flow) {
    let end = Instant::now() + LIMIT;
    while !flow.look().over {
        assert!(Instant::now() < end, "{:?}", flow.look());
        thread::sleep(POLL);
    }
}

#[test]
fn every_method_carries_every_byte_over_tcp() {
    for method in [
        FlowMethod::Write,
        FlowMethod::Writev,
        FlowMethod::Sendfile,
        FlowMethod::ZeroCopy,
        FlowMethod::Splice,
    ] {
        let (listener, connector) = pair(FlowTransport::Tcp, |spec| {
            spec.method = method;
            spec.connections = 3;
            spec.write_bytes = vec![1, 4095, 70_001, 3, 300_000];
        });
        wait(&connector);
        let (sent, received) = (connector.finish(LIMIT), listener.finish(LIMIT));
        assert_eq!(
            (sent.sent_bytes, sent.finished, sent.broken.len()),
            (3_000_000, 3, 0),
            "{method:?} {sent:?}"
        );
        assert_eq!(
            (received.received_bytes, received.wrong_bytes),
            (3_000_000, 0),
            "{method:?} {received:?}"
        );
        assert_eq!((received.finished, received.broken.len()), (3, 0), "{method:?} {received:?}");
        assert!(sent.segments_sent > 0);
        let copied = sent.copied_after_all > 0;
        assert_eq!(copied, method == FlowMethod::ZeroCopy, "{method:?} {sent:?}");
    }
}

#[test]
fn both_directions_at_once_until_finished() {
    let (listener, connector) = pair(FlowTransport::Tcp, |spec| {
        (spec.sends, spec.receives) = (true, true);
        spec.bytes_per_connection = None;
        spec.connections = 2;
        spec.bits_per_second = 80_000_000;
    });
    thread::sleep(Duration::from_millis(300));
    let seen = connector.look();
    assert!(seen.sent_bytes > 0 && seen.received_bytes > 0 && !seen.over, "{seen:?}");
    let ending = thread::spawn(move || connector.finish(LIMIT));
    let (there, here) = (listener.finish(LIMIT), ending.join().unwrap());
    assert_eq!((here.sent_bytes, there.sent_bytes), (there.received_bytes, here.received_bytes));
    assert_eq!((here.finished, there.finished, here.wrong_bytes, there.wrong_bytes), (2, 2, 0, 0));
    // 10 Mbyte/s each way, of which there were some 300 ms.
    assert!(here.sent_bytes < 30_000_000, "{here:?}");
}

#[test]
fn a_wrong_byte_on_the_way_is_found_with_its_place() {
    let listen = spec(FlowTransport::Tcp, FlowRole::Listen("127.0.0.1:0".parse().unwrap()));
    let listener = Flow::start(&listen).unwrap();
    let relay = TcpListener::bind("127.0.0.1:0").unwrap();
    let connect = spec(FlowTransport::Tcp, FlowRole::Connect(relay.local_addr().unwrap()));
    let connector = Flow::start(&connect).unwrap();
    let (mut from, _) = relay.accept().unwrap();
    let mut to = TcpStream::connect(("127.0.0.1", listener.port())).unwrap();
    let mut all = Vec::new();
    from.read_to_end(&mut all).unwrap();
    // Twelve bytes say which connection it is.
    all[12 + 5000] ^= 0x80;
    to.write_all(&all).unwrap();
    drop((from, to));
    let (sent, received) = (connector.finish(LIMIT), listener.finish(LIMIT));
    let wrong = received.first_wrong.unwrap();
    assert_eq!((received.wrong_bytes, wrong.offset, wrong.expected ^ wrong.got), (1, 5000, 0x80));
    assert_eq!(sent.finished, 1);
}

#[test]
fn a_broken_connection_is_told_of_and_opened_again_where_asked() {
    for reconnect in [false, true] {
        let mut listen = spec(FlowTransport::Tcp, FlowRole::Listen("127.0.0.1:0".parse().unwrap()));
        (listen.reconnect, listen.bytes_per_connection) = (reconnect, None);
        let listener = Flow::start(&listen).unwrap();
        let relay = TcpListener::bind("127.0.0.1:0").unwrap();
        let mut connect = spec(FlowTransport::Tcp, FlowRole::Connect(relay.local_addr().unwrap()));
        (connect.reconnect, connect.bytes_per_connection) = (reconnect, None);
        connect.bits_per_second = 40_000_000;
        let connector = Flow::start(&connect).unwrap();
        let to = || TcpStream::connect(("127.0.0.1", listener.port())).unwrap();
        let (from, first) = (relay.accept().unwrap().0, to());
        std::io::copy(&mut (&from).take(300_000), &mut &first).unwrap();
        for end in [&from, &first] {
            // A close becomes a reset.
            socket2::SockRef::from(end).set_linger(Some(Duration::ZERO)).unwrap();
        }
        drop((from, first));
        let second = reconnect.then(|| (relay.accept().unwrap().0, to()));
        let copying = second
            .map(|(mut from, mut to)| thread::spawn(move || std::io::copy(&mut from, &mut to).unwrap()));
        thread::sleep(Duration::from_millis(100));
        let sent = connector.finish(LIMIT);
        if let Some(copying) = copying {
            assert!(copying.join().unwrap() > 0);
        }
        let received = listener.finish(LIMIT);
        assert_eq!((sent.broken.len(), received.broken.len()), (1, 1), "{sent:?} {received:?}");
        let expected = if reconnect { (1, 1) } else { (0, 0) };
        assert_eq!((sent.reconnects, sent.finished), expected, "{sent:?}");
        assert_eq!((received.reconnects, received.finished), expected, "{received:?}");
        assert_eq!(received.wrong_bytes, 0, "{received:?}");
    }
}

#[test]
fn datagrams_are_counted_and_compared() {
    for (method, both) in
        [(FlowMethod::Write, false), (FlowMethod::Writev, true), (FlowMethod::ZeroCopy, false)]
    {
        let (listener, connector) = pair(FlowTransport::Udp, |spec| {
            let listens = matches!(spec.role, FlowRole::Listen(_));
            spec.method = if listens && method == FlowMethod::ZeroCopy { FlowMethod::Write } else { method };
            spec.connections = 2;
            spec.write_bytes = vec![16, 17, 1472, 9000];
            spec.bytes_per_connection = Some(200_000);
            spec.bits_per_second = 200_000_000;
            if both {
                (spec.sends, spec.receives) = (true, true);
            }
        });
        wait(&connector);
        wait(&listener);
        let (sent, received) = (connector.finish(LIMIT), listener.finish(LIMIT));
        assert!(sent.sent_datagrams > 100, "{method:?} {sent:?}");
        assert_eq!(received.received_datagrams, sent.sent_datagrams, "{method:?} {sent:?} {received:?}");
        assert_eq!((received.wrong_bytes, received.duplicate_datagrams), (0, 0), "{received:?}");
        assert_eq!((sent.finished, received.finished), (2, 2), "{sent:?} {received:?}");
        if both {
            assert_eq!(sent.received_datagrams, received.sent_datagrams, "{sent:?} {received:?}");
        }
    }
}

#[test]
fn duplicates_and_mangled_datagrams_are_told_apart() {
    let mut listen = spec(FlowTransport::Udp, FlowRole::Listen("127.0.0.1:0".parse().unwrap()));
    listen.write_bytes = vec![100];
    let listener = Flow::start(&listen).unwrap();
    let relay = UdpSocket::bind("127.0.0.1:0").unwrap();
    relay.set_read_timeout(Some(LIMIT)).unwrap();
    let mut connect = spec(FlowTransport::Udp, FlowRole::Connect(relay.local_addr().unwrap()));
    connect.write_bytes = vec![100];
    connect.bytes_per_connection = Some(1000);
    let connector = Flow::start(&connect).unwrap();
    let to = SocketAddr::new("127.0.0.1".parse().unwrap(), listener.port());
    let mut buffer = [0; 2000];
    for number in 0..10 {
        let (count, _) = relay.recv_from(&mut buffer).unwrap();
        if number == 3 {
            relay.send_to(&buffer[..count], to).unwrap();
        }
        if number == 7 {
            buffer[50] ^= 1;
        }
        relay.send_to(&buffer[..count], to).unwrap();
    }
    wait(&connector);
    let received = listener.finish(LIMIT);
    assert_eq!((received.received_datagrams, received.duplicate_datagrams), (10, 1), "{received:?}");
    assert_eq!((received.wrong_bytes, received.first_wrong.unwrap().offset), (1, 50), "{received:?}");
}

#[test]
fn what_makes_no_sense_is_refused_and_what_does_not_end_is_cut_off() {
    let here = FlowRole::Listen("127.0.0.1:0".parse().unwrap());
    let refused = |edit: fn(&mut FlowSpec)| {
        let mut bad = spec(FlowTransport::Udp, here);
        edit(&mut bad);
        assert_eq!(Flow::start(&bad).unwrap_err().raw_os_error(), Some(nix::libc::EINVAL));
    };
    refused(|spec| spec.connections = 0);
    refused(|spec| spec.connections = 65);
    refused(|spec| spec.receives = false);
    refused(|spec| spec.write_bytes = vec![15]);
    refused(|spec| spec.method = FlowMethod::Sendfile);
    // Nobody ever comes, and a peer that never reads.
    let silent = TcpListener::bind("127.0.0.1:0").unwrap();
    let mut connect = spec(FlowTransport::Tcp, FlowRole::Connect(silent.local_addr().unwrap()));
    connect.bytes_per_connection = None;
    let (connector, listener) =
        (Flow::start(&connect).unwrap(), Flow::start(&spec(FlowTransport::Tcp, here)).unwrap());
    thread::sleep(Duration::from_millis(100));
    let begun = Instant::now();
    let report = connector.finish(Duration::from_millis(100));
    assert!(report.over && report.broken.len() == 1, "{report:?}");
    assert!(listener.finish(LIMIT).over);
    assert!(begun.elapsed() < LIMIT / 4);
}
