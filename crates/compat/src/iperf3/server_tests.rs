//! Tests of the server with raw clients over loopback.

use std::net::{TcpStream, UdpSocket};
use std::sync::Mutex;
use std::thread::JoinHandle;
use std::time::Instant;

use super::*;
use crate::iperf3::client::{self, ClientOptions};
use crate::iperf3::params::{Params, Transport};
use crate::iperf3::report::End;
use crate::iperf3::wire::{State, framed};

/// A server on a port of its own, stopped when dropped.
pub(super) struct Running {
    pub(super) port: u16,
    stop: Arc<AtomicBool>,
    told: Arc<Mutex<Vec<ServerEvent>>>,
    thread: Option<JoinHandle<()>>,
}

impl Running {
    pub(super) fn start(limits: Limits) -> Self {
        Self::with(ServerOptions { limits, interval_s: 0.2, ..ServerOptions::default() })
    }

    pub(super) fn with(options: ServerOptions) -> Self {
        let server = Server::bind(options).unwrap();
        let (stop, told) = (Arc::new(AtomicBool::new(false)), Arc::new(Mutex::new(Vec::new())));
        let (stop_too, told_too) = (stop.clone(), told.clone());
        let port = server.port();
        let thread = thread::spawn(move || {
            let tell: Tell = Arc::new(move |event| told_too.lock().unwrap().push(event));
            server.run(&stop_too, &tell).unwrap();
        });
        Self { port, stop, told, thread: Some(thread) }
    }

    pub(super) fn connect(&self, cookie: &Cookie) -> TcpStream {
        let mut stream = TcpStream::connect(("127.0.0.1", self.port)).unwrap();
        stream.set_read_timeout(Some(Duration::from_secs(5))).unwrap();
        stream.write_all(cookie).unwrap();
        stream
    }

    /// A control connection that has sent these parameters and may open streams.
    pub(super) fn ask(&self, cookie: &Cookie, params: &Params) -> TcpStream {
        let mut control = self.connect(cookie);
        assert_eq!(read::<1>(&mut control), [State::ParamExchange.byte()]);
        control.write_all(&framed(&params.encode())).unwrap();
        assert_eq!(read::<1>(&mut control), [State::CreateStreams.byte()]);
        control
    }

    fn wait_gone(&self) {
        let gone = |e: &ServerEvent| matches!(e.what, ServerTold::Gone);
        for _ in 0..100 {
            if self.told.lock().unwrap().iter().any(gone) {
                return;
            }
            thread::sleep(Duration::from_millis(20));
        }
        panic!("the test is not over");
    }

    fn failures(&self) -> Vec<String> {
        let told = self.told.lock().unwrap();
        let failure = |e: &ServerEvent| match &e.what {
            ServerTold::Test(Event::Failed(error)) => Some(error.clone()),
            _ => None,
        };
        told.iter().filter_map(failure).collect()
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.stop.store(true, Relaxed);
        if let Some(thread) = self.thread.take() {
            // A failed test has said so itself.
            let _ended = thread.join();
        }
    }
}

pub(super) fn read<const N: usize>(stream: &mut TcpStream) -> [u8; N] {
    let mut bytes = [0; N];
    stream.read_exact(&mut bytes).unwrap();
    bytes
}

pub(super) fn cookie(byte: u8) -> Cookie {
    [byte; COOKIE_LEN]
}

#[test]
fn a_closed_data_connection_ends_the_test() {
    let server = Running::start(Limits::default());
    let mut control = server.ask(&cookie(b'a'), &Params::default());
    let data = server.connect(&cookie(b'a'));
    assert_eq!(read::<2>(&mut control), [1, 2]);
    let begin = Instant::now();
    drop(data);
    assert_eq!(read::<5>(&mut control), [0xfe, 0, 0, 0, 206]);
    assert!(begin.elapsed() < Duration::from_secs(2));
    drop(control);
    server.wait_gone();
    assert!(server.failures()[0].contains("closed before the end"));
}

#[test]
fn a_wrong_cookie_takes_no_stream() {
    let server = Running::start(Limits { clients: 1, ..Limits::default() });
    let mut control = server.ask(&cookie(b'a'), &Params::default());
    let mut stranger = server.connect(&cookie(b'b'));
    assert_eq!(read::<1>(&mut stranger), [0xff]);
    let _data = server.connect(&cookie(b'a'));
    assert_eq!(read::<2>(&mut control), [1, 2]);
    let mut late = server.connect(&cookie(b'a'));
    assert_eq!(read::<1>(&mut late), [0xff]);
}

#[test]
fn missing_streams_block_nobody_else() {
    let server = Running::start(Limits::default());
    // Both have a listener or a hello lease of their own to wait for.
    let _tcp = server.ask(&cookie(b'a'), &Params::default());
    let udp = Params { transport: Transport::Udp, len: 1000, ..Params::default() };
    let _udp = server.ask(&cookie(b'b'), &udp);
    let mut third = server.ask(&cookie(b'c'), &Params { reverse: true, ..Params::default() });
    let mut data = server.connect(&cookie(b'c'));
    assert_eq!(read::<2>(&mut third), [1, 2]);
    read::<100>(&mut data);
}

#[test]
fn silence_is_told_and_so_are_bad_messages() {
    let server = Running::start(Limits { receive: Duration::from_millis(300), ..Limits::default() });
    let mut control = server.ask(&cookie(b'a'), &Params::default());
    let _data = server.connect(&cookie(b'a'));
    assert_eq!(read::<2>(&mut control), [1, 2]);
    assert_eq!(read::<5>(&mut control), [0xfe, 0, 0, 0, 144]);
    let mut rude = server.ask(&cookie(b'b'), &Params::default());
    rude.write_all(&[0x55]).unwrap();
    assert_eq!(read::<5>(&mut rude), [0xfe, 0, 0, 0, 110]);
    let mut many = server.connect(&cookie(b'c'));
    assert_eq!(read::<1>(&mut many), [9]);
    many.write_all(&framed(&serde_json::json!({"parallel": 129}))).unwrap();
    assert_eq!(read::<5>(&mut many), [0xfe, 0, 0, 0, 6]);
}

#[test]
fn datagrams_lost_at_the_end_and_duplicates_are_counted() {
    let server = Running::start(Limits::default());
    let params = Params { transport: Transport::Udp, len: 100, ..Params::default() };
    let mut control = server.ask(&cookie(b'a'), &params);
    let udp = UdpSocket::bind("127.0.0.1:0").unwrap();
    udp.connect(("127.0.0.1", server.port)).unwrap();
    udp.set_read_timeout(Some(Duration::from_secs(5))).unwrap();
    udp.send(b"9876").unwrap();
    let mut answer = [0; 8];
    assert_eq!(udp.recv(&mut answer).unwrap(), 4);
    assert_eq!(&answer[..4], b"6789");
    assert_eq!(read::<2>(&mut control), [1, 2]);
    for sequence in (1..=20).chain(31..=50).chain([40]) {
        let mut datagram = [0; 100];
        crate::iperf3::udp::Header { sent_us: 5, sequence }.write(&mut datagram, false);
        udp.send(&datagram).unwrap();
    }
    control.write_all(&[State::TestEnd.byte()]).unwrap();
    assert_eq!(read::<1>(&mut control), [13]);
    let stream = serde_json::json!({"id": 1, "bytes": 10_000, "retransmits": -1, "jitter": 0, "errors": 0, "packets": 100});
    let results = serde_json::json!({"cpu_util_total": 0, "cpu_util_user": 0, "cpu_util_system": 0,
        "sender_has_retransmits": 0, "streams": [stream]});
    control.write_all(&framed(&results)).unwrap();
    let length = u32::from_be_bytes(read::<4>(&mut control)) as usize;
    let mut body = vec![0; length];
    control.read_exact(&mut body).unwrap();
    let results: serde_json::Value = serde_json::from_slice(&body).unwrap();
    let stream = &results["streams"][0];
    assert_eq!((stream["errors"].as_i64(), stream["packets"].as_i64()), (Some(60), Some(100)));
    assert_eq!(stream["bytes"].as_i64(), Some(4100));
    assert_eq!(read::<1>(&mut control), [14]);
    control.write_all(&[State::Done.byte()]).unwrap();
    // Nothing spurious follows.
    assert_eq!(control.read(&mut answer).unwrap(), 0);
    let end = server.told.lock().unwrap().iter().find_map(ended).unwrap();
    assert_eq!(end.streams[0].udp.unwrap().duplicates, 1);
}

fn ended(event: &ServerEvent) -> Option<End> {
    match &event.what {
        ServerTold::Test(Event::Ended(end)) => Some((**end).clone()),
        _ => None,
    }
}

#[test]
fn forty_clients_at_once_are_unharmed() {
    let server = Running::start(Limits::default());
    let clients: Vec<_> = (0..40)
        .map(|index| {
            let transport = if index % 2 == 0 { Transport::Tcp } else { Transport::Udp };
            let bandwidth = Some(1_000_000 * (1 + index % 5));
            let window = (index % 8 == 0).then_some(65536);
            let params = Params {
                transport,
                bandwidth,
                window,
                time_s: 1,
                reverse: index % 3 == 0,
                ..Params::default()
            };
            let (host, receive_limit) = ("127.0.0.1".to_owned(), Duration::from_secs(9));
            let (port, len) = (server.port, Some(1000));
            let options =
                ClientOptions { host, port, len, params, receive_limit, ..ClientOptions::default() };
            thread::spawn(move || {
                let mut end = None;
                let outcome = client::run(&options, &AtomicBool::new(false), &mut |event| {
                    if let Event::Ended(told) = event {
                        end = Some(told);
                    }
                });
                (outcome, end, options.params.bandwidth)
            })
        })
        .collect();
    for client in clients {
        let (outcome, end, bandwidth) = client.join().unwrap();
        outcome.unwrap();
        let rate = end.unwrap().streams[0].received.unwrap().rate();
        let ratio = rate / bandwidth.unwrap() as f64;
        assert!((0.7..1.3).contains(&ratio), "{ratio} of the rate");
    }
    assert_eq!(server.failures(), Vec::<String>::new());
}

#[test]
fn clients_that_come_in_while_others_have_listeners_of_their_own_are_not_reset() {
    let server = Running::start(Limits { clients: 1000, ..Limits::default() });
    let over = AtomicBool::new(false);
    thread::scope(|scope| {
        // They connect all the time, so that some do in each moment in which a listener goes.
        let comers: Vec<_> = (0..3_u8)
            .map(|comer| {
                let (server, over) = (&server, &over);
                scope.spawn(move || {
                    let mut count = 0_u16;
                    while !over.load(Relaxed) {
                        let mut own = cookie(b'x' + comer);
                        own[..2].copy_from_slice(&count.to_be_bytes());
                        let mut control = server.connect(&own);
                        assert_eq!(read::<1>(&mut control), [State::ParamExchange.byte()], "client {count}");
                        count += 1;
                    }
                    count
                })
            })
            .collect();
        for test in 0..60_u8 {
            let mptcp = test % 3 == 2;
            let params = Params { window: Some(65536), mss: Some(1000), mptcp, ..Params::default() };
            let mut control = server.ask(&cookie(test + 1), &params);
            let _data = server.connect(&cookie(test + 1));
            assert_eq!(read::<2>(&mut control), [1, 2]);
        }
        over.store(true, Relaxed);
        for comer in comers {
            assert!(comer.join().unwrap() > 50);
        }
    });
}
