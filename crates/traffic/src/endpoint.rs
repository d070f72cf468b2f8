//! One side of one trial, from its sockets to its result.

use std::net::{Shutdown, SocketAddr};
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::mpsc::{self, Receiver, Sender};
use std::sync::{Arc, Mutex};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use linerate_model::reading::Flow;
use linerate_model::trial::Side;
use linerate_model::workload::Workload;
use linerate_sys::tcp_info::TcpInfo;
use linerate_sys::{SysError, clock};
use socket2::Socket;

use crate::control::{Control, Phase};
use crate::error::{Result, TrafficError};
use crate::lane::Lane;
use crate::listen::{Arrival, Door};
use crate::plan::{self, Link};
use crate::preamble::{Claim, Purpose};
use crate::result::{Snapshot, StreamCount, ThreadInfo};
use crate::side::TrialSide;
use crate::udp_door::UdpDoor;
use crate::wake::Wake;
use crate::{connect, socket};

/// How long threads may take to prepare (allocate, pin).
const PREPARE_LIMIT: Duration = Duration::from_secs(30);

/// Listeners whose connections the traffic threads accept themselves give up on a client that reads nothing for so long.
const RESPONSE_LIMIT: Duration = Duration::from_secs(2);

/// One side of one trial.
///
/// Life of the server: [`Endpoint::listen`], [`Endpoint::wait_ready`], [`Endpoint::start`]. Life of the client:
/// [`Endpoint::connect`], [`Endpoint::start`]. Then both: [`Endpoint::enter_phase`], [`Endpoint::snapshot`],
/// [`Endpoint::stop`] (sending sides may be stopped in any order, once both have left the window),
/// [`Endpoint::finish`]. Dropping it ends all threads and closes all sockets.
#[derive(Debug)]
pub struct Endpoint {
    pub(crate) side: TrialSide,
    pub(crate) end: Side,
    pub(crate) control: Arc<Control>,
    pub(crate) links: Vec<Link>,
    pub(crate) lanes: Vec<Lane>,
    pub(crate) listener: Option<Arc<Socket>>,
    pub(crate) strays: Arc<AtomicU64>,
    ports: Vec<u16>,
    door: Option<DoorThread>,
}

#[derive(Debug)]
struct DoorThread {
    wake: Arc<Wake>,
    /// Behind a lock only so that an endpoint may be shared between threads.
    arrivals: Mutex<Receiver<Arrival>>,
    thread: JoinHandle<()>,
}

impl Endpoint {
    /// The peer's side: binds one TCP port for all streams, or one UDP port for each, and lets those in who prove themselves.
    ///
    /// # Errors
    /// Names the option, address or thread that the kernel refused.
    pub fn listen(side: &TrialSide) -> Result<Self> {
        let mut endpoint = Self::new(side, Side::Peer);
        if side.trial.workload.kind().is_udp() {
            endpoint.open_udp()?;
        } else {
            endpoint.open_tcp()?;
        }
        Ok(endpoint)
    }

    /// The dut's side: connects to `peer` (its port is not used) at `ports`, as [`Endpoint::ports`] gave them, and proves
    /// itself. Its threads are then ready to start.
    ///
    /// # Errors
    /// Names the address and the cause: refused, unreachable, or no answer within 10 s.
    pub fn connect(side: &TrialSide, peer: SocketAddr, ports: &[u16]) -> Result<Self> {
        let mut endpoint = Self::new(side, Side::Dut);
        let udp = side.trial.workload.kind().is_udp();
        let needed = if udp { side.trial.streams as usize } else { 1 };
        if ports.len() != needed {
            return Err(TrafficError::Ports { given: ports.len(), needed });
        }
        let server_of = |claim: Claim| {
            let mut server = peer;
            server.set_port(ports[if udp { claim.stream as usize } else { 0 }]);
            server
        };
        for (claim, socket) in connect::connect_all(side, server_of)? {
            endpoint.add_link(Arc::new(socket), claim)?;
        }
        endpoint.spawn_lanes()?;
        Ok(endpoint)
    }

    /// Ports that the client is to connect to; empty on the client's side.
    pub fn ports(&self) -> &[u16] {
        &self.ports
    }

    /// Waits until all connections of the trial have proved themselves and all threads are ready to start.
    ///
    /// # Errors
    /// Says how many connections are missing after `timeout`, or which thread could not be set up.
    pub fn wait_ready(&mut self, timeout: Duration) -> Result<()> {
        if self.end == Side::Dut || !self.lanes.is_empty() {
            return Ok(());
        }
        let needed = plan::claims(&self.side.trial).len();
        let deadline = Instant::now() + timeout;
        while self.links.len() < needed {
            let left = deadline.saturating_duration_since(Instant::now());
            let arrival = self.door.as_ref().and_then(|d| d.arrivals.lock().ok()?.recv_timeout(left).ok());
            let Some(Arrival { claim, socket }) = arrival else {
                let missing = needed - self.links.len();
                return Err(TrafficError::NotReady { missing, needed, seconds: timeout.as_secs() });
            };
            if !self.side.trial.workload.kind().is_udp() {
                socket::apply_accepted(&socket, self.side.local, &self.side.trial.workload)?;
            }
            self.add_link(socket, claim)?;
        }
        self.links.sort_by_key(|l| (l.claim.stream, l.claim.purpose as u8));
        if self.accepts_itself() {
            self.close_door();
            if let Some(listener) = &self.listener {
                listener
                    .set_write_timeout(Some(RESPONSE_LIMIT))
                    .map_err(|e| SysError::new("set SO_SNDTIMEO", "listener", e))?;
            }
        }
        self.spawn_lanes()
    }

    /// Lets all threads go: senders at the instant `at_ns` of CLOCK_MONOTONIC, receivers at once. Start the server before
    /// the client's instant, or its first datagrams wait in a socket buffer.
    ///
    /// The first phase is [`Phase::Warmup`], unless another was entered before.
    pub fn start(&mut self, at_ns: u64) {
        if self.side.trial.workload.kind().is_udp() {
            self.close_door();
        }
        self.control.start(at_ns);
    }

    /// Enters a phase. Traffic goes on; what is counted by phase (latency, UDP datagrams) is told apart from here on.
    pub fn enter_phase(&self, phase: Phase) {
        self.control.enter(phase);
    }

    /// What has been moved since the start. Costs the traffic threads nothing but a cache miss.
    pub fn snapshot(&self) -> Snapshot {
        let at_ns = clock::monotonic_ns();
        let mut streams = vec![StreamCount::default(); self.side.trial.streams as usize];
        for lane in &self.lanes {
            let now = lane.counters.read();
            let stream = &mut streams[lane.stream as usize];
            add(&mut stream.sent, now.sent_bytes, now.sent_messages);
            add(&mut stream.received, now.received_bytes, now.received_messages);
            stream.transactions += now.transactions;
        }
        Snapshot { at_ns, streams }
    }

    /// The traffic threads, stream by stream; empty before they are ready.
    pub fn threads(&self) -> Vec<ThreadInfo> {
        self.lanes.iter().map(Lane::info).collect()
    }

    /// The kernel's state of each TCP connection, by stream; empty for UDP and tcp-crr. Does not disturb the connections.
    ///
    /// # Errors
    /// Names the socket that could not be read.
    pub fn tcp_info(&self) -> Result<Vec<Vec<TcpInfo>>> {
        let mut by_stream = vec![Vec::new(); self.side.trial.streams as usize];
        if self.side.trial.workload.kind().is_udp() {
            return Ok(by_stream);
        }
        for link in self.links.iter().filter(|l| l.claim.purpose != Purpose::Prover) {
            by_stream[link.claim.stream as usize].push(TcpInfo::of(&*link.socket)?);
        }
        Ok(by_stream)
    }

    /// Streams that have failed so far, each with its error. Cheap enough to ask several times a second.
    pub fn failures(&self) -> Vec<(u32, String)> {
        self.control.progress().failures.clone()
    }

    /// Whether this side can tell when all that was asked has moved: the receiver of TCP streams, the sender of
    /// udp-stream, the side that asks in request/response; never for a trial that lasts a given time.
    pub fn has_authority(&self) -> bool {
        plan::authorities(&self.side.trial, self.end) > 0
    }

    /// Waits for the end of a trial that is limited by bytes or transactions; gives the instant of the last byte, in
    /// nanoseconds of CLOCK_MONOTONIC, or none after `timeout` (also where this side has no authority).
    ///
    /// # Errors
    /// The first stream's error, if one has failed.
    pub fn wait_done(&self, timeout: Duration) -> Result<Option<u64>> {
        let needed = plan::authorities(&self.side.trial, self.end);
        let progress =
            self.control.wait_for(timeout, |p| !p.failures.is_empty() || (needed > 0 && p.done >= needed));
        if let Some((_, text)) = progress.failures.first() {
            return Err(TrafficError::Failed(text.clone()));
        }
        Ok((needed > 0 && progress.done >= needed).then_some(progress.done_at_ns))
    }

    /// Stops senders and requesters, also where they are blocked. Receivers and responders go on until the other side has
    /// ended or [`Endpoint::finish`] loses patience.
    pub fn stop(&self) {
        self.control.stop();
        for link in &self.links {
            if plan::is_active(&self.side.trial, self.end, link.claim.purpose)
                && !self.side.trial.workload.kind().is_udp()
            {
                // The other end may have closed it already.
                let _closed = link.socket.shutdown(Shutdown::Write);
            }
        }
    }

    /// Rings the door's thread out and waits for it.
    pub(crate) fn close_door(&mut self) {
        let Some(door) = self.door.take() else { return };
        door.wake.ring();
        // It holds no result; a panic of it was printed by the panic hook.
        let _panicked = door.thread.join();
    }

    /// Whether the traffic threads accept connections themselves.
    pub(crate) fn accepts_itself(&self) -> bool {
        self.end == Side::Peer && matches!(self.side.trial.workload, Workload::TcpCrr(_))
    }

    /// Makes every thread leave, whatever it waits for, and the other end notice at once.
    pub(crate) fn abort(&self) {
        self.control.abort();
        for link in &self.links {
            // A plain close behind a full receive window would leave the other end probing that window for a minute:
            // after this it is a reset (socket(7), SO_LINGER). Nothing is lost that anyone waits for.
            let _is_udp = link.socket.set_linger(Some(Duration::ZERO));
            // Those that are not connected any more have nobody blocked on them.
            let _closed = link.socket.shutdown(Shutdown::Both);
        }
        self.stop_accepting();
    }

    /// Makes threads that accept connections themselves leave.
    pub(crate) fn stop_accepting(&self) {
        self.control.abort();
        if let Some(listener) = &self.listener {
            // It fails only when it was done before.
            let _done = listener.shutdown(Shutdown::Both);
        }
    }

    fn new(side: &TrialSide, end: Side) -> Self {
        Self {
            side: side.clone(),
            end,
            control: Arc::new(Control::new()),
            links: Vec::new(),
            lanes: Vec::new(),
            listener: None,
            strays: Arc::new(AtomicU64::new(0)),
            ports: Vec::new(),
            door: None,
        }
    }

    fn open_tcp(&mut self) -> Result<()> {
        let listener = Arc::new(socket::listen_tcp(self.side.local, &self.side.trial.workload)?);
        self.ports = vec![socket::local_address(&listener)?.port()];
        self.listener = Some(listener.clone());
        let (token, strays) = (self.side.token, self.strays.clone());
        let expected = plan::claims(&self.side.trial);
        self.open_door(move |arrivals, wake| Door { listener, token, expected, arrivals, strays, wake }.run())
    }

    fn open_udp(&mut self) -> Result<()> {
        let mut sockets = Vec::new();
        for _ in 0..self.side.trial.streams {
            let socket = Arc::new(socket::bind_udp(self.side.local, &self.side.trial.workload)?);
            self.ports.push(socket::local_address(&socket)?.port());
            sockets.push(socket);
        }
        let (token, strays) = (self.side.token, self.strays.clone());
        self.open_door(move |arrivals, wake| UdpDoor { sockets, token, arrivals, strays, wake }.run())
    }

    fn open_door(&mut self, run: impl FnOnce(Sender<Arrival>, Arc<Wake>) + Send + 'static) -> Result<()> {
        let (sender, arrivals) = mpsc::channel();
        let wake = Arc::new(Wake::new()?);
        let its_wake = wake.clone();
        let thread = spawn_door(move || run(sender, its_wake))?;
        self.door = Some(DoorThread { wake, arrivals: Mutex::new(arrivals), thread });
        Ok(())
    }

    fn add_link(&mut self, socket: Arc<Socket>, claim: Claim) -> Result<()> {
        let local = socket::local_address(&socket)?;
        let remote = socket::remote_address(&socket)?;
        let granted = socket::granted(&socket, &self.side.trial.workload)?;
        self.links.push(Link { claim, socket, local, remote, granted });
        Ok(())
    }

    fn spawn_lanes(&mut self) -> Result<()> {
        let pin = &self.side.trial.pin;
        let cpus = if self.end == Side::Dut { &pin.dut } else { &pin.peer };
        let plans = plan::lanes(&self.side, self.end, &self.links, self.listener.as_ref())?;
        for (index, plan) in plans.into_iter().enumerate() {
            let cpu = (!cpus.is_empty()).then(|| cpus[index % cpus.len()]);
            self.lanes.push(Lane::spawn(plan, cpu, self.control.clone())?);
        }
        let needed = self.lanes.len();
        let progress =
            self.control.wait_for(PREPARE_LIMIT, |p| p.prepared == needed || !p.failures.is_empty());
        match progress.failures.first() {
            Some((_, text)) => Err(TrafficError::Failed(text.clone())),
            None if progress.prepared < needed => {
                Err(TrafficError::Failed(format!("only {} of {needed} threads got ready", progress.prepared)))
            }
            None => Ok(()),
        }
    }

    pub(crate) fn count_strays(&self) -> u64 {
        self.strays.load(Relaxed) + self.lanes.iter().map(|l| l.counters.read().strays).sum::<u64>()
    }
}

impl Drop for Endpoint {
    fn drop(&mut self) {
        self.close_door();
        if !self.lanes.is_empty() {
            self.abort();
        }
        for lane in self.lanes.drain(..) {
            // Whoever drops an endpoint does not want its result.
            let _result = lane.thread.join();
        }
    }
}

fn spawn_door(run: impl FnOnce() + Send + 'static) -> Result<JoinHandle<()>> {
    let thread = thread::Builder::new().name("lr-door".to_owned()).spawn(run);
    Ok(thread.map_err(|e| SysError::new("start thread", "lr-door", e))?)
}

fn add(flow: &mut Flow, bytes: u64, messages: u64) {
    flow.bytes += bytes;
    flow.messages += messages;
}
