//! UDP: the connecting side has a socket for each connection, the listening side one for all. Each datagram says whose it is,
//! its length and its number, and carries bytes that depend on all of them.
//!
//! ```text
//! 0      4             6         8         16
//! kind   connection    length    number    place-dependent bytes ...
//! ```
//! Kinds are data, a greeting (by which the listening side learns where to send) and the end.

use std::io;
use std::net::{SocketAddr, UdpSocket};
use std::sync::atomic::AtomicU32;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use linerate_model::bench::flow::{FlowMethod, FlowRole};
use linerate_sys::error::Result;
use linerate_sys::{SysError, sockopt};
use socket2::{Domain, Protocol, SockRef, Socket, Type};

use super::send::{ZeroCopy, is_wait, pieces};
use super::shared::{Pace, Shared};
use super::{TICK, spawn};
use crate::place::{Difference, Key};

pub(super) const HEADER_BYTES: usize = 16;
const DATA: [u8; 4] = *b"LRud";
const GREETING: [u8; 4] = *b"LRuh";
const END: [u8; 4] = *b"LRue";
/// An end may be lost like anything else.
const ENDS: u32 = 5;
const END_GAP: Duration = Duration::from_millis(10);
const GREETING_GAP: Duration = Duration::from_millis(100);
/// What was overtaken by an end may still come for so long.
const LATE: Duration = Duration::from_millis(50);
/// A receiver that was told to end and hears nothing for so long is over.
const QUIET: Duration = Duration::from_millis(400);
const REST: Duration = Duration::from_millis(10);
const NO_ROOM: Duration = Duration::from_micros(100);
const RECEIVE_BUFFER_BYTES: u32 = 16 << 20;
const LARGEST_BYTES: usize = 65536;
/// How far back a datagram that comes again is known for one.
const WINDOW: u64 = 1 << 16;

/// A socket with those who use it.
#[derive(Debug)]
struct Door {
    socket: UdpSocket,
    connected: bool,
    /// Where each connection sends; `None` before its greeting has come.
    remotes: Vec<Mutex<Option<SocketAddr>>>,
}

impl Door {
    fn remote(&self, lane: u32) -> MutexGuard<'_, Option<SocketAddr>> {
        self.remotes[lane as usize].lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn send(&self, bytes: &[u8], remote: SocketAddr) -> io::Result<usize> {
        if self.connected { self.socket.send(bytes) } else { self.socket.send_to(bytes, remote) }
    }

    fn send_pieces(&self, bytes: &[u8], remote: SocketAddr) -> io::Result<usize> {
        let socket = SockRef::from(&self.socket);
        if self.connected {
            socket.send_vectored(&pieces(bytes))
        } else {
            socket.send_to_vectored(&pieces(bytes), &remote.into())
        }
    }
}

/// What there still is to do of a connection: sending, receiving.
type Open = Arc<Vec<AtomicU32>>;

/// Starts the threads; returns the port of a side that listens or has one socket only.
pub(super) fn start(shared: &Arc<Shared>, threads: &mut Vec<JoinHandle<()>>) -> Result<u16> {
    let spec = &shared.spec;
    let halves = u32::from(spec.sends) + u32::from(spec.receives);
    let open: Open = Arc::new((0..spec.connections).map(|_| AtomicU32::new(halves)).collect());
    let (address, connects) = match spec.role {
        FlowRole::Listen(address) => (address, false),
        FlowRole::Connect(address) => (address, true),
    };
    let all: Vec<u32> = (0..spec.connections).collect();
    let groups: Vec<&[u32]> = if connects { all.chunks(1).collect() } else { vec![&all] };
    let mut port = 0;
    for lanes in &groups {
        let (socket, local) = bind(shared, address, connects)?;
        if groups.len() == 1 {
            port = local;
        }
        let remote = connects.then_some(address);
        let remotes = (0..spec.connections).map(|_| Mutex::new(remote)).collect();
        let door = Arc::new(Door { socket, connected: connects, remotes });
        if spec.receives {
            let (shared, door, open, lanes) = (shared.clone(), door.clone(), open.clone(), lanes.to_vec());
            spawn(threads, "lr-flow-rx".to_owned(), move || {
                let mut reception = Reception::new(&shared, &door, &lanes);
                reception.run(|lane| half_is_over(&shared, &open, lane));
            })?;
        } else if !connects {
            let (shared, door) = (shared.clone(), door.clone());
            spawn(threads, "lr-flow-greet".to_owned(), move || {
                Reception::new(&shared, &door, &[]).await_greetings();
            })?;
        }
        if spec.sends {
            for &lane in *lanes {
                let (shared, door, open) = (shared.clone(), door.clone(), open.clone());
                spawn(threads, format!("lr-flow-{lane}-tx"), move || {
                    if let Err(error) = send_all(&shared, &door, lane) {
                        shared.broke(lane, error);
                    }
                    half_is_over(&shared, &open, lane);
                })?;
            }
        }
    }
    Ok(port)
}

fn half_is_over(shared: &Shared, open: &Open, lane: u32) {
    if open[lane as usize].fetch_sub(1, Relaxed) == 1 {
        if !shared.aborted() {
            shared.finished.fetch_add(1, Relaxed);
        }
        shared.lane_is_over();
    }
}

fn bind(shared: &Shared, address: SocketAddr, connects: bool) -> Result<(UdpSocket, u16)> {
    let failed = |operation| move |error| SysError::new(operation, address.to_string(), error);
    let socket = Socket::new(Domain::for_address(address), Type::DGRAM, Some(Protocol::UDP))
        .map_err(failed("open a socket for"))?;
    sockopt::set_receive_buffer(&socket, RECEIVE_BUFFER_BYTES)?;
    if shared.spec.method == FlowMethod::ZeroCopy && shared.spec.sends {
        sockopt::set_zerocopy(&socket, true)?;
    }
    let local = if connects { shared.spec.bind } else { Some(address) };
    if let Some(local) = local {
        socket.bind(&local.into()).map_err(failed("bind"))?;
    }
    if connects {
        socket.connect(&address.into()).map_err(failed("connect"))?;
    }
    socket.set_read_timeout(Some(TICK)).map_err(failed("set a timeout for"))?;
    socket.set_write_timeout(Some(TICK)).map_err(failed("set a timeout for"))?;
    let local = socket.local_addr().ok().and_then(|address| address.as_socket());
    Ok((socket.into(), local.map_or(0, |address| address.port())))
}

fn header(kind: [u8; 4], lane: u32, length: usize, number: u64) -> [u8; HEADER_BYTES] {
    let mut bytes = [0; HEADER_BYTES];
    bytes[..4].copy_from_slice(&kind);
    bytes[4..6].copy_from_slice(&(lane as u16).to_be_bytes());
    bytes[6..8].copy_from_slice(&(length as u16).to_be_bytes());
    bytes[8..].copy_from_slice(&number.to_be_bytes());
    bytes
}

fn key(shared: &Shared, lane: u32, of_connecting_side: bool, number: u64) -> Key {
    Key::of(&[shared.spec.seed, lane.into(), of_connecting_side.into(), number])
}

fn send_all(shared: &Shared, door: &Door, lane: u32) -> io::Result<()> {
    let spec = &shared.spec;
    let Some(remote) = await_remote(shared, door, lane) else { return Ok(()) };
    let mut pace = Pace::new(spec);
    let mut zerocopy = (spec.method == FlowMethod::ZeroCopy).then(ZeroCopy::default);
    let mut buffer = Vec::new();
    let (mut number, mut bytes_sent) = (0, 0_u64);
    for size in spec.write_bytes.iter().cycle() {
        let size = *size as usize;
        let done = spec.bytes_per_connection.is_some_and(|all| bytes_sent >= all);
        if done || !pace.turn(shared, size) {
            break;
        }
        buffer.resize(size, 0);
        buffer[..HEADER_BYTES].copy_from_slice(&header(DATA, lane, size, number));
        key(shared, lane, door.connected, number).fill(0, &mut buffer[HEADER_BYTES..]);
        let failed =
            |error: io::Error| io::Error::new(error.kind(), format!("send datagram {number}: {error}"));
        if !send_one(shared, door, remote, &buffer, zerocopy.as_mut()).map_err(failed)? {
            break;
        }
        number += 1;
        bytes_sent += size as u64;
        shared.sent_datagrams.fetch_add(1, Relaxed);
        shared.sent(size);
    }
    if let Some(zerocopy) = &mut zerocopy {
        zerocopy.settle(shared, &door.socket)?;
    }
    for _ in 0..ENDS {
        // Whoever gets none of them is over by quiet.
        let _ = door.send(&header(END, lane, HEADER_BYTES, number), remote);
        thread::sleep(END_GAP);
    }
    Ok(())
}

/// Where a connection's datagrams go; `None` when it is over before its greeting has come.
fn await_remote(shared: &Shared, door: &Door, lane: u32) -> Option<SocketAddr> {
    loop {
        let remote = *door.remote(lane);
        if remote.is_some() || shared.stopped() {
            return remote;
        }
        thread::sleep(Duration::from_millis(1));
    }
}

/// False when it was stopped before there was room.
fn send_one(
    shared: &Shared,
    door: &Door,
    remote: SocketAddr,
    bytes: &[u8],
    mut zerocopy: Option<&mut ZeroCopy>,
) -> io::Result<bool> {
    loop {
        let sent = match (&mut zerocopy, shared.spec.method) {
            (Some(state), _) => state.send_whole(shared, &door.socket, bytes),
            (None, FlowMethod::Writev) => door.send_pieces(bytes, remote),
            (None, _) => door.send(bytes, remote),
        };
        let error = match sent {
            Ok(count) => return Ok(count > 0),
            Err(error) => error,
        };
        if shared.stopped() {
            return Ok(false);
        }
        if error.raw_os_error() == Some(nix::libc::ENOBUFS) {
            thread::sleep(NO_ROOM);
        } else if !is_wait(&error) {
            if !shared.spec.reconnect {
                return Err(error);
            }
            thread::sleep(REST);
        }
    }
}

/// What a socket receives for the connections that are its.
struct Reception<'a> {
    shared: &'a Shared,
    door: &'a Door,
    /// Connections that are not over.
    lanes: Vec<u32>,
    seen: Vec<Seen>,
    /// When the end of a connection was told.
    ends: Vec<Option<Instant>>,
    heard: Instant,
}

impl<'a> Reception<'a> {
    fn new(shared: &'a Shared, door: &'a Door, lanes: &[u32]) -> Self {
        let count = shared.spec.connections as usize;
        Self {
            shared,
            door,
            lanes: lanes.to_vec(),
            seen: (0..count).map(|_| Seen::default()).collect(),
            ends: vec![None; count],
            heard: Instant::now(),
        }
    }

    /// Receives until every connection is over, and tells of each that is.
    fn run(&mut self, mut over: impl FnMut(u32)) {
        let mut buffer = vec![0; LARGEST_BYTES];
        let mut greeted: Option<Instant> = None;
        let mut told_to_stop: Option<Instant> = None;
        while !self.lanes.is_empty() {
            if self.shared.stop.load(Relaxed) {
                told_to_stop.get_or_insert_with(Instant::now);
            }
            let quiet =
                told_to_stop.is_some_and(|since| since.elapsed() >= QUIET && self.heard.elapsed() >= QUIET);
            let ends = &self.ends;
            let is_over = |lane: u32| ends[lane as usize].is_some_and(|end| end.elapsed() >= LATE);
            let all_over = quiet || self.shared.aborted();
            let (done, left): (Vec<_>, Vec<_>) =
                self.lanes.iter().copied().partition(|lane| all_over || is_over(*lane));
            self.lanes = left;
            done.into_iter().for_each(&mut over);
            let heard_nothing = self.seen.iter().all(|seen| seen.next == 0);
            if self.door.connected && heard_nothing && greeted.is_none_or(|at| at.elapsed() >= GREETING_GAP) {
                self.greet();
                greeted = Some(Instant::now());
            }
            self.receive(&mut buffer);
        }
    }

    /// Learns where to send, on a side that receives nothing.
    fn await_greetings(&mut self) {
        let mut buffer = vec![0; LARGEST_BYTES];
        while !self.shared.is_over() && !self.shared.aborted() {
            self.receive(&mut buffer);
        }
    }

    fn greet(&self) {
        for lane in &self.lanes {
            if let Some(remote) = *self.door.remote(*lane) {
                // Sent again until something comes.
                let _ = self.door.send(&header(GREETING, *lane, HEADER_BYTES, 0), remote);
            }
        }
    }

    fn receive(&mut self, buffer: &mut [u8]) {
        match self.door.socket.recv_from(buffer) {
            Ok((count, from)) => self.take(&buffer[..count], from),
            Err(error) if is_wait(&error) => {}
            // Nobody was there for what was sent, which the sender tells; or the link is down.
            Err(_) => thread::sleep(REST),
        }
    }

    fn take(&mut self, datagram: &[u8], from: SocketAddr) {
        let Some((head, content)) = datagram.split_first_chunk::<HEADER_BYTES>() else {
            return self.wrong(0, Difference { offset: 0, expected: DATA[0], got: 0, count: 1 });
        };
        let kind = &head[..4];
        let lane = u32::from(u16::from_be_bytes([head[4], head[5]]));
        let length = usize::from(u16::from_be_bytes([head[6], head[7]]));
        let number = head[8..].iter().fold(0, |sum, byte| sum << 8 | u64::from(*byte));
        let known = [DATA, GREETING, END].iter().any(|known| known == kind);
        if !known || lane >= self.shared.spec.connections {
            let at = if known { 4 } else { DATA.iter().zip(kind).position(|(a, b)| a != b).unwrap_or(0) };
            let expected = if known { 0 } else { DATA[at] };
            return self.wrong(0, Difference { offset: at as u64, expected, got: head[at], count: 1 });
        }
        if !self.door.connected {
            *self.door.remote(lane) = Some(from);
        }
        if kind == END {
            self.ends[lane as usize].get_or_insert_with(Instant::now);
        }
        if kind == DATA && self.shared.spec.receives {
            self.take_data(lane, number, length, content);
        }
    }

    fn take_data(&mut self, lane: u32, number: u64, length: usize, content: &[u8]) {
        self.heard = Instant::now();
        let got = HEADER_BYTES + content.len();
        let key = key(self.shared, lane, !self.door.connected, number);
        if let Some(mut difference) = key.compare(0, content) {
            difference.offset += HEADER_BYTES as u64;
            self.wrong(lane, difference);
        } else if got != length {
            let offset = got.min(length) as u64;
            let count = got.abs_diff(length) as u64;
            self.wrong(lane, Difference { offset, expected: 0, got: 0, count });
        }
        self.shared.received(got);
        let again = self.seen[lane as usize].is_again(number);
        let counter = if again { &self.shared.duplicate_datagrams } else { &self.shared.received_datagrams };
        counter.fetch_add(1, Relaxed);
    }

    fn wrong(&self, lane: u32, difference: Difference) {
        self.shared.wrong(lane, difference);
    }
}

/// Which of the last datagrams have come. One from further back is taken for new.
#[derive(Debug, Clone, Default)]
struct Seen {
    bits: Vec<u64>,
    /// One more than the highest.
    next: u64,
}

impl Seen {
    fn is_again(&mut self, number: u64) -> bool {
        self.bits.resize((WINDOW / 64) as usize, 0);
        if number >= self.next {
            let skipped = number - self.next;
            if skipped >= WINDOW {
                self.bits.fill(0);
            } else {
                for other in self.next..number {
                    self.bits[(other % WINDOW / 64) as usize] &= !(1 << (other % 64));
                }
            }
            self.next = number.saturating_add(1);
        } else if self.next - number > WINDOW {
            return false;
        } else {
            let again = self.bits[(number % WINDOW / 64) as usize] >> (number % 64) & 1 == 1;
            self.bits[(number % WINDOW / 64) as usize] |= 1 << (number % 64);
            return again;
        }
        self.bits[(number % WINDOW / 64) as usize] |= 1 << (number % 64);
        false
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_number_is_new_once_in_whatever_order() {
        let mut seen = Seen::default();
        for number in [0, 1, 5, 3, 2, 70_000, 69_999, 4 + 65_536] {
            assert!(!seen.is_again(number), "{number}");
            assert!(seen.is_again(number), "{number}");
        }
        // Too far back to know.
        assert!(!seen.is_again(1));
        assert!(!seen.is_again(u64::MAX));
    }
}
