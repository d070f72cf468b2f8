//! TCP: a lane for each connection, which opens it again where told, with a thread to send and one to receive.

use std::io::{self, Read, Write};
use std::net::{Shutdown, SocketAddr};
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::mpsc::{self, Receiver, RecvTimeoutError};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use linerate_model::bench::flow::FlowRole;
use linerate_sys::error::Result;
use linerate_sys::{SysError, sockopt};
use socket2::{Domain, Protocol, Socket, Type};

use super::send::{Sender, is_wait};
use super::shared::{Pace, Shared};
use super::{MOST_CONNECTIONS, TICK, spawn};
use crate::place::Key;

/// What the connecting side sends first: these bytes, the connection's number, how often it was opened before.
const MAGIC: [u8; 4] = *b"LRfl";
const PREAMBLE_BYTES: usize = 12;
const CONNECT_LIMIT: Duration = Duration::from_secs(5);
const PREAMBLE_LIMIT: Duration = Duration::from_secs(2);
/// Before a connection that could not be made is tried again.
const REST: Duration = Duration::from_millis(50);
const RECEIVE_BYTES: usize = 256 << 10;

/// An open connection and how often it was opened before.
type Opened = (Arc<Socket>, u32);

/// Starts the lanes; returns the port that is listened on, or 0.
pub(super) fn start(shared: &Arc<Shared>, threads: &mut Vec<JoinHandle<()>>) -> Result<u16> {
    let connections = shared.spec.connections;
    match shared.spec.role {
        FlowRole::Connect(address) => {
            for lane in 0..connections {
                let shared = shared.clone();
                spawn(threads, format!("lr-flow-{lane}"), move || {
                    run_lane(&shared, lane, |opened| connect(&shared, lane, address, opened));
                })?;
            }
            Ok(0)
        }
        FlowRole::Listen(address) => {
            let listener = listen(shared, address)?;
            let port = listener.local_addr().ok().and_then(|address| address.as_socket());
            let mut doors = Vec::new();
            for lane in 0..connections {
                let (door, arrivals) = mpsc::channel();
                doors.push(door);
                let shared = shared.clone();
                spawn(threads, format!("lr-flow-{lane}"), move || {
                    run_lane(&shared, lane, |_| arrival(&shared, &arrivals));
                })?;
            }
            let shared = shared.clone();
            spawn(threads, "lr-flow-accept".to_owned(), move || accept(&shared, &listener, &doors))?;
            Ok(port.map_or(0, |address| address.port()))
        }
    }
}

fn listen(shared: &Shared, address: SocketAddr) -> Result<Socket> {
    let failed = |operation| move |error| SysError::new(operation, address.to_string(), error);
    let socket = new_socket(shared, address).map_err(failed("open a socket for"))?;
    socket.set_reuse_address(true).map_err(failed("set SO_REUSEADDR for"))?;
    socket.bind(&address.into()).map_err(failed("bind"))?;
    socket.listen(2 * MOST_CONNECTIONS as i32).map_err(failed("listen on"))?;
    socket.set_read_timeout(Some(TICK)).map_err(failed("set a timeout for"))?;
    Ok(socket)
}

fn new_socket(shared: &Shared, address: SocketAddr) -> io::Result<Socket> {
    let socket = Socket::new(Domain::for_address(address), Type::STREAM, Some(Protocol::TCP))?;
    if shared.spec.mss_bytes != 0 {
        sockopt::set_mss(&socket, shared.spec.mss_bytes).map_err(|error| error.source)?;
    }
    Ok(socket)
}

/// Lets connections in and hands each to its lane; a lane's earlier one is cut off.
fn accept(shared: &Shared, listener: &Socket, doors: &[mpsc::Sender<Opened>]) {
    while !shared.is_over() && !shared.aborted() {
        let socket = match listener.accept() {
            Ok((socket, _)) => socket,
            Err(error) if is_wait(&error) => continue,
            Err(_) => {
                // Out of descriptors or memory: others may give some back.
                thread::sleep(REST);
                continue;
            }
        };
        // Whoever sends no preamble is a stranger.
        let Ok((lane, opened)) = read_preamble(&socket) else { continue };
        let Some(door) = doors.get(lane as usize) else { continue };
        if opened > 0 {
            shared.shut(lane);
        }
        // A lane that is over needs it no more.
        let _ = door.send((Arc::new(socket), opened));
    }
}

fn read_preamble(mut socket: &Socket) -> io::Result<(u32, u32)> {
    socket.set_read_timeout(Some(PREAMBLE_LIMIT))?;
    let mut bytes = [0; PREAMBLE_BYTES];
    socket.read_exact(&mut bytes)?;
    let number = |at: usize| u32::from_be_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]]);
    if bytes[..4] != MAGIC {
        return Err(io::ErrorKind::InvalidData.into());
    }
    Ok((number(4), number(8)))
}

/// The next connection that came for a lane; `None` once it is over without one.
fn arrival(shared: &Shared, arrivals: &Receiver<Opened>) -> Option<io::Result<Opened>> {
    loop {
        match arrivals.recv_timeout(TICK) {
            Ok(opened) => return Some(Ok(opened)),
            Err(RecvTimeoutError::Timeout) if !shared.stopped() => {}
            Err(_) => return None,
        }
    }
}

fn connect(shared: &Shared, lane: u32, address: SocketAddr, opened: u32) -> Option<io::Result<Opened>> {
    if shared.stopped() {
        return None;
    }
    let open = || {
        let socket = new_socket(shared, address)?;
        if let Some(local) = shared.spec.bind {
            socket.bind(&local.into())?;
        }
        socket.connect_timeout(&address.into(), CONNECT_LIMIT)?;
        let mut preamble = MAGIC.to_vec();
        preamble.extend(lane.to_be_bytes());
        preamble.extend(opened.to_be_bytes());
        (&socket).write_all(&preamble)?;
        Ok((Arc::new(socket), opened))
    };
    let describe = |error: io::Error| io::Error::new(error.kind(), format!("connect to {address}: {error}"));
    Some(open().map_err(describe))
}

/// Opens, moves bytes, and opens again, until it came to its end. `open` is told how often it was opened before.
fn run_lane(shared: &Shared, lane: u32, mut open: impl FnMut(u32) -> Option<io::Result<Opened>>) {
    let mut opened_before = 0;
    while let Some(opened) = open(opened_before) {
        let outcome = opened.and_then(|(socket, opened)| {
            if opened_before > 0 {
                shared.reconnects.fetch_add(1, Relaxed);
            }
            opened_before += 1;
            shared.connected(lane, &socket);
            let outcome = exchange(shared, lane, opened, &socket);
            shared.disconnected(lane);
            outcome
        });
        match outcome {
            Ok(()) => {
                shared.finished.fetch_add(1, Relaxed);
                break;
            }
            Err(error) if shared.aborted() => {
                shared.broke(lane, format_args!("cut off, not over in time ({error})"));
                break;
            }
            Err(error) => shared.broke(lane, error),
        }
        if !shared.spec.reconnect {
            break;
        }
        thread::sleep(REST);
    }
    shared.lane_is_over();
}

/// Both directions of a connection, to their ends.
fn exchange(shared: &Shared, lane: u32, opened: u32, socket: &Socket) -> io::Result<()> {
    socket.set_read_timeout(Some(TICK))?;
    socket.set_write_timeout(Some(TICK))?;
    let connects = matches!(shared.spec.role, FlowRole::Connect(_));
    let key = |of_connecting_side: bool| {
        let numbers = [shared.spec.seed, lane.into(), opened.into(), of_connecting_side.into()];
        Key::of(&numbers)
    };
    let (out, back) = (key(connects), key(!connects));
    // Where one direction fails the other can't come to its end.
    let ended = |outcome: io::Result<()>| outcome.inspect_err(|_| drop(socket.shutdown(Shutdown::Both)));
    thread::scope(|scope| {
        let sender = shared.spec.sends.then(|| {
            let send = move || ended(send_all(shared, socket, out));
            thread::Builder::new().name(format!("lr-flow-{lane}-tx")).spawn_scoped(scope, send)
        });
        let received = ended(if shared.spec.receives {
            receive_all(shared, socket, lane, back)
        } else {
            await_end(shared, socket, lane)
        });
        let sent = match sender {
            None => socket.shutdown(Shutdown::Write).or_else(not_connected),
            Some(thread) => {
                let gone = |_| Err(io::Error::other("the sending thread panicked"));
                thread?.join().unwrap_or_else(gone)
            }
        };
        sent.and(received)
    })
}

/// The other side may have closed already, having all.
fn not_connected(error: io::Error) -> io::Result<()> {
    if error.kind() == io::ErrorKind::NotConnected { Ok(()) } else { Err(error) }
}

fn send_all(shared: &Shared, socket: &Socket, key: Key) -> io::Result<()> {
    let spec = &shared.spec;
    let mut sender = Sender::new(spec.method, socket)?;
    let mut pace = Pace::new(spec);
    let mut offset = 0;
    for size in spec.write_bytes.iter().cycle() {
        let left = spec.bytes_per_connection.map_or(u64::MAX, |all| all - offset);
        let size = u64::from(*size).min(left) as usize;
        if size == 0 || !pace.turn(shared, size) {
            break;
        }
        let failed =
            |error: io::Error| io::Error::new(error.kind(), format!("send at byte {offset}: {error}"));
        let sent = sender.send(shared, socket, key, offset, size).map_err(failed)?;
        offset += sent as u64;
        if sent < size {
            break;
        }
    }
    sender.settle(shared, socket)?;
    socket.shutdown(Shutdown::Write)
}

fn receive_all(shared: &Shared, mut socket: &Socket, lane: u32, key: Key) -> io::Result<()> {
    let mut buffer = vec![0; RECEIVE_BYTES];
    let mut offset = 0;
    loop {
        match socket.read(&mut buffer) {
            Ok(0) if shared.was_cut(lane) => return Err(io::ErrorKind::ConnectionAborted.into()),
            Ok(0) => return Ok(()),
            Ok(count) => {
                if let Some(difference) = key.compare(offset, &buffer[..count]) {
                    shared.wrong(lane, difference);
                }
                offset += count as u64;
                shared.received(count);
            }
            Err(error) if is_wait(&error) && !shared.aborted() => {}
            Err(error) => {
                return Err(io::Error::new(error.kind(), format!("receive at byte {offset}: {error}")));
            }
        }
    }
}

/// Waits until the other side, which does not send, has closed: it has everything then.
fn await_end(shared: &Shared, mut socket: &Socket, lane: u32) -> io::Result<()> {
    loop {
        match socket.read(&mut [0]) {
            Ok(0) if shared.was_cut(lane) => return Err(io::ErrorKind::ConnectionAborted.into()),
            Ok(0) => return Ok(()),
            Ok(_) => return Err(io::Error::other("bytes came from a side that does not send")),
            Err(error) if is_wait(&error) && !shared.aborted() => {}
            Err(error) => return Err(error),
        }
    }
}
