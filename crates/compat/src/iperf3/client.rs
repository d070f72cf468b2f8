//! Runs one test against a server.

use std::net::{SocketAddr, ToSocketAddrs};
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::Duration;

use linerate_sys::sockopt::KeepAlive;
use linerate_sys::{SysError, clock, sockopt};
use nix::sys::resource::UsageWho;

use super::client_control::{ClientAction, ClientControl};
use super::error::TestError;
use super::lane::{self, CpuTime};
use super::outcome;
use super::params::{Params, TCP_LEN, Transport, UDP_LEN_MAX};
use super::pump::{Came, Pump};
use super::report::{Connected, Event, Role};
use super::results::{CpuPercent, Results};
use super::sockets::{self, Family, Source};
use super::traffic::Traffic;
use super::udp;
use super::wire::{Cookie, cookie_text, new_cookie};

const SECOND_NS: u64 = 1_000_000_000;

/// How long a server may take to answer a UDP hello.
const HELLO_LIMIT: Duration = Duration::from_secs(30);

/// How long the control connection may take to tell why a stream failed, nanoseconds.
const REASON_NS: u64 = 200_000_000;

/// Time that the last bytes of a set number get to reach the server's program, nanoseconds. iperf3's own server takes them no
/// more once it is told of the end.
const LAST_BYTES_NS: u64 = 3_000_000;

/// The same for a file, which is worth nothing without its end, nanoseconds.
const LAST_FILE_BYTES_NS: u64 = 50_000_000;

/// What a client wants.
#[derive(Debug, Clone, Default)]
pub struct ClientOptions {
    /// Name or address of the server.
    pub host: String,
    /// Its port.
    pub port: u16,
    /// IP version.
    pub family: Family,
    /// Own address and device.
    pub source: Source,
    /// Port of the first stream; the others follow.
    pub first_port: Option<u16>,
    /// Limit for the control connection; none is the system's.
    pub connect_limit: Option<Duration>,
    /// Seconds between reports; 0 is none.
    pub interval_s: f64,
    /// Block size; none is the default of the transport.
    pub len: Option<u32>,
    /// The test; its `len` is filled in.
    pub params: Params,
    /// How long a receiver waits for data.
    pub receive_limit: Duration,
    /// How long sent bytes may stay unacknowledged.
    pub send_limit: Option<Duration>,
    /// Keepalive of the control connection.
    pub keepalive: Option<KeepAlive>,
    /// Sent from, or received into, instead of memory.
    pub file: Option<PathBuf>,
}

/// Runs the test and tells of it. Ends early, after telling what was measured, when `stop` is set.
///
/// # Errors
/// See [`TestError`]. What was measured until then has been told.
pub fn run(options: &ClientOptions, stop: &AtomicBool, tell: &mut dyn FnMut(Event)) -> Result<(), TestError> {
    let cpu = CpuTime::of(UsageWho::RUSAGE_SELF);
    let start_ns = clock::monotonic_ns();
    let (pump, server) = connect(options)?;
    let mut params = options.params.clone();
    let control_mss = sockopt::mss(pump.socket()).unwrap_or(0);
    params.len = options.len.unwrap_or_else(|| default_len(params.transport, control_mss));
    let cookie =
        new_cookie().map_err(|e| SysError::new("draw a cookie", "getrandom", std::io::Error::other(e)))?;
    tell(Event::Connected(Box::new(Connected {
        role: Role::Client,
        host: options.host.clone(),
        port: options.port,
        time_ms: clock::realtime_ns() / 1_000_000,
        cookie: cookie_text(&cookie),
        params: params.clone(),
        control_mss,
    })));
    let (control, first) = ClientControl::new(&cookie, &params);
    let file = match &options.file {
        Some(path) => lane::open_file(path, params.reverse)?,
        None => None,
    };
    let traffic = Traffic::new(&params, options.interval_s, false, file)?;
    let mut test = Test {
        options,
        params,
        pump,
        server,
        cookie,
        control,
        traffic,
        cpu_before: cpu,
        start_ns,
        end_due_ns: u64::MAX,
        far: None,
        own_cpu: CpuPercent::default(),
        done: false,
    };
    test.pump.send(&first)?;
    test.run(stop, tell)
}

/// The block size where none is asked for: what fills a segment of the control connection, for UDP.
fn default_len(transport: Transport, control_mss: u32) -> u32 {
    match transport {
        Transport::Tcp => TCP_LEN,
        Transport::Udp if control_mss == 0 => super::params::UDP_LEN,
        Transport::Udp => control_mss.clamp(16, UDP_LEN_MAX),
    }
}

fn connect(options: &ClientOptions) -> Result<(Pump, SocketAddr), TestError> {
    let failed = |source| TestError::Connect { host: options.host.clone(), port: options.port, source };
    let host = options.host.as_str();
    let addresses = (host, options.port).to_socket_addrs().map_err(failed)?;
    let mut last = std::io::Error::new(std::io::ErrorKind::NotFound, "no address of the wanted IP version");
    let usable = |a: &SocketAddr| {
        options.family.has(a.ip()) && options.source.bind.is_none_or(|b| b.is_ipv4() == a.is_ipv4())
    };
    for address in addresses.filter(usable) {
        match sockets::connect_control(address, &options.source, options.connect_limit, options.params.mptcp)
        {
            Ok(socket) => {
                if let Some(keepalive) = options.keepalive {
                    sockopt::set_keepalive(&socket, keepalive)?;
                }
                return Ok((Pump::new(socket)?, address));
            }
            Err(TestError::Sys(error)) if error.operation == "connect" => last = error.source,
            Err(other) => return Err(other),
        }
    }
    Err(failed(last))
}

struct Test<'a> {
    options: &'a ClientOptions,
    params: Params,
    pump: Pump,
    server: SocketAddr,
    cookie: Cookie,
    control: ClientControl,
    traffic: Traffic,
    cpu_before: CpuTime,
    start_ns: u64,
    /// When the test is over.
    end_due_ns: u64,
    far: Option<Results>,
    own_cpu: CpuPercent,
    done: bool,
}

impl Test<'_> {
    fn run(&mut self, stop: &AtomicBool, tell: &mut dyn FnMut(Event)) -> Result<(), TestError> {
        loop {
            let outcome = self.turn(stop, tell);
            if self.done {
                return outcome;
            }
            if let Err(error) = outcome {
                let error = self.reason(error);
                self.abandon(tell);
                return Err(error);
            }
        }
    }

    /// Waits for what comes next and handles it.
    fn turn(&mut self, stop: &AtomicBool, tell: &mut dyn FnMut(Event)) -> Result<(), TestError> {
        let now_ns = clock::monotonic_ns();
        let mut until_ns = self.traffic.next_ns().min(self.end_due_ns);
        if self.traffic.sending_is_done() {
            until_ns = until_ns.min(now_ns + 200_000);
        }
        let shared = self.traffic.shared.clone();
        match self.pump.wait(Some(&shared.wake), until_ns)? {
            Came::Bytes(bytes) => {
                for action in self.control.received(&bytes)? {
                    self.act(action, tell)?;
                }
            }
            Came::End => self.control.closed()?,
            Came::Nothing => {}
        }
        shared.quiet();
        if self.done {
            return Ok(());
        }
        if stop.load(Relaxed) {
            let bytes = self.control.terminate();
            self.pump.send(&bytes)?;
            return Err(TestError::Interrupted);
        }
        if let Some(error) = self.traffic.take_failure() {
            return Err(error);
        }
        self.look(tell)
    }

    /// What is due by the clock or by the number of bytes.
    fn look(&mut self, tell: &mut dyn FnMut(Event)) -> Result<(), TestError> {
        let now_ns = clock::monotonic_ns();
        let timed_out = now_ns >= self.end_due_ns;
        // At the end, the interval that is due is the last one.
        if !timed_out && let Some(interval) = self.traffic.tick(now_ns) {
            tell(Event::Interval(interval));
        }
        if self.traffic.silence(now_ns) > self.options.receive_limit {
            let seconds = self.options.receive_limit.as_secs();
            return Err(TestError::Timeout { what: "data", seconds });
        }
        if !self.traffic.finished() && (timed_out || self.traffic.target_reached(now_ns)) {
            self.end(timed_out, tell)?;
        }
        Ok(())
    }

    fn end(&mut self, timed_out: bool, tell: &mut dyn FnMut(Event)) -> Result<(), TestError> {
        if let Some(interval) = self.traffic.finish() {
            tell(Event::Interval(interval));
        }
        self.note_cpu();
        self.end_due_ns = u64::MAX;
        if !timed_out {
            let patience_ns = if self.options.file.is_some() { LAST_FILE_BYTES_NS } else { LAST_BYTES_NS };
            clock::sleep_until(clock::monotonic_ns() + patience_ns);
        }
        match self.control.end() {
            Some(bytes) => self.pump.send(&bytes),
            None => Ok(()),
        }
    }

    fn act(&mut self, action: ClientAction, tell: &mut dyn FnMut(Event)) -> Result<(), TestError> {
        match action {
            ClientAction::Send(bytes) => self.pump.send(&bytes)?,
            ClientAction::OpenStreams => self.open_streams()?,
            ClientAction::Start => {
                tell(Event::Started(Box::new(self.traffic.started())));
                let now_ns = clock::monotonic_ns();
                self.traffic.start(now_ns);
                if self.params.time_s > 0 {
                    let seconds = u64::from(self.params.time_s) + u64::from(self.params.omit_s);
                    self.end_due_ns = now_ns + seconds * SECOND_NS;
                }
            }
            ClientAction::Run => self.traffic.run()?,
            ClientAction::GiveResults => {
                self.traffic.read_tail(None);
                let now_ns = clock::monotonic_ns();
                if let Some(progress) = self.traffic.progress() {
                    let results = outcome::results(progress, &self.params, self.own_cpu, now_ns, None);
                    let bytes = self.control.results(&results);
                    self.pump.send(&bytes)?;
                }
            }
            ClientAction::ServerResults(results) => self.far = Some(results),
            ClientAction::Finished => {
                self.done = true;
                self.traffic.read_tail(self.far.as_ref());
                self.traffic.leave();
                self.tell_end(tell);
                return self.traffic.take_failure().map_or(Ok(()), Err);
            }
        }
        Ok(())
    }

    fn open_streams(&mut self) -> Result<(), TestError> {
        for index in 0..self.params.streams() {
            let port = self.options.first_port.map_or(0, |p| p.saturating_add(index as u16));
            let socket = sockets::connect_stream(self.server, &self.options.source, port, &self.params)?;
            match self.params.transport {
                Transport::Tcp => {
                    if let Some(limit) = self.options.send_limit {
                        sockopt::set_user_timeout(&socket, limit)?;
                    }
                    std::io::Write::write_all(&mut &socket, &self.cookie)
                        .map_err(|e| SysError::new("send cookie", self.server.to_string(), e))?;
                }
                Transport::Udp => self.greet(&socket)?,
            }
            self.traffic.add(socket)?;
        }
        Ok(())
    }

    /// Asks for a UDP stream. Data of a server that sends already may come before the answer.
    fn greet(&self, socket: &socket2::Socket) -> Result<(), TestError> {
        use std::io::Read as _;
        let describe = |operation| move |e| SysError::new(operation, "UDP stream", e);
        socket.set_read_timeout(Some(HELLO_LIMIT)).map_err(describe("set SO_RCVTIMEO"))?;
        socket.send(&udp::HELLO).map_err(describe("send hello"))?;
        let mut answer = vec![0; 65536];
        let start_ns = clock::monotonic_ns();
        while clock::monotonic_ns() - start_ns < HELLO_LIMIT.as_nanos() as u64 {
            match (&*socket).read(&mut answer) {
                Ok(count) if udp::is_answer(&answer[..count]) => return Ok(()),
                Ok(_) => {}
                Err(e) if e.kind() == std::io::ErrorKind::WouldBlock => break,
                Err(e) => return Err(describe("receive answer to hello")(e).into()),
            }
        }
        Err(TestError::Timeout { what: "answer to the UDP hello", seconds: HELLO_LIMIT.as_secs() })
    }

    fn note_cpu(&mut self) {
        let used = CpuTime::of(UsageWho::RUSAGE_SELF).since(self.cpu_before);
        self.own_cpu = outcome::cpu_percent(used, clock::monotonic_ns() - self.start_ns);
    }

    fn tell_end(&self, tell: &mut dyn FnMut(Event)) {
        let Some(progress) = self.traffic.progress() else { return };
        let now_ns = clock::monotonic_ns();
        let mut end = outcome::end(progress, &self.params, self.own_cpu, now_ns, self.far.as_ref(), false);
        end.file = self.options.file.as_deref().map(outcome::file_end);
        tell(Event::Ended(Box::new(end)));
    }

    /// The control connection often tells why a stream failed, a moment later.
    fn reason(&mut self, error: TestError) -> TestError {
        if !matches!(error, TestError::Stream { .. } | TestError::StreamClosed { .. } | TestError::Sys(_)) {
            return error;
        }
        let until_ns = clock::monotonic_ns() + REASON_NS;
        while clock::monotonic_ns() < until_ns {
            match self.pump.wait(None, until_ns) {
                Ok(Came::Bytes(bytes)) => {
                    if let Err(told) = self.control.received(&bytes) {
                        return told;
                    }
                }
                Ok(Came::Nothing) => {}
                Ok(Came::End) => {
                    return self
                        .control
                        .closed()
                        .err()
                        .filter(|e| !matches!(e, TestError::ControlClosed))
                        .unwrap_or(error);
                }
                Err(_) => return error,
            }
        }
        // The server is there and knows nothing of it.
        let _told = self.pump.send(&self.control.terminate());
        error
    }

    /// Tells what was measured before a failure.
    fn abandon(&mut self, tell: &mut dyn FnMut(Event)) {
        if self.traffic.progress().is_none() {
            return;
        }
        if let Some(interval) = self.traffic.cut() {
            tell(Event::Interval(interval));
        }
        self.note_cpu();
        self.traffic.leave();
        self.tell_end(tell);
    }
}
