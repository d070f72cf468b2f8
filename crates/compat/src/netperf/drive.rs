//! Runs tests against a netserver: pumps the control connection and moves the client's end of the data.

use std::io::{ErrorKind, Read, Write};
use std::net::{IpAddr, SocketAddr, TcpStream, ToSocketAddrs};
use std::os::fd::AsRawFd;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::Duration;

use linerate_sys::clock;
use linerate_traffic::bare::{Count, Pace, Running};
use nix::errno::Errno;
use nix::sys::socket::{MsgFlags, recv};
use socket2::{Domain, Protocol, Socket, Type};

use super::client::{ClientError, ClientSession, Event};
use super::cpu::CpuWatch;
use super::data_client::{self, DataPlan, LocalEnd};
use super::data_server::{Progress, TestError};
use super::options::{Options, Place, TestName};
use super::reply::{CpuShares, Response, Results};
use super::request::{Layout, Length, Pattern, Request, Transport};
use super::sockets::{self, Wish};
use super::wire::Message;
use crate::observed::Watch;

/// How often the control connection and the stop flag are looked at.
const LOOK: Duration = Duration::from_millis(50);

/// How long the control connection may take to come up.
const CONNECT_LIMIT: Duration = Duration::from_secs(30);

/// Most bytes of a fill file that are read.
const MOST_FILL_BYTES: u64 = 64 << 20;

/// How long the client's end may take after its time is up.
const END_LIMIT: Duration = Duration::from_secs(60);

/// Why a test could not be run.
#[derive(Debug, thiserror::Error)]
pub enum DriveError {
    /// No control connection: netperf's exit code is 255.
    #[error("establish control: {0}")]
    NoControl(String),
    /// The server reports an error or fell silent.
    #[error(transparent)]
    Control(#[from] ClientError),
    /// The control connection failed.
    #[error("control connection: {0}")]
    Broken(#[from] std::io::Error),
    /// The client's own end failed.
    #[error("{0}")]
    Local(String),
}

impl From<TestError> for DriveError {
    fn from(error: TestError) -> Self {
        Self::Local(error.reason)
    }
}

/// A control connection.
#[derive(Debug)]
pub struct Driver {
    stream: TcpStream,
    session: ClientSession,
    server: IpAddr,
    /// Watches this node for the project's own record, where one is kept.
    watch: Option<Watch>,
    /// From the iteration before: the data port and the server's rate.
    carried: Option<(u16, f32)>,
}

/// One run of a test.
#[derive(Debug, Clone)]
pub struct Iteration {
    pub(crate) request: Request,
    pub(crate) response: Response,
    pub(crate) results: Results,
    pub(crate) local: LocalEnd,
    pub(crate) count: Count,
    /// SO_SNDBUF and SO_RCVBUF before the test.
    pub(crate) buffers: (i32, i32),
    /// Local send and receive size, and ring width.
    pub(crate) sizes: (i32, i32, i32),
    pub(crate) cpu: Option<(CpuShares, i32)>,
}

/// What an interim look found.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Interim {
    pub(crate) earlier: Count,
    pub(crate) now: Count,
}

impl Driver {
    /// Connects to the netserver that the options name and sends the passphrase.
    ///
    /// # Errors
    /// The name has no address, or nobody answers.
    pub fn connect(options: &Options) -> Result<Self, DriveError> {
        let host = options.server.host.as_deref().unwrap_or("localhost");
        let family = options.server.family.or(options.family);
        let target = resolve(host, options.ports[0], family).map_err(DriveError::NoControl)?;
        let failed = |e: std::io::Error| DriveError::NoControl(format!("connect to {target}: {e}"));
        let socket =
            Socket::new(Domain::for_address(target), Type::STREAM, Some(Protocol::TCP)).map_err(failed)?;
        if options.source.host.is_some() || options.ports[1] != 0 {
            let local =
                bindable(&options.source, options.ports[1], target.ip()).map_err(DriveError::NoControl)?;
            socket.set_reuse_address(true).and_then(|()| socket.bind(&local.into())).map_err(failed)?;
        }
        socket.connect_timeout(&target.into(), CONNECT_LIMIT).map_err(failed)?;
        socket.set_tcp_nodelay(true).map_err(failed)?;
        let stream = TcpStream::from(socket);
        stream.set_read_timeout(Some(LOOK)).map_err(failed)?;
        let local = stream.local_addr().map_err(failed)?;
        let watch = options.record_file.as_ref().map(|_| Watch::open(local.ip()));
        let session = ClientSession::new();
        let mut driver = Self { stream, session, server: target.ip(), watch, carried: None };
        if let Some(phrase) = &options.passphrase {
            driver.send(&Message::passphrase(phrase))?;
        }
        Ok(driver)
    }

    /// Asks for the server's rate and number of CPUs.
    ///
    /// # Errors
    /// The control connection fails.
    pub fn calibrate(&mut self, stop: &AtomicBool) -> Result<(f32, i32), DriveError> {
        let message = self.session.calibrate(clock::monotonic_ns());
        self.send(&message)?;
        match self.wait(stop)? {
            Event::Calibrated(rate, cpus) => Ok((rate, cpus)),
            Event::Ready(_) | Event::Done(_) => Err(ClientError::Unasked.into()),
        }
    }

    /// The watch, with both ends of the control connection.
    pub(crate) fn watch(&self) -> Option<(&Watch, (SocketAddr, SocketAddr))> {
        let ends = self.stream.local_addr().ok().zip(self.stream.peer_addr().ok());
        self.watch.as_ref().zip(ends)
    }

    /// Runs the test once.
    ///
    /// # Errors
    /// The server refuses, or either connection fails.
    pub(crate) fn iterate(
        &mut self,
        options: &Options,
        keep_latency: bool,
        stop: &AtomicBool,
        interim: &mut dyn FnMut(Interim),
    ) -> Result<Iteration, DriveError> {
        let own = &options.own;
        let data_family = own.family.or(own.target.family).or(options.family);
        let data_ip = match &own.target.host {
            Some(host) => resolve(host, 0, data_family).map_err(DriveError::Local)?.ip(),
            None => self.server,
        };
        let source = data_source(options, data_ip).map_err(DriveError::Local)?;
        let wish = wish(options);
        let socket = data_client::open(&wish, data_ip, source)?;
        let buffers = sockets::buffers(&socket);
        let sizes = data_client::sizes(
            own.transport,
            [own.send_size[0], own.receive_size[0]],
            options.width[0],
            buffers,
        );
        let mut request = request(options, data_ip, source.map(|s| s.ip()), sizes);
        request.client_port = sockets::local_port(&socket).map_err(TestError::from)?;
        if let Some((port, rate)) = self.carried {
            (request.port, request.cpu_rate) = (port, rate);
        }
        let message = self.session.ask(&request, clock::monotonic_ns());
        self.send(&message)?;
        let Event::Ready(response) = self.wait(stop)? else { return Err(ClientError::Unasked.into()) };
        self.carried = Some((response.port, response.cpu_rate));
        let settle = Duration::from_secs(options.settle_seconds.into());
        std::thread::sleep(settle);
        let target = SocketAddr::new(data_ip, response.port);
        let payload = payload(options).map_err(DriveError::Local)?;
        let plan = plan(options, wish, target, source, sizes, (keep_latency, payload));
        let cpu = if options.measure_cpu[0] {
            Some(CpuWatch::open().map_err(|e| DriveError::Local(e.to_string()))?)
        } else {
            None
        };
        let progress = Arc::new(Progress::new(cpu));
        let (local, count, early) = self.move_data(options, plan, &socket, &progress, stop, interim)?;
        // The server may wait for the end of the socket that no connection was made with.
        drop(socket);
        let results = match early {
            Some(results) => results,
            None => {
                self.session.moved(clock::monotonic_ns());
                match self.wait(&AtomicBool::new(false))? {
                    Event::Done(results) => results,
                    Event::Ready(_) | Event::Calibrated(..) => return Err(ClientError::Unasked.into()),
                }
            }
        };
        let mut own_results = Results::default();
        progress.add_cpu(&mut own_results);
        let cpu = own_results.cpu.map(|shares| (shares, own_results.cpus));
        Ok(Iteration { request, response, results, local, count, buffers, sizes, cpu })
    }

    /// Runs the data loop until its time is up or it is done; also takes results that come before.
    fn move_data(
        &mut self,
        options: &Options,
        plan: DataPlan,
        socket: &Arc<Socket>,
        progress: &Arc<Progress>,
        stop: &AtomicBool,
        interim: &mut dyn FnMut(Interim),
    ) -> Result<(LocalEnd, Count, Option<Results>), DriveError> {
        let cpu = usize::try_from(options.bind_cpu[0]).ok();
        let shared = progress.clone();
        if let Some(watch) = &mut self.watch {
            watch.begin();
        }
        let running =
            Running::start("netperf", socket, cpu, move |tally, socket| Ok(plan.run(tally, socket, &shared)))
                .map_err(|e| DriveError::Local(e.to_string()))?;
        let mut earlier = running.tally().count();
        let ends_ns = match options.length {
            Length::Seconds(seconds) => earlier.at_ns + u64::from(seconds) * 1_000_000_000,
            Length::Count(_) | Length::Unlimited => u64::MAX,
        };
        let step_ns = options.interim_seconds.map_or(u64::MAX, |seconds| (seconds * 1e9) as u64);
        let mut early = None;
        loop {
            let now_ns = clock::monotonic_ns();
            if now_ns >= ends_ns || stop.load(Relaxed) {
                break;
            }
            let next_ns = ends_ns.min(earlier.at_ns.saturating_add(step_ns));
            if running.wait(Duration::from_nanos(next_ns.saturating_sub(now_ns)).min(LOOK)) {
                break;
            }
            if let Some(event) = self.look()? {
                let Event::Done(results) = event else { return Err(ClientError::Unasked.into()) };
                early = Some(results);
            }
            let now = running.tally().count();
            if now.at_ns >= earlier.at_ns.saturating_add(step_ns) {
                interim(Interim { earlier, now });
                earlier = now;
            }
        }
        running.stop();
        if !running.wait(END_LIMIT) {
            return Err(DriveError::Local("the data connection did not end within 60 s of its time".into()));
        }
        let finished = running.finish();
        if let Some(watch) = &mut self.watch {
            watch.end();
        }
        if options.interim_seconds.is_some() && finished.count.at_ns > earlier.at_ns {
            interim(Interim { earlier, now: Count { at_ns: finished.ended_ns, ..finished.count } });
        }
        let moved = finished.outcome.map_err(|e| DriveError::Local(e.to_string()))?;
        match moved {
            Ok(local) => Ok((local, finished.count, early)),
            // The server's own word on what went wrong is better than what the data socket saw.
            Err(error) => match self.look() {
                Err(told) => Err(DriveError::Local(format!("{}; {told}", error.reason))),
                Ok(_) => Err(error.into()),
            },
        }
    }

    fn send(&mut self, message: &Message) -> Result<(), DriveError> {
        Ok(self.stream.write_all(message.bytes())?)
    }

    /// Waits for the next event.
    fn wait(&mut self, stop: &AtomicBool) -> Result<Event, DriveError> {
        let mut buffer = [0; 4096];
        loop {
            if let Some(event) = self.session.poll()? {
                return Ok(event);
            }
            if stop.load(Relaxed) {
                return Err(DriveError::Local("interrupted".into()));
            }
            match self.stream.read(&mut buffer) {
                Ok(0) => return Err(self.session.closed().into()),
                Ok(count) => {
                    if let Some(event) = self.session.bytes(&buffer[..count])? {
                        return Ok(event);
                    }
                }
                Err(e) => match e.kind() {
                    ErrorKind::WouldBlock | ErrorKind::TimedOut | ErrorKind::Interrupted => {
                        self.session.timeout(clock::monotonic_ns())?;
                    }
                    ErrorKind::ConnectionReset => return Err(self.session.closed().into()),
                    _ => return Err(e.into()),
                },
            }
        }
    }

    /// Takes what the control connection holds, without waiting.
    fn look(&mut self) -> Result<Option<Event>, DriveError> {
        let mut buffer = [0; 4096];
        match recv(self.stream.as_raw_fd(), &mut buffer, MsgFlags::MSG_DONTWAIT) {
            Ok(0) | Err(Errno::ECONNRESET) => Err(self.session.closed().into()),
            Ok(count) => Ok(self.session.bytes(&buffer[..count])?),
            Err(Errno::EAGAIN | Errno::EINTR) => Ok(None),
            Err(e) => Err(std::io::Error::from(e).into()),
        }
    }
}

/// The first address of `host` that fits the family.
fn resolve(host: &str, port: u16, family: Option<u8>) -> Result<SocketAddr, String> {
    let fits = |address: &SocketAddr| family.is_none_or(|family| (family == 4) == address.is_ipv4());
    let found = (host, port).to_socket_addrs().map_err(|e| format!("resolve {host}: {e}"))?.find(fits);
    found.ok_or_else(|| format!("resolve {host}: no address of the family that was asked for"))
}

fn bindable(place: &Place, port: u16, like: IpAddr) -> Result<SocketAddr, String> {
    let family = Some(if like.is_ipv4() { 4 } else { 6 });
    let any = if like.is_ipv4() { "0.0.0.0" } else { "::" };
    resolve(place.host.as_deref().unwrap_or(any), port, family)
}

/// Own address of the data, where one is asked for: the test's -L, else the global one unless the data goes elsewhere.
fn data_source(options: &Options, target: IpAddr) -> Result<Option<SocketAddr>, String> {
    let own = &options.own;
    let global = Some(&options.source).filter(|_| own.target.host.is_none());
    let place = Some(&own.source).filter(|place| place.host.is_some()).or(global);
    let place = place.filter(|place| place.host.is_some());
    if place.is_none() && own.ports[0] == 0 {
        return Ok(None);
    }
    let anywhere = Place::default();
    bindable(place.unwrap_or(&anywhere), own.ports[0], target).map(Some)
}

/// One-way UDP stays on its own network, unless -R 1 says otherwise: a mistyped address then floods nobody.
fn routing(options: &Options) -> bool {
    let one_way = matches!(options.own.pattern, Pattern::Stream | Pattern::Maerts);
    options.own.routing.unwrap_or(options.own.transport == Transport::Tcp || !one_way)
}

fn wish(options: &Options) -> Wish {
    let own = &options.own;
    Wish {
        transport: own.transport,
        send_buffer: own.local_buffers[0],
        receive_buffer: own.local_buffers[1],
        nodelay: own.nodelay,
        routing: routing(options),
        keepalive: options.keepalive,
        priority: options.priority[0],
        tos: options.tos[0],
        congestion: own.congestion[0].clone(),
    }
}

fn request(options: &Options, data_ip: IpAddr, source: Option<IpAddr>, sizes: (i32, i32, i32)) -> Request {
    let own = &options.own;
    let layout = match options.test {
        TestName::TcpSendfile | TestName::TcpMss => Layout::TcpStream,
        TestName::TcpCc => Layout::TcpCc,
        _ => Layout::Omni,
    };
    let exchanges = matches!(own.pattern, Pattern::Rr | Pattern::Crr);
    let mut request = Request::new(layout, own.pattern, own.transport, options.length);
    if options.test == TestName::TcpMss {
        request.length = Length::Seconds(1);
    }
    request.bind_cpu = options.bind_cpu[1];
    [request.send_buffer, request.receive_buffer] = own.remote_buffers;
    request.send_size = own.send_size[1];
    request.receive_size = own.receive_size[1];
    if layout != Layout::Omni {
        request.receive_size = request.receive_size.max(0);
    }
    if exchanges || layout == Layout::TcpCc {
        [request.request_size, request.response_size] = own.exchange;
    }
    match own.pattern {
        Pattern::Stream => request.send_width = sizes.2,
        Pattern::Maerts => request.receive_width = sizes.2,
        _ => (request.send_width, request.receive_width) = (1, 1),
    }
    request.nodelay = own.nodelay;
    request.measure_cpu = options.measure_cpu[1];
    request.routing = routing(options);
    request.keepalive = options.keepalive;
    request.connect_server = own.connect_server;
    request.port = own.ports[1];
    request.family = if data_ip.is_ipv4() { 4 } else { 6 };
    request.interval = [options.burst[1], options.interval_micros[1]];
    request.client_address = source;
    request.server_address = own.target.host.as_ref().map(|_| data_ip);
    request.priority = options.priority[1];
    request.tos = options.tos[1];
    request.congestion = own.congestion[1].clone();
    request
}

/// What buffers are filled with: a file's first bytes, where one is named.
fn payload(options: &Options) -> Result<Vec<u8>, String> {
    let Some(path) = &options.fill_file else { return Ok(super::data_server::PAYLOAD.to_vec()) };
    let mut bytes = Vec::new();
    let read = std::fs::File::open(path).and_then(|file| file.take(MOST_FILL_BYTES).read_to_end(&mut bytes));
    read.map_err(|e| format!("open fill file {path}: {e}"))?;
    if bytes.is_empty() { Err(format!("fill file {path} is empty")) } else { Ok(bytes) }
}

fn plan(
    options: &Options,
    wish: Wish,
    target: SocketAddr,
    source: Option<SocketAddr>,
    (send_size, receive_size, width): (i32, i32, i32),
    (keep_latency, payload): (bool, Vec<u8>),
) -> DataPlan {
    let own = &options.own;
    let bytes = |size: i32| usize::try_from(size).unwrap_or(1).max(1);
    let (burst, micros) = (options.burst[0], options.interval_micros[0]);
    let pace = (burst > 0 && micros > 0)
        .then(|| Pace::Every { interval: Duration::from_micros(micros.into()), messages: burst });
    DataPlan {
        pattern: own.pattern,
        length: options.length,
        wish,
        target,
        source,
        send_size: bytes(send_size),
        receive_size: bytes(receive_size),
        send_width: bytes(width),
        request_size: bytes(own.exchange[0]),
        response_size: bytes(own.exchange[1]),
        in_flight: options.in_flight(),
        pace,
        sendfile: options.test == TestName::TcpSendfile,
        sends_nothing: options.test == TestName::TcpMss,
        keep_latency,
        payload,
        udp_patience: own.udp_timeout_seconds.map(|seconds| Duration::from_secs(seconds.into())),
        port_range: own.port_range,
    }
}
