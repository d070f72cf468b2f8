//! `linerate serve`: doors that strangers may knock on, many at once, within limits.
//!
//! A [`Door`] is a listening socket with the service behind it. All doors of a process share one [`Admission`]: who may come,
//! and how many at once. [`own_service`] serves linerate's own protocol, traffic only.

use std::io::{self, Read};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, TcpListener, TcpStream};
use std::os::fd::AsFd;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use ipnet::IpNet;
use linerate_traffic::OpenProfile;
use nix::errno::Errno;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use socket2::{Domain, Protocol, Socket, Type};

use crate::auth::Secret;
use crate::frame::{MAX_GREETING_BYTES, write_message};
use crate::launch::tune_control;
use crate::protocol::{Refusal, Reply};
use crate::session::{self, SessionOptions};

/// How often the accept loop looks whether it shall stop.
const STOP_CHECK: Duration = Duration::from_millis(200);
/// Most connections served at once, whatever they are: a bound for threads.
const MAX_CONNECTIONS: usize = 4096;

/// Who may come in, and how many at once; shared by all doors.
#[derive(Debug, Clone)]
pub struct Admission {
    allow: Arc<[IpNet]>,
    most: usize,
    clients: Arc<AtomicUsize>,
}

impl Admission {
    /// Lets in `most` clients at once, from the networks `allow`; from everywhere where that is empty.
    pub fn new(allow: Vec<IpNet>, most: usize) -> Self {
        Self { allow: allow.into(), most, clients: Arc::default() }
    }

    /// Whether an address may come in.
    pub fn allows(&self, address: IpAddr) -> bool {
        self.allow.is_empty() || self.allow.iter().any(|net| net.contains(&address.to_canonical()))
    }

    /// Takes a client's place until the answer is dropped; `None` where all are taken.
    pub fn enter(&self) -> Option<Place> {
        Place::take(&self.clients, self.most)
    }

    /// Clients at this moment.
    pub fn clients(&self) -> usize {
        self.clients.load(Ordering::Relaxed)
    }
}

/// One of the places that an [`Admission`] has; given back when dropped.
#[derive(Debug)]
pub struct Place(Arc<AtomicUsize>);

impl Place {
    fn take(taken: &Arc<AtomicUsize>, most: usize) -> Option<Self> {
        let one_more = |n| (n < most).then_some(n + 1);
        taken.fetch_update(Ordering::AcqRel, Ordering::Acquire, one_more).ok()?;
        Some(Self(Arc::clone(taken)))
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::AcqRel);
    }
}

/// Somebody who came through a door.
#[derive(Debug)]
pub struct Visitor {
    /// The connection, blocking.
    pub stream: TcpStream,
    /// From where; IPv4 shown as IPv4.
    pub from: SocketAddr,
    /// Where to take a client's place.
    pub admission: Admission,
}

/// What became of a visitor.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Served {
    /// A client, served to its end; with what went wrong, if anything.
    Client(Option<String>),
    /// Turned away, with the reason.
    Refused(&'static str),
    /// Part of a client that is served already (a data connection).
    Part,
}

/// What serves a visitor, on a thread of its own.
pub type Service = Arc<dyn Fn(Visitor) -> Served + Send + Sync>;

/// A listening socket with the service behind it.
#[derive(Clone)]
pub struct Door {
    /// Name of the protocol.
    pub name: &'static str,
    listener: Arc<TcpListener>,
    service: Service,
    refuse: Option<fn(&mut TcpStream, &str)>,
}

impl std::fmt::Debug for Door {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Door")
            .field("name", &self.name)
            .field("listener", &self.listener)
            .finish_non_exhaustive()
    }
}

/// Why a server could not listen.
#[derive(Debug, thiserror::Error)]
#[error("listen on {address} for {name}: {source}")]
pub struct ListenError {
    /// The protocol.
    pub name: &'static str,
    /// Where.
    pub address: SocketAddr,
    /// The kernel's reason.
    pub source: io::Error,
}

impl Door {
    /// Listens on a port of one address, or of all: with one dual-stack socket, or IPv4 alone where the kernel has no IPv6.
    ///
    /// # Errors
    /// Where the kernel refuses.
    pub fn listen(
        name: &'static str,
        bind: Option<IpAddr>,
        port: u16,
        service: Service,
    ) -> Result<Self, ListenError> {
        let any = IpAddr::V6(Ipv6Addr::UNSPECIFIED);
        let listener = match bind {
            Some(address) => listen_on(name, SocketAddr::new(address, port)),
            None => listen_on(name, SocketAddr::new(any, port)).or_else(|error| {
                let no_ipv6 = matches!(
                    error.source.raw_os_error(),
                    Some(nix::libc::EAFNOSUPPORT | nix::libc::EADDRNOTAVAIL)
                );
                let v4 = SocketAddr::new(IpAddr::V4(Ipv4Addr::UNSPECIFIED), port);
                if no_ipv6 { listen_on(name, v4) } else { Err(error) }
            }),
        }?;
        Ok(Self::over(name, listener, service))
    }

    /// Over a socket that listens already (handed over by systemd).
    pub fn over(name: &'static str, listener: TcpListener, service: Service) -> Self {
        Self { name, listener: Arc::new(listener), service, refuse: None }
    }

    /// How the protocol tells somebody that it may not come in; without it the connection is just closed.
    #[must_use]
    pub fn refusing_with(mut self, refuse: fn(&mut TcpStream, &str)) -> Self {
        self.refuse = Some(refuse);
        self
    }

    /// Where it listens.
    ///
    /// # Errors
    /// Where the kernel does not tell.
    pub fn address(&self) -> io::Result<SocketAddr> {
        self.listener.local_addr()
    }
}

/// What a server tells while it runs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ServerEvent {
    /// Somebody knocked.
    Knocked(SocketAddr),
    /// Somebody was turned away, with the reason.
    Refused(SocketAddr, &'static str),
    /// A client is gone, with what went wrong, if anything.
    Ended(SocketAddr, Option<String>),
    /// Accepting failed; the server goes on.
    AcceptFailed(String),
}

/// Serves all doors until `stop` is set. Visitors being served end with the process.
///
/// # Errors
/// Where waiting for visitors fails for good.
pub fn run(
    doors: &[Door],
    admission: &Admission,
    stop: &AtomicBool,
    tell: impl Fn(&'static str, ServerEvent) + Clone + Send + 'static,
) -> io::Result<()> {
    let connections = Arc::new(AtomicUsize::new(0));
    for door in doors {
        door.listener.set_nonblocking(true)?;
    }
    while !stop.load(Ordering::Relaxed) {
        for door in waiting_at(doors)? {
            match door.listener.accept() {
                Ok((stream, from)) => {
                    let visitor = Visitor { stream, from: canonical(from), admission: admission.clone() };
                    let tell = tell.clone();
                    let name = door.name;
                    admit(door, visitor, &connections, move |event| tell(name, event));
                }
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                Err(error) => {
                    // Out of descriptors, or the visitor is gone already: others may still come.
                    tell(door.name, ServerEvent::AcceptFailed(error.to_string()));
                    std::thread::sleep(Duration::from_millis(50));
                }
            }
        }
    }
    Ok(())
}

/// The doors that somebody waits at.
fn waiting_at(doors: &[Door]) -> io::Result<Vec<&Door>> {
    let mut fds: Vec<PollFd<'_>> =
        doors.iter().map(|door| PollFd::new(door.listener.as_fd(), PollFlags::POLLIN)).collect();
    let limit = PollTimeout::try_from(STOP_CHECK).unwrap_or(PollTimeout::MAX);
    match poll(&mut fds, limit) {
        Ok(_) => {}
        Err(Errno::EINTR) => return Ok(Vec::new()),
        Err(error) => return Err(error.into()),
    }
    Ok(doors.iter().zip(&fds).filter(|(_, fd)| fd.any().unwrap_or(false)).map(|(door, _)| door).collect())
}

fn admit(
    door: &Door,
    mut visitor: Visitor,
    connections: &Arc<AtomicUsize>,
    tell: impl Fn(ServerEvent) + Send + 'static,
) {
    let from = visitor.from;
    let Some(thread_place) = Place::take(connections, MAX_CONNECTIONS) else {
        return tell(ServerEvent::Refused(from, "too many connections are open"));
    };
    let (service, refuse) = (Arc::clone(&door.service), door.refuse);
    let serve = move || {
        let _thread_place = thread_place;
        if !visitor.admission.allows(from.ip()) {
            const REASON: &str = "your address is not among those that --allow names";
            if let Some(refuse) = refuse {
                refuse(&mut visitor.stream, REASON);
            }
            return tell(ServerEvent::Refused(from, REASON));
        }
        if let Err(error) = visitor.stream.set_nonblocking(false) {
            return tell(ServerEvent::Ended(from, Some(format!("set up the connection: {error}"))));
        }
        tell(ServerEvent::Knocked(from));
        match service(visitor) {
            Served::Client(outcome) => tell(ServerEvent::Ended(from, outcome)),
            Served::Refused(reason) => tell(ServerEvent::Refused(from, reason)),
            Served::Part => {}
        }
    };
    // Where the thread can't be started the stream is dropped with the closure, and the visitor sees the end.
    let _ = std::thread::Builder::new().name(format!("serve-{}", door.name)).spawn(serve);
}

fn listen_on(name: &'static str, address: SocketAddr) -> Result<TcpListener, ListenError> {
    let open = || {
        let socket = Socket::new(Domain::for_address(address), Type::STREAM, Some(Protocol::TCP))?;
        socket.set_reuse_address(true)?;
        if address.is_ipv6() {
            socket.set_only_v6(!address.ip().is_unspecified())?;
        }
        socket.bind(&address.into())?;
        socket.listen(128)?;
        Ok(socket.into())
    };
    open().map_err(|source| ListenError { name, address, source })
}

/// IPv4 clients of a dual-stack socket look like `::ffff:a.b.c.d`: show and compare them as what they are.
fn canonical(address: SocketAddr) -> SocketAddr {
    SocketAddr::new(address.ip().to_canonical(), address.port())
}

/// What linerate's own clients may do.
#[derive(Debug, Clone)]
pub struct OwnOptions {
    /// Longest trial; `None` is no limit.
    pub max_duration: Option<Duration>,
    /// Most bits a second that the server sends a client; `None` is no limit.
    pub max_rate: Option<u64>,
    /// Secret that clients must know.
    pub secret: Option<Secret>,
    /// What runs profiles here; `None` is nothing.
    pub profiles: Option<OpenProfile>,
}

/// Serves linerate's own protocol: traffic only.
pub fn own_service(options: OwnOptions) -> Service {
    Arc::new(move |mut visitor: Visitor| {
        let Some(_place) = visitor.admission.enter() else {
            const REASON: &str = "as many clients as --max-clients allows are being served; try again later";
            turn_away(&mut visitor.stream, REASON, Refusal::Network);
            return Served::Refused(REASON);
        };
        Served::Client(serve_own(visitor.stream, &options).err())
    })
}

/// Tells a linerate client why it may not come in.
pub fn refuse_own(stream: &mut TcpStream, reason: &str) {
    turn_away(stream, reason, Refusal::Permission);
}

fn turn_away(stream: &mut TcpStream, reason: &str, kind: Refusal) {
    let _ = stream.set_nonblocking(false);
    let _ = stream.set_write_timeout(Some(Duration::from_secs(1)));
    let refused = Reply::Refused { reason: reason.to_owned(), kind };
    let _ = write_message(stream, &refused);
    // Its greeting is read, for closing with bytes unread would reset the connection and lose our answer.
    let _ = stream.shutdown(std::net::Shutdown::Write);
    let _ = stream.set_read_timeout(Some(Duration::from_millis(50)));
    let _ = stream.read(&mut [0; MAX_GREETING_BYTES as usize]);
}

fn serve_own(stream: TcpStream, options: &OwnOptions) -> Result<(), String> {
    let prepare = || {
        tune_control(&stream)?;
        stream.set_write_timeout(Some(Duration::from_secs(20)))?;
        Ok((stream.try_clone()?, stream.local_addr()?))
    };
    let (reader, local) = prepare().map_err(|e: io::Error| format!("set up the connection: {e}"))?;
    let session = SessionOptions {
        traffic_only: true,
        profiles: options.profiles,
        secret: options.secret.clone(),
        max_duration: options.max_duration,
        max_rate: options.max_rate,
        reached_at: Some(canonical(local).ip()),
        ..SessionOptions::default()
    };
    let outcome = session::serve(reader, &stream, &session);
    // The reader thread holds a copy: without this it would wait on.
    let _ = stream.shutdown(std::net::Shutdown::Both);
    outcome.map_err(|e| e.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn mapped_addresses_are_compared_as_ipv4() {
        let admission = Admission::new(vec!["10.0.0.0/8".parse().unwrap()], 1);
        assert!(admission.allows("::ffff:10.1.2.3".parse().unwrap()));
        assert!(!admission.allows("::ffff:11.1.2.3".parse().unwrap()));
        assert!(!admission.allows("fd00::1".parse().unwrap()));
    }

    #[test]
    fn a_place_is_given_back() {
        let admission = Admission::new(Vec::new(), 1);
        let place = admission.enter().unwrap();
        assert!(admission.enter().is_none());
        drop(place);
        assert!(admission.enter().is_some());
    }
}
