//! Serves one client: pumps its control connection and moves the data of its tests.

use std::io::{ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::os::fd::AsRawFd;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::Duration;

use linerate_sys::{affinity, clock};
use linerate_traffic::bare::{MoveError, Running};
use nix::errno::Errno;
use nix::sys::socket::{MsgFlags, recv};

use super::cpu::CpuWatch;
use super::data_server::{DataServer, Ends, Progress, TestError};
use super::reply::Results;
use super::request::{Layout, Length, Request};
use super::server::{Action, Ended, ServerSession};
use super::watch::{Verdict, Watch};

/// How often a session looks at its stop flag and its control connection.
const LOOK: Duration = Duration::from_millis(20);

/// How long a client may leave an answer unread.
const SEND_LIMIT: Duration = Duration::from_secs(10);

/// What a server allows its clients.
#[derive(Debug, Clone, Default)]
pub struct Limits {
    /// Longest test.
    pub max_duration: Option<Duration>,
    /// Most bits a second that the server sends in a stream.
    pub max_bits_per_second: Option<u64>,
    /// Whether a client may have the server's thread bound to a CPU.
    pub allow_pinning: bool,
    /// Passphrase that every client must send first.
    pub passphrase: Option<String>,
}

/// What happens to one client, for a log.
#[derive(Debug, Clone)]
pub enum ServeEvent {
    /// A test begins.
    Test {
        /// What was asked for.
        request: Box<Request>,
        /// The data port.
        port: u16,
    },
    /// A test is over.
    Done(Box<Results>),
    /// The client asked to bind the server to this CPU; it was not done.
    PinningIgnored(i32),
    /// A test was refused or failed; why.
    Failed(String),
}

/// Serves one client until it is gone, a test fails, or `stop` is set.
///
/// # Errors
/// The control connection fails; a client that closes is none.
pub fn serve_connection(
    stream: &mut TcpStream,
    limits: &Limits,
    stop: &AtomicBool,
    tell: &mut dyn FnMut(ServeEvent),
) -> std::io::Result<Ended> {
    stream.set_read_timeout(Some(LOOK))?;
    stream.set_write_timeout(Some(SEND_LIMIT))?;
    stream.set_nodelay(true)?;
    socket2::SockRef::from(&*stream).set_keepalive(true)?;
    let ends = Ends {
        local: stream.local_addr()?.ip().to_canonical(),
        peer: stream.peer_addr()?.ip().to_canonical(),
    };
    let mut session = ServerSession::new(limits.passphrase.clone(), clock::monotonic_ns());
    session.set_cpus(affinity::online_cpus().map_or(0, |cpus| cpus.len()));
    let mut server = Serving { limits, ends, open: None, running: None, tell };
    let mut buffer = [0; 4096];
    loop {
        while let Some(action) = session.poll() {
            match action {
                Action::Send(message) => stream.write_all(message.bytes())?,
                Action::Open(request) => server.open(*request, &mut session),
                Action::Run => server.run(&mut session),
                Action::Close(ended) => return Ok(ended),
            }
        }
        if stop.load(Relaxed) {
            return Ok(Ended::ByClient);
        }
        let got = if let Some(test) = &mut server.running {
            match test.look() {
                None => recv(stream.as_raw_fd(), &mut buffer, MsgFlags::MSG_DONTWAIT).map_err(Into::into),
                Some(outcome) => {
                    server.finish(outcome, &mut session);
                    continue;
                }
            }
        } else {
            stream.read(&mut buffer)
        };
        let now_ns = clock::monotonic_ns();
        match got {
            Ok(0) => session.closed(),
            Ok(count) => session.bytes(&buffer[..count], now_ns),
            Err(e) => match e.kind() {
                ErrorKind::WouldBlock | ErrorKind::TimedOut | ErrorKind::Interrupted => {
                    session.timeout(now_ns);
                }
                ErrorKind::ConnectionReset => session.closed(),
                _ => return Err(e),
            },
        }
    }
}

struct Serving<'a> {
    limits: &'a Limits,
    ends: Ends,
    open: Option<(DataServer, Request)>,
    running: Option<Test>,
    tell: &'a mut dyn FnMut(ServeEvent),
}

/// A test whose data moves.
struct Test {
    running: Option<Running<Result<Results, TestError>>>,
    progress: Arc<Progress>,
    watch: Watch,
    never_began: bool,
}

impl Serving<'_> {
    fn open(&mut self, request: Request, session: &mut ServerSession) {
        match self.try_open(&request) {
            Ok(data) => {
                let port = data.response.port;
                (self.tell)(ServeEvent::Test { request: Box::new(request.clone()), port });
                session.opened(Ok(&data.response));
                self.open = Some((data, request));
            }
            Err(error) => {
                (self.tell)(ServeEvent::Failed(error.reason.clone()));
                session.opened(Err(error.errno));
            }
        }
    }

    fn try_open(&mut self, request: &Request) -> Result<DataServer, TestError> {
        let longest = self.limits.max_duration.unwrap_or(Duration::MAX).as_secs();
        // A classic stream may have bytes where the others have seconds, so only the watch can limit it.
        let says_seconds = !matches!(request.layout, Layout::TcpStream | Layout::TcpMaerts);
        if let Length::Seconds(seconds) = request.length
            && says_seconds
            && u64::from(seconds) > longest
        {
            let reason = format!("a test of {seconds} s: at most {longest} s are served");
            return Err(TestError::new(Errno::EPERM, reason));
        }
        DataServer::open(request.clone(), self.ends, self.limits.max_bits_per_second)
    }

    fn run(&mut self, session: &mut ServerSession) {
        let Some((data, request)) = self.open.take() else { return };
        match self.try_run(data, &request) {
            Ok(test) => self.running = Some(test),
            Err(error) => {
                (self.tell)(ServeEvent::Failed(error.reason.clone()));
                session.finished(Err(error.errno));
            }
        }
    }

    fn try_run(&mut self, data: DataServer, request: &Request) -> Result<Test, TestError> {
        let cpu = if request.measure_cpu {
            Some(CpuWatch::open().map_err(|e| TestError::new(Errno::EIO, e.to_string()))?)
        } else {
            None
        };
        let progress = Arc::new(Progress::new(cpu));
        let pin = usize::try_from(request.bind_cpu).ok().filter(|_| self.limits.allow_pinning);
        if request.bind_cpu >= 0 && pin.is_none() {
            (self.tell)(ServeEvent::PinningIgnored(request.bind_cpu));
        }
        let longest_ns = self.limits.max_duration.map(|d| u64::try_from(d.as_nanos()).unwrap_or(u64::MAX));
        let watch = Watch::new(request, longest_ns, clock::monotonic_ns());
        let (socket, shared) = (data.socket.clone(), progress.clone());
        // The loop's own error is a value here, so that it keeps its number.
        let running = Running::start("netserver", &socket, pin, move |tally, _| {
            Ok::<_, MoveError>(data.run(tally, &shared))
        })?;
        Ok(Test { running: Some(running), progress, watch, never_began: false })
    }

    fn finish(&mut self, outcome: Result<Results, TestError>, session: &mut ServerSession) {
        self.running = None;
        match outcome {
            Ok(results) => {
                session.finished(Ok(&results));
                (self.tell)(ServeEvent::Done(Box::new(results)));
            }
            Err(error) => {
                session.finished(Err(error.errno));
                (self.tell)(ServeEvent::Failed(error.reason));
            }
        }
    }
}

impl Test {
    /// Waits for [`LOOK`] at most; the outcome once the test is over.
    fn look(&mut self) -> Option<Result<Results, TestError>> {
        let running = self.running.as_ref()?;
        let count = running.tally().count();
        let begun_ns = self.progress.begun_ns();
        let moved = count.sent.bytes + count.received.bytes + count.transactions;
        let verdict = self.watch.look(count.at_ns, begun_ns, moved);
        let length_ends_ns = begun_ns.and_then(|begun| self.watch.length_ends_ns(begun));
        if length_ends_ns.is_some_and(|ends| count.at_ns >= ends) {
            // CPU time counts up to the test's length, not to the end of the wait for what comes late.
            self.progress.end();
        }
        let look_again_ns = match verdict {
            Verdict::GoOn(until) => {
                until.min(length_ends_ns.filter(|&e| e > count.at_ns).unwrap_or(u64::MAX))
            }
            Verdict::Stop | Verdict::NeverBegan => {
                self.never_began = verdict == Verdict::NeverBegan;
                running.stop();
                u64::MAX
            }
        };
        let nap = Duration::from_nanos(look_again_ns.saturating_sub(count.at_ns)).min(LOOK);
        if !running.wait(nap) {
            return None;
        }
        let finished = self.running.take()?.finish();
        let late_ns = finished.ended_ns.saturating_sub(self.watch.last_activity_ns());
        let outcome = finished.outcome.unwrap_or_else(|e| Err(e.into()));
        Some(outcome.and_then(|mut results| {
            if self.never_began {
                return Err(TestError::new(Errno::ETIMEDOUT, "the client never connected its data socket"));
            }
            if matches!(verdict, Verdict::Stop) && results.sent_bytes + results.received_bytes > 0 {
                let quiet = late_ns as f64 / 1e9;
                results.elapsed = (f64::from(results.elapsed) - quiet).max(0.0) as f32;
            }
            self.progress.add_cpu(&mut results);
            Ok(results)
        }))
    }
}

/// Accepts clients on a listener of its own, a thread each, until `stop` is set; at most `clients` at a time.
/// `tell` may be called from several threads.
///
/// # Errors
/// The listener fails.
pub fn accept_clients(
    listener: &std::net::TcpListener,
    limits: &Limits,
    clients: usize,
    stop: &Arc<AtomicBool>,
    tell: &Arc<dyn Fn(SocketAddr, AcceptEvent) + Send + Sync>,
) -> std::io::Result<()> {
    listener.set_nonblocking(true)?;
    let mut threads: Vec<std::thread::JoinHandle<()>> = Vec::new();
    while !stop.load(Relaxed) {
        threads.retain(|thread| !thread.is_finished());
        let (stream, peer) = match listener.accept() {
            Ok(accepted) => accepted,
            Err(e) => match e.kind() {
                ErrorKind::WouldBlock => {
                    wait_readable(listener);
                    continue;
                }
                ErrorKind::ConnectionAborted | ErrorKind::Interrupted => continue,
                _ => return Err(e),
            },
        };
        if threads.len() >= clients {
            tell(peer, AcceptEvent::TooMany);
            continue;
        }
        let (limits, stop, told) = (limits.clone(), stop.clone(), tell.clone());
        let spawned = std::thread::Builder::new().name("lr-np-session".into()).spawn(move || {
            told(peer, AcceptEvent::Accepted);
            let ended =
                serve_stream(stream, &limits, &stop, &mut |event| told(peer, AcceptEvent::Serve(event)));
            told(peer, AcceptEvent::Ended(ended.map_or_else(|e| e.to_string(), |e| e.to_string())));
        });
        match spawned {
            Ok(thread) => threads.push(thread),
            Err(_) => tell(peer, AcceptEvent::TooMany),
        }
    }
    for thread in threads {
        // A panic of it was printed by the panic hook.
        let _panicked = thread.join();
    }
    Ok(())
}

fn serve_stream(
    mut stream: TcpStream,
    limits: &Limits,
    stop: &AtomicBool,
    tell: &mut dyn FnMut(ServeEvent),
) -> std::io::Result<Ended> {
    stream.set_nonblocking(false)?;
    serve_connection(&mut stream, limits, stop, tell)
}

fn wait_readable(listener: &std::net::TcpListener) {
    use linerate_sys::poll::{PollSet, Readiness};
    use std::os::fd::AsFd;
    let mut set = PollSet::new();
    set.add(listener.as_fd(), Readiness::READ);
    // A failed wait only means that accept is tried again.
    let _interrupted = set.wait(Some(100_000_000));
}

/// What an accept loop tells.
#[derive(Debug, Clone)]
pub enum AcceptEvent {
    /// A client came.
    Accepted,
    /// A client came and was turned away.
    TooMany,
    /// Something happened to it.
    Serve(ServeEvent),
    /// It is gone; why.
    Ended(String),
}
