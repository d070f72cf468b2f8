//! Serves clients, side by side.

use std::collections::VecDeque;
use std::io::{ErrorKind, Read, Write};
use std::net::{IpAddr, SocketAddr, UdpSocket};
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering::Relaxed};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::Duration;

use linerate_sys::poll::{PollSet, Readiness};
use linerate_sys::{SysError, clock};
use socket2::Socket;
use std::os::fd::AsFd;
use std::path::PathBuf;

use super::auth::Gate;
use super::door::{Door, Place, Seat};
use super::error::TestError;
use super::limits::Limits;
use super::report::Event;
use super::session;
use super::sockets::{self, Family};
use super::wire::{COOKIE_LEN, Cookie, ErrorCode, State};

/// How long a connection may take to send its cookie.
const COOKIE_LIMIT: Duration = Duration::from_secs(10);

/// Connections whose cookie is awaited, at most.
const STRANGERS: usize = 512;

/// How long a retired listener stays, nanoseconds: long enough for handshakes whose last segment must be sent again.
const RETIRED_NS: u64 = 3_000_000_000;

/// Retired listeners, at most.
const RETIRED: usize = 256;

/// What a server offers.
#[derive(Debug, Default)]
pub struct ServerOptions {
    /// Address to listen on; all where none is given.
    pub bind: Option<IpAddr>,
    /// TCP and UDP port.
    pub port: u16,
    /// IP version.
    pub family: Family,
    /// What is allowed.
    pub limits: Limits,
    /// Who is allowed; everybody where none is given.
    pub gate: Option<Gate>,
    /// Seconds between reports; 0 is none.
    pub interval_s: f64,
    /// Output for clients that ask for it is JSON.
    pub json: bool,
    /// Ends after one test.
    pub one_off: bool,
    /// Ends (one-off) after this time without a client.
    pub idle: Option<Duration>,
    /// Received into, or sent from, instead of memory.
    pub file: Option<PathBuf>,
}

/// What a server tells of one client.
#[derive(Debug, Clone)]
pub struct ServerEvent {
    /// Number of the client.
    pub client: u64,
    /// Its address.
    pub address: SocketAddr,
    /// What happened.
    pub what: ServerTold,
}

/// What happened to a client.
#[derive(Debug, Clone)]
pub enum ServerTold {
    /// In its test.
    Test(Event),
    /// It was turned away.
    Refused(&'static str),
    /// It is gone; nothing more follows.
    Gone,
}

/// A listening server.
#[derive(Debug)]
pub struct Server {
    listener: Socket,
    door_socket: UdpSocket,
    pub(super) shared: Arc<ServerShared>,
}

/// What sessions share: nothing of their tests.
#[derive(Debug)]
pub(super) struct ServerShared {
    pub(super) options: ServerOptions,
    pub(super) door: Arc<Door>,
    pub(super) port: u16,
    accepted: AtomicU64,
    clients: AtomicU64,
    strangers: AtomicUsize,
    sessions: AtomicUsize,
    tests_done: AtomicU64,
    /// Listeners that tests had, and since when they are out of use.
    retired: Mutex<VecDeque<(Socket, u64)>>,
    /// Sessions end.
    pub(super) stopping: AtomicBool,
}

/// Takes events; called from each client's thread.
pub type Tell = Arc<dyn Fn(ServerEvent) + Send + Sync>;

impl Server {
    /// Listens.
    ///
    /// # Errors
    /// The address or port cannot be had.
    pub fn bind(options: ServerOptions) -> Result<Self, TestError> {
        let address = sockets::listen_address(options.bind, options.family, options.port);
        let listener = sockets::listen(address, options.family)?;
        let describe = |e| SysError::new("getsockname", address.to_string(), e);
        let local = listener.local_addr().map_err(describe)?.as_socket().unwrap_or(address);
        let door_socket = sockets::bind_door(local, options.family)?;
        let shared = ServerShared {
            options,
            door: Arc::default(),
            port: local.port(),
            accepted: AtomicU64::new(0),
            clients: AtomicU64::new(0),
            strangers: AtomicUsize::new(0),
            sessions: AtomicUsize::new(0),
            tests_done: AtomicU64::new(0),
            retired: Mutex::default(),
            stopping: AtomicBool::new(false),
        };
        Ok(Self { listener, door_socket, shared: Arc::new(shared) })
    }

    /// The port.
    pub fn port(&self) -> u16 {
        self.shared.port
    }

    /// How many tests are under way.
    pub fn tests(&self) -> usize {
        self.shared.door.taken()
    }

    /// Serves until `stop` is set, then tells clients and waits for their sessions to end.
    ///
    /// # Errors
    /// The listener fails.
    pub fn run(&self, stop: &AtomicBool, tell: &Tell) -> Result<(), TestError> {
        let outcome = self.serve(stop, tell);
        self.shared.stopping.store(true, Relaxed);
        let begin_ns = clock::monotonic_ns();
        while self.shared.sessions.load(Relaxed) > 0 && clock::monotonic_ns() - begin_ns < 5_000_000_000 {
            thread::sleep(Duration::from_millis(5));
        }
        outcome
    }

    fn serve(&self, stop: &AtomicBool, tell: &Tell) -> Result<(), TestError> {
        let mut busy_ns = clock::monotonic_ns();
        while !stop.load(Relaxed) {
            let mut set = PollSet::new();
            let tcp = set.add(self.listener.as_fd(), Readiness::READ);
            let udp = set.add(self.door_socket.as_fd(), Readiness::READ);
            set.wait(Some(100_000_000)).map_err(|e| SysError::new("poll", "listeners", e))?;
            if set.ready(tcp).readable {
                self.shared.accept_all(&self.listener, tell);
            }
            if set.ready(udp).readable {
                self.drain_door();
            }
            self.shared.accept_retired(tell);
            let now_ns = clock::monotonic_ns();
            if self.shared.sessions.load(Relaxed) > 0 {
                busy_ns = now_ns;
            } else if self.is_over(now_ns - busy_ns) {
                return Ok(());
            }
        }
        Ok(())
    }

    /// A one-off server has served its test, or none came for long.
    fn is_over(&self, quiet_ns: u64) -> bool {
        let options = &self.shared.options;
        let idle = || options.idle.is_some_and(|idle| u128::from(quiet_ns) > idle.as_nanos());
        options.one_off && (self.shared.tests_done.load(Relaxed) > 0 || idle())
    }

    fn drain_door(&self) {
        let mut buffer = [0; 64];
        // A few at a time, so that a flood does not keep connections waiting.
        for _ in 0..64 {
            let Ok((count, from)) = self.door_socket.recv_from(&mut buffer) else { return };
            self.shared.door.datagram(&buffer[..count], sockets::canonical(from));
        }
    }
}

impl ServerShared {
    /// Accepts what waits on a listener. Each connection gets a thread of its own.
    pub(super) fn accept_all(self: &Arc<Self>, listener: &Socket, tell: &Tell) {
        loop {
            let (socket, address) = match listener.accept() {
                Ok((socket, address)) => (socket, address),
                Err(e) if e.kind() == ErrorKind::WouldBlock => return,
                Err(_) => {
                    // Out of descriptors, or a connection that was reset while it waited.
                    thread::sleep(Duration::from_millis(1));
                    return;
                }
            };
            let Some(address) = address.as_socket().map(sockets::canonical) else { continue };
            let number = self.accepted.fetch_add(1, Relaxed);
            if self.strangers.fetch_add(1, Relaxed) >= STRANGERS {
                self.strangers.fetch_sub(1, Relaxed);
                continue;
            }
            let (shared, tell) = (self.clone(), tell.clone());
            let greet = move || {
                let placed = shared.greet(&socket, address, number);
                shared.strangers.fetch_sub(1, Relaxed);
                shared.lead(placed, socket, address, number, &tell);
            };
            if thread::Builder::new().name("iperf3-greet".into()).spawn(greet).is_err() {
                self.strangers.fetch_sub(1, Relaxed);
            }
        }
    }

    /// A test needs its listener no more, but others may be on their way in through it.
    pub(super) fn retire(&self, listener: Socket) {
        if sockets::retire(&listener).is_err() {
            return;
        }
        let mut retired = self.retired.lock().unwrap_or_else(PoisonError::into_inner);
        if retired.len() >= RETIRED {
            retired.pop_front();
        }
        retired.push_back((listener, clock::monotonic_ns()));
    }

    fn accept_retired(self: &Arc<Self>, tell: &Tell) {
        let now_ns = clock::monotonic_ns();
        let mut retired = self.retired.lock().unwrap_or_else(PoisonError::into_inner);
        for (listener, _) in retired.iter() {
            self.accept_all(listener, tell);
        }
        retired.retain(|(_, since_ns)| now_ns - since_ns < RETIRED_NS);
    }

    /// Reads the cookie and finds its place; none if there is no cookie.
    fn greet(&self, socket: &Socket, address: SocketAddr, _number: u64) -> Option<(Place, Option<Seat>)> {
        if !self.options.limits.allows(address.ip()) {
            return None;
        }
        let cookie = read_cookie(socket)?;
        Some(self.door.place(&cookie, self.options.limits.clients))
    }

    fn lead(
        self: &Arc<Self>,
        placed: Option<(Place, Option<Seat>)>,
        socket: Socket,
        address: SocketAddr,
        number: u64,
        tell: &Tell,
    ) {
        match placed {
            // A test that ended in between closes it by dropping it.
            Some((Place::Stream(sender), _)) => drop(sender.send((number, socket))),
            Some((Place::New, Some(seat))) => self.serve(socket, address, seat, tell),
            Some((Place::Busy, _)) => {
                self.turn_away(&socket, address, "busy", tell);
            }
            Some(_) => refuse(&socket, &[State::AccessDenied.byte()]),
            None if !self.options.limits.allows(address.ip()) => {
                self.turn_away(&socket, address, "address not allowed", tell);
            }
            None => refuse(&socket, &ErrorCode(106).message(0)),
        }
    }

    fn turn_away(&self, socket: &Socket, address: SocketAddr, why: &'static str, tell: &Tell) {
        refuse(socket, &[State::AccessDenied.byte()]);
        let client = self.clients.fetch_add(1, Relaxed) + 1;
        tell(ServerEvent { client, address, what: ServerTold::Refused(why) });
        tell(ServerEvent { client, address, what: ServerTold::Gone });
    }

    fn serve(self: &Arc<Self>, socket: Socket, address: SocketAddr, seat: Seat, tell: &Tell) {
        self.sessions.fetch_add(1, Relaxed);
        let client = self.clients.fetch_add(1, Relaxed) + 1;
        let told = |what| tell(ServerEvent { client, address, what });
        let outcome = session::run(self, socket, address, seat, tell, &mut |e| told(ServerTold::Test(e)));
        if let Err(error) = &outcome {
            told(ServerTold::Test(Event::Failed(error.to_string())));
        }
        // An authentication failure does not use a one-off server up.
        if !matches!(&outcome, Err(e) if e.code() == ErrorCode::AUTHENTICATION) {
            self.tests_done.fetch_add(1, Relaxed);
        }
        told(ServerTold::Gone);
        self.sessions.fetch_sub(1, Relaxed);
    }
}

fn read_cookie(mut socket: &Socket) -> Option<Cookie> {
    let mut cookie = [0; COOKIE_LEN];
    let mut at = 0;
    let until_ns = clock::monotonic_ns() + COOKIE_LIMIT.as_nanos() as u64;
    socket.set_nonblocking(false).ok()?;
    while at < COOKIE_LEN {
        let left = Duration::from_nanos(until_ns.checked_sub(clock::monotonic_ns())?.max(1_000_000));
        socket.set_read_timeout(Some(left)).ok()?;
        match socket.read(&mut cookie[at..]) {
            Ok(0) => return None,
            Ok(count) => at += count,
            Err(e) if e.kind() == ErrorKind::Interrupted => {}
            Err(_) => return None,
        }
    }
    Some(cookie)
}

/// Tells a peer and closes. It may be gone already.
pub(super) fn refuse(mut socket: &Socket, bytes: &[u8]) {
    let _sent = socket.write_all(bytes);
    let _closed = socket.shutdown(std::net::Shutdown::Write);
    // What the peer sent must be read, or the close becomes a reset that overtakes the message.
    let mut rest = [0; 4096];
    let _limited = socket.set_read_timeout(Some(Duration::from_millis(500)));
    for _ in 0..16 {
        if !matches!(socket.read(&mut rest), Ok(count) if count > 0) {
            break;
        }
    }
}

#[cfg(test)]
#[path = "server_tests.rs"]
mod tests;

#[cfg(test)]
#[path = "tail_tests.rs"]
mod tail_tests;
