//! ttcp as a service: takes what transmitters send, many at once, and counts it. It sends nothing, over TCP or UDP.

use std::collections::HashMap;
use std::io::{self, Read};
use std::net::{SocketAddr, TcpStream, UdpSocket};
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::Duration;

use linerate_sys::clock;

use crate::ttcp::marker::Markers;

const BUFFER_BYTES: usize = 128 * 1024;
const LARGEST_DATAGRAM: usize = 65_536;

/// How often a quiet session looks at the stop flag and its limits.
const POLL: Duration = Duration::from_millis(100);

/// Most UDP tests at once; datagrams of further senders are dropped.
const MAX_UDP_TESTS: usize = 1024;

/// Why a TCP test ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Ended {
    /// The transmitter closed.
    Closed,
    /// The longest duration was reached.
    TooLong,
    /// The server stops.
    Stopped,
    /// The connection broke.
    Broken(String),
}

/// One UDP test that is over.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct UdpTest {
    /// The transmitter.
    pub peer: SocketAddr,
    /// Payload bytes that came.
    pub bytes: u64,
    /// From the first datagram to the end marker or the last datagram, nanoseconds.
    pub elapsed_ns: u64,
    /// Whether an end marker came.
    pub end_was_told: bool,
}

/// Takes one transmitter's stream to its end; returns the bytes, the nanoseconds that took, and why it ended. The caller has
/// checked who the peer is and runs this on a thread of the client's own.
pub fn serve_connection(
    mut stream: TcpStream,
    max_duration: Option<Duration>,
    stop: &AtomicBool,
) -> (u64, u64, Ended) {
    let start_ns = clock::monotonic_ns();
    let mut bytes = 0;
    let end = match stream.set_read_timeout(Some(POLL)) {
        Ok(()) => drain(&mut stream, start_ns, max_duration, stop, &mut bytes),
        Err(e) => Ended::Broken(format!("set read timeout: {e}")),
    };
    (bytes, clock::monotonic_ns() - start_ns, end)
}

fn drain(
    stream: &mut TcpStream,
    start_ns: u64,
    max_duration: Option<Duration>,
    stop: &AtomicBool,
    bytes: &mut u64,
) -> Ended {
    let mut buffer = vec![0; BUFFER_BYTES];
    let end_ns =
        max_duration.map(|d| start_ns.saturating_add(u64::try_from(d.as_nanos()).unwrap_or(u64::MAX)));
    loop {
        if stop.load(Relaxed) {
            return Ended::Stopped;
        }
        if end_ns.is_some_and(|end_ns| clock::monotonic_ns() >= end_ns) {
            return Ended::TooLong;
        }
        match stream.read(&mut buffer) {
            Ok(0) => return Ended::Closed,
            Ok(count) => *bytes += count as u64,
            Err(e) if is_pause(&e) => {}
            Err(e) => return Ended::Broken(e.to_string()),
        }
    }
}

/// Takes the datagrams of all transmitters, told apart by their address, until stopped; `allowed` decides whose are counted, and
/// `tell` hears of each test that is over.
///
/// # Errors
/// The socket fails.
pub fn serve_udp(
    socket: &UdpSocket,
    allowed: &dyn Fn(SocketAddr) -> bool,
    stop: &AtomicBool,
    tell: &mut dyn FnMut(UdpTest),
) -> io::Result<()> {
    socket.set_read_timeout(Some(POLL))?;
    let mut buffer = vec![0; LARGEST_DATAGRAM];
    let mut tests: HashMap<SocketAddr, Markers> = HashMap::new();
    let mut swept_ns = clock::monotonic_ns();
    while !stop.load(Relaxed) {
        match socket.recv_from(&mut buffer) {
            Ok((count, peer)) if allowed(peer) => take(&mut tests, peer, count),
            Ok(_) => {}
            Err(e) if is_pause(&e) => {}
            Err(e) => return Err(e),
        }
        let now_ns = clock::monotonic_ns();
        if now_ns - swept_ns >= POLL.as_nanos() as u64 {
            swept_ns = now_ns;
            sweep(&mut tests, now_ns, tell);
        }
    }
    Ok(())
}

/// The end markers that follow the first leave the test as it is; [`sweep`] tells of it once all is quiet.
fn take(tests: &mut HashMap<SocketAddr, Markers>, peer: SocketAddr, count: usize) {
    if tests.len() >= MAX_UDP_TESTS && !tests.contains_key(&peer) {
        return;
    }
    let _arrival = tests.entry(peer).or_default().arrived(count, clock::monotonic_ns());
}

fn sweep(tests: &mut HashMap<SocketAddr, Markers>, now_ns: u64, tell: &mut dyn FnMut(UdpTest)) {
    tests.retain(|peer, markers| {
        let over = markers.is_over(now_ns);
        if over && markers.bytes() > 0 {
            tell(UdpTest {
                peer: *peer,
                bytes: markers.bytes(),
                elapsed_ns: markers.elapsed_ns(),
                end_was_told: markers.end_was_told(),
            });
        }
        !over
    });
}

fn is_pause(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut | io::ErrorKind::Interrupted)
}

#[cfg(test)]
mod tests {
    use std::io::Write;
    use std::net::TcpListener;
    use std::thread;

    use super::*;

    #[test]
    fn a_stream_is_counted_to_its_end_and_to_its_limit() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let mut client = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        let (stream, _) = listener.accept().unwrap();
        client.write_all(&[7; 1000]).unwrap();
        drop(client);
        let (bytes, _, end) = serve_connection(stream, None, &AtomicBool::new(false));
        assert_eq!((bytes, end), (1000, Ended::Closed));

        let client = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        let (stream, _) = listener.accept().unwrap();
        let (_, _, end) = serve_connection(stream, Some(Duration::from_millis(150)), &AtomicBool::new(false));
        assert_eq!(end, Ended::TooLong);
        drop(client);
    }

    #[test]
    fn udp_tests_are_told_apart_and_told_of_once() {
        let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
        let to = socket.local_addr().unwrap();
        let stop = AtomicBool::new(false);
        let clients = [(); 2].map(|()| UdpSocket::bind("127.0.0.1:0").unwrap());
        let told = thread::scope(|scope| {
            let server = scope.spawn(|| {
                let mut told = Vec::new();
                serve_udp(&socket, &|_| true, &stop, &mut |test| told.push(test)).unwrap();
                told
            });
            for length in [4, 100, 100, 4, 4, 4, 4, 4] {
                for client in &clients {
                    client.send_to(&[b' '; 100][..length], to).unwrap();
                }
            }
            thread::sleep(Duration::from_millis(900));
            stop.store(true, Relaxed);
            server.join().unwrap()
        });
        assert_eq!(told.len(), 2);
        assert!(told.iter().all(|test| test.bytes == 200 && test.end_was_told));
    }
}
