//! `linerate serve`: sessions for strangers, many at once, traffic only, within limits.

use std::io::{self, Read};
use std::net::{IpAddr, Ipv6Addr, SocketAddr, TcpListener, TcpStream};
use std::os::fd::AsFd;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use ipnet::IpNet;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use socket2::{Domain, Protocol, Socket, Type};

use crate::auth::Secret;
use crate::frame::{MAX_GREETING_BYTES, write_message};
use crate::launch::tune_control;
use crate::protocol::{Refusal, Reply};
use crate::session::{self, SessionOptions};

/// How often the accept loop looks whether it shall stop.
const STOP_CHECK: Duration = Duration::from_millis(200);

/// What a server allows.
#[derive(Debug, Clone)]
pub struct ServerOptions {
    /// Address to listen on; `None` is all, IPv4 and IPv6.
    pub bind: Option<IpAddr>,
    /// TCP port; 0 lets the kernel choose.
    pub port: u16,
    /// Most clients at once.
    pub max_clients: usize,
    /// Longest trial; `None` is no limit.
    pub max_duration: Option<Duration>,
    /// Networks that may connect; empty is all.
    pub allow: Vec<IpNet>,
    /// Secret that clients must know.
    pub secret: Option<Secret>,
}

/// Why a server could not listen.
#[derive(Debug, thiserror::Error)]
#[error("listen on {address}: {source}")]
pub struct ListenError {
    /// Where.
    pub address: SocketAddr,
    /// The kernel's reason.
    pub source: io::Error,
}

/// A listening server.
#[derive(Debug)]
pub struct Server {
    listener: TcpListener,
    options: Arc<ServerOptions>,
    clients: Arc<AtomicUsize>,
}

/// What a server tells while it runs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ServerEvent {
    /// A client was let in.
    Accepted(SocketAddr),
    /// A client was turned away, with the reason.
    Refused(SocketAddr, &'static str),
    /// A client is gone, with what went wrong, if anything.
    Ended(SocketAddr, Option<String>),
    /// Accepting failed; the server goes on.
    AcceptFailed(String),
}

impl Server {
    /// Listens; on all addresses with one dual-stack socket, or IPv4 alone where the kernel has no IPv6.
    ///
    /// # Errors
    /// Where the kernel refuses.
    pub fn listen(options: ServerOptions) -> Result<Self, ListenError> {
        let any = IpAddr::V6(Ipv6Addr::UNSPECIFIED);
        let listener = match options.bind {
            Some(address) => listen_on(SocketAddr::new(address, options.port)),
            None => listen_on(SocketAddr::new(any, options.port)).or_else(|error| {
                let no_ipv6 = error.source.raw_os_error() == Some(nix::libc::EAFNOSUPPORT);
                let v4 = SocketAddr::new(IpAddr::V4(std::net::Ipv4Addr::UNSPECIFIED), options.port);
                if no_ipv6 { listen_on(v4) } else { Err(error) }
            }),
        }?;
        Ok(Self { listener, options: Arc::new(options), clients: Arc::default() })
    }

    /// Where it listens.
    ///
    /// # Errors
    /// Where the kernel does not tell.
    pub fn address(&self) -> io::Result<SocketAddr> {
        self.listener.local_addr()
    }

    /// Serves until `stop` is set. Sessions under way end with the process.
    ///
    /// # Errors
    /// Where waiting for clients fails for good.
    pub fn run(
        &self,
        stop: &AtomicBool,
        tell: impl Fn(ServerEvent) + Clone + Send + 'static,
    ) -> io::Result<()> {
        self.listener.set_nonblocking(true)?;
        while !stop.load(Ordering::Relaxed) {
            if !self.wait_for_client()? {
                continue;
            }
            match self.listener.accept() {
                Ok((stream, from)) => self.admit(stream, canonical(from), tell.clone()),
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                Err(error) => {
                    // Out of descriptors, or the client is gone already: others may still come.
                    tell(ServerEvent::AcceptFailed(error.to_string()));
                    std::thread::sleep(Duration::from_millis(50));
                }
            }
        }
        Ok(())
    }

    fn wait_for_client(&self) -> io::Result<bool> {
        let mut fds = [PollFd::new(self.listener.as_fd(), PollFlags::POLLIN)];
        let limit = PollTimeout::try_from(STOP_CHECK).unwrap_or(PollTimeout::MAX);
        match poll(&mut fds, limit) {
            Ok(ready) => Ok(ready > 0),
            Err(nix::errno::Errno::EINTR) => Ok(false),
            Err(error) => Err(error.into()),
        }
    }

    fn admit(&self, stream: TcpStream, from: SocketAddr, tell: impl Fn(ServerEvent) + Send + 'static) {
        let allow = &self.options.allow;
        if !allow.is_empty() && !allow.iter().any(|net| net.contains(&from.ip())) {
            return turn_away(stream, from, "your address is not among those that --allow names", &tell);
        }
        let Some(place) = Place::take(&self.clients, self.options.max_clients) else {
            return turn_away(
                stream,
                from,
                "as many clients as --max-clients allows are being served; try again later",
                &tell,
            );
        };
        let options = Arc::clone(&self.options);
        let serve = move || {
            tell(ServerEvent::Accepted(from));
            let outcome = serve_client(stream, &options);
            drop(place);
            tell(ServerEvent::Ended(from, outcome.err()));
        };
        // Where the thread can't be started the stream is dropped with the closure, and the client sees the end.
        let _ = std::thread::Builder::new().name("session".to_owned()).spawn(serve);
    }
}

/// One of the places that `--max-clients` allows; given back when dropped.
struct Place(Arc<AtomicUsize>);

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

fn listen_on(address: SocketAddr) -> Result<TcpListener, ListenError> {
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
    open().map_err(|source| ListenError { address, source })
}

/// IPv4 clients of a dual-stack socket look like `::ffff:a.b.c.d`: show and compare them as what they are.
fn canonical(address: SocketAddr) -> SocketAddr {
    SocketAddr::new(address.ip().to_canonical(), address.port())
}

fn turn_away(mut stream: TcpStream, from: SocketAddr, reason: &'static str, tell: &impl Fn(ServerEvent)) {
    let _ = stream.set_nonblocking(false);
    let _ = stream.set_write_timeout(Some(Duration::from_secs(1)));
    let refused = Reply::Refused { reason: reason.to_owned(), kind: Refusal::Permission };
    let _ = write_message(&mut stream, &refused);
    // Its greeting is read, for closing with bytes unread would reset the connection and lose our answer.
    let _ = stream.shutdown(std::net::Shutdown::Write);
    let _ = stream.set_read_timeout(Some(Duration::from_millis(50)));
    let _ = stream.read(&mut [0; MAX_GREETING_BYTES as usize]);
    tell(ServerEvent::Refused(from, reason));
}

fn serve_client(stream: TcpStream, options: &ServerOptions) -> Result<(), String> {
    let prepare = || {
        stream.set_nonblocking(false)?;
        tune_control(&stream)?;
        stream.set_write_timeout(Some(Duration::from_secs(20)))?;
        Ok((stream.try_clone()?, stream.local_addr()?))
    };
    let (reader, local) = prepare().map_err(|e: io::Error| format!("set up the connection: {e}"))?;
    let session = SessionOptions {
        traffic_only: true,
        secret: options.secret.clone(),
        max_duration: options.max_duration,
        reached_at: Some(canonical(local).ip()),
    };
    let outcome = session::serve(reader, &stream, &session);
    // The reader thread holds a copy: without this it would wait on.
    let _ = stream.shutdown(std::net::Shutdown::Both);
    outcome.map_err(|e| e.to_string())
}
