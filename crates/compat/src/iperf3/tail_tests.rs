//! Tests of what arrives after the word that the test is over: it overtakes data, and threads can be late.

use std::fs;
use std::net::{TcpListener, TcpStream};
use std::path::{Path, PathBuf};

use super::tests::{Running, cookie, read};
use super::*;
use crate::iperf3::client::{self, ClientOptions};
use crate::iperf3::params::{Params, Transport};
use crate::iperf3::report::End;
use crate::iperf3::wire::framed;

/// Far more than a socket's buffers on loopback would hide.
const LEN: usize = 300_017;

/// How long the data lags behind the control connection.
const LAG: Duration = Duration::from_millis(150);

fn content() -> Vec<u8> {
    (0..LEN as u32).map(|i| (i.wrapping_mul(2_654_435_761) >> 24) as u8).collect()
}

/// A name in a folder of this test's own, which goes with it.
struct Folder(PathBuf);

impl Folder {
    fn new(test: &str) -> Self {
        let folder = std::env::temp_dir().join(format!("lr-iperf3-tail-{test}-{}", std::process::id()));
        fs::create_dir_all(&folder).unwrap();
        Self(folder)
    }

    fn file(&self) -> PathBuf {
        self.0.join("file")
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        // It is only a leftover.
        let _removed = fs::remove_dir_all(&self.0);
    }
}

fn serve_into(file: &Path) -> Running {
    Running::with(ServerOptions { file: Some(file.to_owned()), interval_s: 0.2, ..ServerOptions::default() })
}

/// Results of one stream, as either side gives them.
fn results(bytes: usize, packets: u64) -> Vec<u8> {
    let stream = serde_json::json!({"id": 1, "bytes": bytes, "retransmits": 0, "jitter": 0, "errors": 0,
        "packets": packets});
    framed(&serde_json::json!({"cpu_util_total": 0, "cpu_util_user": 0, "cpu_util_system": 0,
        "sender_has_retransmits": 1, "streams": [stream]}))
}

fn read_frame(control: &mut TcpStream) -> serde_json::Value {
    let mut body = vec![0; u32::from_be_bytes(read::<4>(control)) as usize];
    control.read_exact(&mut body).unwrap();
    serde_json::from_slice(&body).unwrap()
}

/// Ends a raw client's test; returns what the server says of its first stream.
fn end_test(control: &mut TcpStream, bytes: usize, packets: u64) -> serde_json::Value {
    control.write_all(&[State::TestEnd.byte()]).unwrap();
    assert_eq!(read::<1>(control), [State::ExchangeResults.byte()]);
    control.write_all(&results(bytes, packets)).unwrap();
    let told = read_frame(control);
    assert_eq!(read::<1>(control), [State::DisplayResults.byte()]);
    control.write_all(&[State::Done.byte()]).unwrap();
    told["streams"][0].clone()
}

/// Sends the first half now and the rest on a thread of its own, later.
fn send_with_lag(data: &TcpStream, content: &[u8]) -> JoinedOnDrop {
    let (now, later) = content.split_at(content.len() / 2);
    (&*data).write_all(now).unwrap();
    let (mut data, later) = (data.try_clone().unwrap(), later.to_vec());
    JoinedOnDrop(Some(thread::spawn(move || {
        thread::sleep(LAG);
        data.write_all(&later).unwrap();
    })))
}

struct JoinedOnDrop(Option<thread::JoinHandle<()>>);

impl Drop for JoinedOnDrop {
    fn drop(&mut self) {
        if let Some(thread) = self.0.take() {
            // Its panic has been shown.
            let _ended = thread.join();
        }
    }
}

#[test]
fn the_end_of_a_file_is_not_lost_when_the_word_of_the_end_overtakes_it() {
    let (folder, content) = (Folder::new("overtaken"), content());
    let server = serve_into(&folder.file());
    let mut control = server.ask(&cookie(b'a'), &Params { time_s: 0, ..Params::default() });
    let data = server.connect(&cookie(b'a'));
    assert_eq!(read::<2>(&mut control), [1, 2]);
    let _later = send_with_lag(&data, &content);
    let told = end_test(&mut control, LEN, 0);
    assert_eq!(told["bytes"], LEN);
    assert!(fs::read(folder.file()).unwrap() == content, "the file is not what was sent");
}

#[test]
fn a_slow_reader_of_the_file_loses_no_end() {
    let (folder, content) = (Folder::new("slow"), content());
    nix::unistd::mkfifo(&folder.file(), nix::sys::stat::Mode::from_bits_truncate(0o600)).unwrap();
    let server = serve_into(&folder.file());
    let path = folder.file();
    let reader = thread::spawn(move || {
        let mut fifo = fs::File::open(path).unwrap();
        let (mut all, mut piece) = (Vec::new(), [0; 16 << 10]);
        loop {
            match fifo.read(&mut piece).unwrap() {
                0 => return all,
                count => all.extend_from_slice(&piece[..count]),
            }
            thread::sleep(Duration::from_millis(30));
        }
    });
    let mut control = server.ask(&cookie(b'a'), &Params { time_s: 0, ..Params::default() });
    let mut data = server.connect(&cookie(b'a'));
    assert_eq!(read::<2>(&mut control), [1, 2]);
    data.write_all(&content).unwrap();
    let told = end_test(&mut control, LEN, 0);
    assert_eq!(told["bytes"], LEN);
    drop((data, control, server));
    assert!(reader.join().unwrap() == content, "the file is not what was sent");
}

#[test]
fn bytes_of_a_set_number_count_though_the_word_of_the_end_overtakes_them() {
    for bidir in [false, true] {
        let server = Running::start(Limits::default());
        let params = Params { time_s: 0, num: LEN as u64, bidir, ..Params::default() };
        let mut control = server.ask(&cookie(b'a'), &params);
        let data = server.connect(&cookie(b'a'));
        let back = bidir.then(|| server.connect(&cookie(b'a')));
        assert_eq!(read::<2>(&mut control), [1, 2]);
        let _later = send_with_lag(&data, &content());
        let told = end_test(&mut control, LEN, 0);
        assert_eq!(told["bytes"], LEN, "bidir: {bidir}");
        drop(back);
    }
}

#[test]
fn a_client_that_claims_more_than_it_sent_holds_the_server_for_a_moment_only() {
    let folder = Folder::new("claims");
    let server = serve_into(&folder.file());
    let mut control = server.ask(&cookie(b'a'), &Params::default());
    let mut data = server.connect(&cookie(b'a'));
    assert_eq!(read::<2>(&mut control), [1, 2]);
    data.write_all(&content()).unwrap();
    let begin = std::time::Instant::now();
    let told = end_test(&mut control, usize::MAX >> 1, 0);
    assert_eq!(told["bytes"], LEN);
    assert!(begin.elapsed() < Duration::from_secs(4));
}

#[test]
fn datagrams_under_way_at_the_end_are_not_lost_ones() {
    let server = Running::start(Limits::default());
    let params = Params { transport: Transport::Udp, len: 100, ..Params::default() };
    let mut control = server.ask(&cookie(b'a'), &params);
    let udp = UdpSocket::bind("127.0.0.1:0").unwrap();
    udp.connect(("127.0.0.1", server.port)).unwrap();
    udp.send(b"9876").unwrap();
    assert_eq!(udp.recv(&mut [0; 8]).unwrap(), 4);
    assert_eq!(read::<2>(&mut control), [1, 2]);
    let sender = thread::spawn(move || {
        for sequence in 1..=20 {
            let mut datagram = [0; 100];
            crate::iperf3::udp::Header { sent_us: 5, sequence }.write(&mut datagram, false);
            udp.send(&datagram).unwrap();
            thread::sleep(Duration::from_millis(10));
        }
    });
    let told = end_test(&mut control, 2000, 20);
    sender.join().unwrap();
    assert_eq!((told["packets"].as_i64(), told["errors"].as_i64()), (Some(20), Some(0)));
    assert_eq!(told["bytes"], 2000);
}

/// Runs our client against a raw server that sends `content`, its second half late, and closes; returns the end it told.
fn receive_late(params: Params, file: Option<PathBuf>, content: &[u8]) -> End {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let options = ClientOptions {
        host: "127.0.0.1".to_owned(),
        port,
        params: params.clone(),
        receive_limit: Duration::from_secs(9),
        file,
        ..ClientOptions::default()
    };
    let client = thread::spawn(move || {
        let mut end = None;
        client::run(&options, &AtomicBool::new(false), &mut |event| {
            if let Event::Ended(told) = event {
                end = Some(*told);
            }
        })
        .unwrap();
        end.unwrap()
    });
    let (mut control, _) = listener.accept().unwrap();
    let _cookie: [u8; COOKIE_LEN] = read(&mut control);
    control.write_all(&[State::ParamExchange.byte()]).unwrap();
    read_frame(&mut control);
    control.write_all(&[State::CreateStreams.byte()]).unwrap();
    let streams: Vec<_> = (0..params.streams()).map(|_| listener.accept().unwrap().0).collect();
    for stream in &streams {
        let _cookie: [u8; COOKIE_LEN] = read(&mut stream.try_clone().unwrap());
    }
    control.write_all(&[1, 2]).unwrap();
    let (now, later) = content.split_at(content.len() / 2);
    let mut back = streams.last().unwrap();
    back.write_all(now).unwrap();
    let taken = streams[0].try_clone().unwrap();
    // Ends with the connection.
    let taken = thread::spawn(move || std::io::copy(&mut &taken, &mut std::io::sink()));
    assert_eq!(read::<1>(&mut control), [State::TestEnd.byte()]);
    control.write_all(&[State::ExchangeResults.byte()]).unwrap();
    thread::sleep(LAG);
    back.write_all(later).unwrap();
    // The connections end, as a server's do when it is told of the end.
    for stream in &streams {
        stream.shutdown(std::net::Shutdown::Write).unwrap();
    }
    read_frame(&mut control);
    let stream = |id| {
        serde_json::json!({"id": id, "bytes": content.len(), "retransmits": 0, "jitter": 0, "errors": 0,
            "packets": 0})
    };
    let both = if params.bidir { vec![stream(1), stream(3)] } else { vec![stream(1)] };
    let message = framed(&serde_json::json!({"cpu_util_total": 0, "cpu_util_user": 0, "cpu_util_system": 0,
        "sender_has_retransmits": 1, "streams": both}));
    control.write_all(&message).unwrap();
    control.write_all(&[State::DisplayResults.byte()]).unwrap();
    assert_eq!(read::<1>(&mut control), [State::Done.byte()]);
    drop(streams);
    let end = client.join().unwrap();
    taken.join().unwrap().unwrap();
    end
}

#[test]
fn a_client_reads_a_file_to_its_end_though_the_test_is_over() {
    let (folder, content) = (Folder::new("reverse"), content());
    // One second is over long before a server that is late has sent all.
    let params = Params { reverse: true, time_s: 1, ..Params::default() };
    let end = receive_late(params, Some(folder.file()), &content);
    assert_eq!(end.streams[0].received.unwrap().bytes, LEN as u64);
    assert!(fs::read(folder.file()).unwrap() == content, "the file is not what was sent");
}

#[test]
fn both_ways_a_client_counts_all_that_the_server_sent_though_its_own_number_ended_the_test() {
    let params = Params { bidir: true, time_s: 0, num: 10 * LEN as u64, ..Params::default() };
    let end = receive_late(params, None, &content());
    assert_eq!(end.streams[1].received.unwrap().bytes, LEN as u64);
}
