use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream, UdpSocket};
use std::sync::Arc;
use std::time::{Duration, Instant};

use socket2::Socket;

use super::*;

const LIMIT: Duration = Duration::from_secs(20);

fn tcp_pair() -> (Arc<Socket>, Arc<Socket>) {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
    let near = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
    let far = listener.accept().unwrap().0;
    near.set_nodelay(true).unwrap();
    far.set_nodelay(true).unwrap();
    (Arc::new(near.into()), Arc::new(far.into()))
}

fn udp_pair() -> (Arc<Socket>, Arc<Socket>) {
    let [near, far] = [(); 2].map(|()| UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).unwrap());
    near.connect(far.local_addr().unwrap()).unwrap();
    far.connect(near.local_addr().unwrap()).unwrap();
    (Arc::new(near.into()), Arc::new(far.into()))
}

#[test]
fn a_stream_ends_when_stopped_and_the_receiver_sees_the_end() {
    for sendfile in [false, true] {
        let (near, far) = tcp_pair();
        let plan = SendPlan { size: 3000, sendfile, ..SendPlan::default() };
        let buffer = Buffer::repeated(9000, b"netperf\0");
        let sender = Running::start("send", &near, None, move |tally, socket| {
            let mut latencies = Latencies::new();
            let end = send_stream(tally, socket, &buffer, &plan, Some(&mut latencies))?;
            Ok((end, latencies.into_data().total()))
        })
        .unwrap();
        let receiver =
            Running::start("recv", &far, None, |t, s| receive_stream(t, s, 65536, None, None)).unwrap();
        assert!(!sender.wait(Duration::from_millis(50)));
        let sent = sender.finish();
        let (end, calls) = sent.outcome.unwrap();
        assert_eq!((end, calls), (End::Stopped, sent.count.sent.messages));
        near.shutdown(std::net::Shutdown::Write).unwrap();
        assert!(receiver.wait(LIMIT));
        let received = receiver.finish();
        assert_eq!(received.outcome.unwrap(), End::Closed);
        assert_eq!(received.count.received.bytes, sent.count.sent.bytes);
    }
}

#[test]
fn a_sender_that_is_not_read_still_stops() {
    let (near, _far) = tcp_pair();
    let plan = SendPlan { size: 1 << 20, ..SendPlan::default() };
    let buffer = Buffer::repeated(1 << 20, b"");
    let sender =
        Running::start("send", &near, None, move |t, s| send_stream(t, s, &buffer, &plan, None)).unwrap();
    assert!(!sender.wait(Duration::from_millis(100)));
    let begun = Instant::now();
    assert_eq!(sender.finish().outcome.unwrap(), End::Stopped);
    assert!(begun.elapsed() < Duration::from_secs(5));
}

#[test]
fn a_paced_stream_keeps_its_rate() {
    let (near, far) = tcp_pair();
    let pace = Some(Pace::Every { interval: Duration::from_millis(10), messages: 5 });
    let plan = SendPlan { size: 100, total_bytes: Some(5000), pace, ..SendPlan::default() };
    let buffer = Buffer::repeated(100, b"x");
    let begun = Instant::now();
    let sender =
        Running::start("send", &near, None, move |t, s| send_stream(t, s, &buffer, &plan, None)).unwrap();
    let receiver =
        Running::start("recv", &far, None, |t, s| receive_stream(t, s, 65536, Some(5000), None)).unwrap();
    assert!(receiver.wait(LIMIT));
    assert!(begun.elapsed() >= Duration::from_millis(90));
    assert_eq!(
        (sender.finish().outcome.unwrap(), receiver.finish().outcome.unwrap()),
        (End::Done, End::Done)
    );
}

#[test]
fn transactions_count_on_both_ends_one_by_one_and_pipelined() {
    for (in_flight, request, response) in [(1, 1, 1), (8, 1, 1), (3, 500_000, 700_000), (1, 1000, 100_000)] {
        let (near, far) = tcp_pair();
        let plan = AskPlan { response, in_flight, total: Some(40), ..AskPlan::default() };
        let asks = Buffer::repeated(request, b"ask");
        let asker = Running::start("ask", &near, None, move |t, s| {
            let mut latencies = Latencies::new();
            let end = ask(t, s, &asks, &plan, Some(&mut latencies))?;
            Ok((end, latencies.into_data().total()))
        })
        .unwrap();
        let answers = Buffer::repeated(response, b"answer");
        let answerer =
            Running::start("answer", &far, None, move |t, s| answer(t, s, request, &answers, Some(40)))
                .unwrap();
        assert!(asker.wait(LIMIT) && answerer.wait(LIMIT));
        let (asked, answered) = (asker.finish(), answerer.finish());
        assert_eq!(asked.outcome.unwrap(), (End::Done, 40));
        assert_eq!(answered.outcome.unwrap(), End::Done);
        assert_eq!((asked.count.transactions, answered.count.transactions), (40, 40));
        assert_eq!(asked.count.received.bytes, 40 * response as u64);
        assert_eq!(answered.count.received.bytes, 40 * request as u64);
    }
}

#[test]
fn datagrams_are_stamped_counted_and_ended() {
    let (near, far) = udp_pair();
    let pace = Some(Pace::Every { interval: Duration::from_micros(200), messages: 1 });
    let plan = DatagramPlan { total_messages: Some(50), pace, ..DatagramPlan::default() };
    let receiver = Running::start("recv", &far, None, |tally, socket| {
        let mut numbers = Vec::new();
        let end = receive_datagrams(tally, socket, 2000, |datagram| match datagram {
            [] => Took::End,
            [b'?', ..] => Took::Stray,
            _ => {
                numbers.push(u64::from_be_bytes(datagram[..8].try_into().unwrap()));
                Took::Payload
            }
        })?;
        Ok((end, numbers))
    })
    .unwrap();
    near.send(b"?").unwrap();
    let mut buffer = Buffer::repeated(1000, b"");
    let sender = Running::start("send", &near, None, move |t, s| {
        send_datagrams(t, s, &mut buffer, &plan, |number, bytes| {
            bytes[..8].copy_from_slice(&number.to_be_bytes());
        })
    })
    .unwrap();
    assert!(sender.wait(LIMIT));
    near.send(b"").unwrap();
    assert!(receiver.wait(LIMIT));
    let received = receiver.finish();
    assert_eq!(received.outcome.unwrap(), (End::Closed, (0..50).collect()));
    assert_eq!((received.count.received.bytes, received.count.received.messages), (50_000, 50));
    assert_eq!(received.count.strays, 1);
    assert_eq!(sender.finish().count.sent.messages, 50);
}

#[test]
fn a_lost_answer_does_not_stall_the_asker() {
    let (near, far) = udp_pair();
    let plan = DatagramAsk { response: 10, total: Some(200), ..DatagramAsk::default() };
    let request = Buffer::repeated(10, b"q");
    let begun = Instant::now();
    let asker =
        Running::start("ask", &near, None, move |t, s| ask_datagrams(t, s, &request, &plan, None)).unwrap();
    // An answerer that swallows every 50th request.
    let swallower = Running::start("swallow", &far, None, |tally, socket| {
        let mut seen = 0;
        let mut buffer = [std::mem::MaybeUninit::new(0); 100];
        while !tally.stopped() {
            if socket.recv(&mut buffer).is_ok() {
                seen += 1;
                if seen % 50 != 0 {
                    let _gone = socket.send(b"answer");
                }
            }
        }
        Ok(())
    })
    .unwrap();
    assert!(asker.wait(LIMIT), "stalled");
    assert!(begun.elapsed() < Duration::from_secs(5));
    let asked = asker.finish();
    assert_eq!(asked.outcome.unwrap(), End::Done);
    assert_eq!(asked.count.transactions, 200);
    assert!((3..=8).contains(&asked.count.lost), "{:?}", asked.count);
    drop(swallower);
}

#[test]
fn udp_answers_go_only_to_the_adopted_peer() {
    let far = UdpSocket::bind((Ipv4Addr::UNSPECIFIED, 0)).unwrap();
    let port = far.local_addr().unwrap().port();
    let stranger = UdpSocket::bind((Ipv4Addr::new(127, 0, 0, 2), 0)).unwrap();
    let near = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
    let to = SocketAddr::from((Ipv4Addr::LOCALHOST, port));
    stranger.send_to(b"stray", to).unwrap();
    near.connect(to).unwrap();
    let far: Arc<Socket> = Arc::new(far.into());
    let answerer = Running::start("answer", &far, None, |tally, socket| {
        let from = adopt_peer(tally, socket, Ipv4Addr::LOCALHOST.into())?;
        let end = answer_datagrams(tally, socket, 100, &Buffer::repeated(3, b"abc"), None)?;
        Ok((from, end))
    })
    .unwrap();
    near.send(b"request").unwrap();
    let mut buffer = [0; 10];
    near.set_read_timeout(Some(LIMIT)).unwrap();
    assert_eq!(near.recv(&mut buffer).unwrap(), 3);
    stranger.send_to(b"stray", to).unwrap();
    near.send(b"").unwrap();
    assert!(answerer.wait(LIMIT));
    let answered = answerer.finish();
    assert_eq!(answered.outcome.unwrap(), (Some(near.local_addr().unwrap()), End::Closed));
    assert_eq!((answered.count.strays, answered.count.transactions), (1, 1));
    stranger.set_read_timeout(Some(Duration::from_millis(50))).unwrap();
    assert!(stranger.recv(&mut buffer).is_err());
}
