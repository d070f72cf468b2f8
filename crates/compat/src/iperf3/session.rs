//! One client's test on a server.

use std::collections::VecDeque;
use std::net::SocketAddr;
use std::net::UdpSocket;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::mpsc::Receiver;
use std::time::Duration;

use linerate_sys::{affinity, clock, sockopt};
use nix::sys::resource::UsageWho;
use socket2::Socket;

use super::door::{Arrival, BesideLease, PlainLease, Seat};
use super::error::TestError;
use super::json_report::JsonReport;
use super::lane::{self, CpuTime, SharedFile};
use super::outcome;
use super::params::{Params, Refusal, Transport};
use super::pump::{Came, Pump};
use super::report::{Connected, Event, Role};
use super::results::{Results, ServerOutput};
use super::server::{ServerShared, Tell};
use super::server_control::{ServerAction, ServerControl};
use super::sockets;
use super::text_report::{TextOptions, TextReport};
use super::traffic::Traffic;
use super::udp;
use super::wire::{ErrorCode, State, cookie_text};

/// How long a test waits for another that blocks the way to its streams.
const LEASE_LIMIT: Duration = Duration::from_secs(30);

/// How long a client may take to open its next stream, nanoseconds.
const NEXT_STREAM_NS: u64 = 10_000_000_000;

/// Longest wait for the next stream, nanoseconds.
const STREAM_POLL_NS: u64 = 2_000_000;

type Emit<'a> = &'a mut dyn FnMut(Event);

/// Serves one client from behind its cookie to the end.
pub(super) fn run(
    shared: &Arc<ServerShared>,
    socket: Socket,
    address: SocketAddr,
    seat: Seat,
    tell: &Tell,
    emit: Emit<'_>,
) -> Result<(), TestError> {
    let (control, greeting) = ServerControl::new(clock::monotonic_ns());
    sockopt::set_nodelay(&socket, true)?;
    let (local, _) = sockets::ends(&socket)?;
    let pump = Pump::new(socket)?;
    let mut session = Session {
        shared,
        tell,
        pump,
        control,
        seat,
        local,
        address,
        params: Params::default(),
        traffic: None,
        output: None,
        rate: RateWatch::default(),
        cpu_before: CpuTime::default(),
        start_ns: 0,
        done: false,
    };
    session.pump.send(&greeting)?;
    let outcome = session.serve(emit);
    if let Err(error) = &outcome {
        session.abandon(error, emit);
    }
    outcome
}

struct Session<'a> {
    shared: &'a Arc<ServerShared>,
    tell: &'a Tell,
    pump: Pump,
    control: ServerControl,
    seat: Seat,
    local: SocketAddr,
    address: SocketAddr,
    params: Params,
    traffic: Option<Traffic>,
    output: Option<Output>,
    rate: RateWatch,
    cpu_before: CpuTime,
    start_ns: u64,
    done: bool,
}

/// A report that goes to the client.
enum Output {
    Text(Box<TextReport>, String),
    Json(Box<JsonReport>),
}

impl Output {
    fn event(&mut self, event: &Event) {
        match self {
            Self::Text(report, text) => text.push_str(&report.event(event)),
            Self::Json(report) => report.event(event),
        }
    }

    fn finish(self) -> Option<ServerOutput> {
        match self {
            Self::Text(_, text) => Some(ServerOutput::Text(text)),
            Self::Json(report) => serde_json::from_str(&report.finish()).ok().map(ServerOutput::Json),
        }
    }
}

impl Session<'_> {
    fn serve(&mut self, emit: Emit<'_>) -> Result<(), TestError> {
        while !self.done {
            let deadline_ns = self.control.deadline_ns().unwrap_or(u64::MAX);
            let next_ns = self.traffic.as_ref().map_or(u64::MAX, Traffic::next_ns);
            let actions = self.wait(deadline_ns.min(next_ns))?;
            for action in actions {
                self.act(action, emit)?;
            }
            self.look(emit)?;
        }
        Ok(())
    }

    /// Waits for the client, and checks what ends a session from outside.
    fn wait(&mut self, until_ns: u64) -> Result<Vec<ServerAction>, TestError> {
        let shared = self.traffic.as_ref().map(|t| t.shared.clone());
        let came = match &shared {
            Some(shared) => self.pump.wait(Some(&shared.wake), until_ns)?,
            None => self.pump.wait(None, until_ns)?,
        };
        if let Some(shared) = shared {
            shared.quiet();
        }
        if self.shared.stopping.load(Relaxed) {
            return Err(TestError::Interrupted);
        }
        let now_ns = clock::monotonic_ns();
        match came {
            Came::Bytes(bytes) => self.control.received(&bytes, now_ns),
            Came::End => {
                self.control.closed()?;
                self.done = true;
                Ok(vec![])
            }
            Came::Nothing => self.control.late(now_ns).map_or(Ok(vec![]), Err),
        }
    }

    /// What is due by the clock.
    fn look(&mut self, emit: Emit<'_>) -> Result<(), TestError> {
        let Some(traffic) = &mut self.traffic else { return Ok(()) };
        if traffic.finished() {
            return Ok(());
        }
        if let Some(error) = traffic.take_failure() {
            return Err(error);
        }
        let now_ns = clock::monotonic_ns();
        if let Some(interval) = traffic.tick(now_ns) {
            self.emit(Event::Interval(interval), emit);
        }
        let Some(traffic) = &mut self.traffic else { return Ok(()) };
        let limits = &self.shared.options.limits;
        if traffic.silence(now_ns) > limits.receive {
            let reason = format!("no data received for {} ms", limits.receive.as_millis());
            return Err(TestError::Refused { code: ErrorCode::NO_DATA, reason });
        }
        if let Some((limit, average_s)) = limits.rate
            && self
                .rate
                .note(traffic.bytes_so_far(), now_ns, average_s)
                .is_some_and(|rate| rate > limit as f64)
        {
            let reason = format!("total bit rate is above the limit of {limit} bit/s");
            return Err(TestError::Refused { code: ErrorCode::RATE_LIMIT, reason });
        }
        Ok(())
    }

    fn act(&mut self, action: ServerAction, emit: Emit<'_>) -> Result<(), TestError> {
        match action {
            ServerAction::Asked(params) => self.begin(*params, emit),
            ServerAction::Refuse(refusal) => Err(refused(refusal)),
            ServerAction::End => self.end(emit),
            ServerAction::ClientResults(results) => self.exchange(&results, emit),
            ServerAction::Finished => {
                self.done = true;
                Ok(())
            }
        }
    }

    fn begin(&mut self, params: Params, emit: Emit<'_>) -> Result<(), TestError> {
        self.params = params;
        let connected = Connected {
            role: Role::Server,
            host: self.address.ip().to_string(),
            port: self.address.port(),
            time_ms: clock::realtime_ns() / 1_000_000,
            cookie: cookie_text(self.seat.cookie()),
            params: self.params.clone(),
            control_mss: sockopt::mss(self.pump.socket()).unwrap_or(0),
        };
        self.make_output();
        self.emit(Event::Connected(Box::new(connected)), emit);
        self.authenticate()?;
        self.shared.options.limits.check(&self.params).map_err(refused)?;
        self.pin()?;
        let mut traffic =
            Traffic::new(&self.params, self.shared.options.interval_s, true, self.open_file()?)?;
        match self.params.transport {
            Transport::Tcp => self.accept_tcp(&mut traffic)?,
            Transport::Udp => self.accept_udp(&mut traffic)?,
        }
        self.emit(Event::Started(Box::new(traffic.started())), emit);
        let now_ns = clock::monotonic_ns();
        self.start_ns = now_ns;
        self.cpu_before = CpuTime::of(UsageWho::RUSAGE_THREAD);
        traffic.start(now_ns);
        let bytes = self.control.start(&self.params, now_ns);
        self.pump.send(&bytes)?;
        traffic.run()?;
        self.traffic = Some(traffic);
        Ok(())
    }

    fn open_file(&self) -> Result<SharedFile, TestError> {
        self.file().map_or(Ok(None), |path| lane::open_file(path, !self.params.reverse))
    }

    /// The file that this test sends or receives into.
    fn file(&self) -> Option<&Path> {
        let usable = !self.params.bidir && self.params.transport == Transport::Tcp;
        self.shared.options.file.as_deref().filter(|_| usable)
    }

    fn make_output(&mut self) {
        if !self.params.server_output {
            return;
        }
        self.output = Some(if self.shared.options.json {
            Output::Json(Box::default())
        } else {
            Output::Text(Box::new(TextReport::new(TextOptions::default())), String::new())
        });
    }

    fn authenticate(&self) -> Result<(), TestError> {
        let Some(gate) = &self.shared.options.gate else { return Ok(()) };
        let now_s = clock::realtime_ns() / 1_000_000_000;
        let token = self.params.authtoken.as_deref().ok_or("no token");
        match token.and_then(|token| gate.check(token, now_s)) {
            Ok(_user) => Ok(()),
            Err(reason) => Err(TestError::Refused {
                code: ErrorCode::AUTHENTICATION,
                reason: format!("authentication failed: {reason}"),
            }),
        }
    }

    /// Threads that this one starts stay on its CPU.
    fn pin(&self) -> Result<(), TestError> {
        match self.params.server_affinity {
            Some(cpu) if self.shared.options.limits.pinning => Ok(affinity::pin_thread(&[cpu as usize])?),
            _ => Ok(()),
        }
    }

    fn accept_tcp(&mut self, traffic: &mut Traffic) -> Result<(), TestError> {
        let way = self.open_way()?;
        let streams = self.seat.expect_streams();
        let bytes = self.control.accept(clock::monotonic_ns());
        self.pump.send(&bytes)?;
        let mut arrivals = self.collect(&streams, &way)?;
        self.seat.complete();
        drop(way);
        arrivals.sort_by_key(|(number, _)| *number);
        for (_, socket) in arrivals {
            self.apply_accepted(&socket)?;
            traffic.add(socket)?;
        }
        Ok(())
    }

    /// Window scale, segment size and MPTCP are settled when a connection is made, so the listener must have them.
    fn open_way(&self) -> Result<Way, TestError> {
        let (door, address) = (&self.shared.door, self.local.ip());
        let needed = self.params.window.is_some() || self.params.mss.is_some() || self.params.mptcp;
        if !needed {
            return door.lease_plain(address, LEASE_LIMIT).map(Way::General).ok_or_else(blocked);
        }
        let lease = door.lease_beside(address, LEASE_LIMIT).ok_or_else(blocked)?;
        let listener = sockets::listen_beside(self.local, &self.params)?;
        Ok(Way::Beside(Beside { listener: Some(listener), shared: self.shared.clone(), _lease: lease }))
    }

    /// Waits for all streams. Connections of others that come in beside are led to where they belong.
    fn collect(&mut self, streams: &Receiver<Arrival>, way: &Way) -> Result<Vec<Arrival>, TestError> {
        let wanted = self.params.streams() as usize;
        let mut arrivals = Vec::new();
        let mut last_ns = clock::monotonic_ns();
        loop {
            if let Way::Beside(Beside { listener: Some(listener), .. }) = way {
                self.shared.accept_all(listener, self.tell);
            }
            let before = arrivals.len();
            arrivals.extend(streams.try_iter());
            if arrivals.len() == wanted {
                return Ok(arrivals);
            }
            let now_ns = clock::monotonic_ns();
            if arrivals.len() > before {
                last_ns = now_ns;
            }
            self.check_next_stream(last_ns)?;
            self.wait(now_ns + STREAM_POLL_NS)?;
        }
    }

    /// A client that opens no more streams keeps others waiting.
    fn check_next_stream(&self, last_ns: u64) -> Result<(), TestError> {
        if clock::monotonic_ns() - last_ns < NEXT_STREAM_NS {
            return Ok(());
        }
        let reason = format!("no further stream within {} s", NEXT_STREAM_NS / 1_000_000_000);
        Err(TestError::Refused { code: ErrorCode::NO_DATA, reason })
    }

    fn apply_accepted(&self, socket: &Socket) -> Result<(), TestError> {
        let mut params = self.params.clone();
        // An unknown name is the client's business; this side then keeps its own.
        let known = sockopt::available_congestion_controls().unwrap_or_default();
        params.congestion = params.congestion.filter(|name| known.contains(name));
        sockets::set_tcp(socket, &params)?;
        sockets::set_common(socket, self.local, &params)
    }

    fn accept_udp(&mut self, traffic: &mut Traffic) -> Result<(), TestError> {
        let lease = self.shared.door.lease_hellos(self.address.ip(), LEASE_LIMIT).ok_or_else(blocked)?;
        let mut last_ns = clock::monotonic_ns();
        let bytes = self.control.accept(last_ns);
        self.pump.send(&bytes)?;
        let mut known = Vec::new();
        while traffic.len() < self.params.streams() as usize {
            let hello = lease.hellos.recv_timeout(Duration::from_nanos(STREAM_POLL_NS)).ok();
            let Some(remote) = hello.filter(|remote| !known.contains(remote)) else {
                self.check_next_stream(last_ns)?;
                self.wait(0)?;
                continue;
            };
            known.push(remote);
            let socket = self.open_udp(remote)?;
            traffic.add(socket)?;
            last_ns = clock::monotonic_ns();
        }
        Ok(())
    }

    /// The socket of one UDP stream, connected before its peer is answered.
    fn open_udp(&self, remote: SocketAddr) -> Result<Socket, TestError> {
        let socket = sockets::udp_stream(self.local, remote, &self.params)?;
        let describe = |e| linerate_sys::SysError::new("prepare", "UDP stream", e);
        let std_socket: UdpSocket = socket.try_clone().map_err(describe)?.into();
        // Between bind and connect it took what others sent.
        let mut buffer = [0; 64];
        std_socket.set_nonblocking(true).map_err(describe)?;
        while let Ok((count, from)) = std_socket.recv_from(&mut buffer) {
            let from = sockets::canonical(from);
            if from != remote {
                self.shared.door.datagram(&buffer[..count], from);
            }
        }
        std_socket.set_nonblocking(false).map_err(describe)?;
        std_socket.send(&udp::ANSWER).map_err(describe)?;
        Ok(socket)
    }

    /// The client ended the test.
    fn end(&mut self, emit: Emit<'_>) -> Result<(), TestError> {
        let interval = self.traffic.as_mut().and_then(Traffic::finish);
        if let Some(interval) = interval {
            self.emit(Event::Interval(interval), emit);
        }
        let bytes = self.control.ended(clock::monotonic_ns());
        self.pump.send(&bytes)
    }

    /// The client's results say how much it sent: what of that is still under way is waited for.
    fn exchange(&mut self, far: &Results, emit: Emit<'_>) -> Result<(), TestError> {
        if let Some(traffic) = &mut self.traffic {
            traffic.read_tail(Some(far));
            if let Some(error) = traffic.take_failure() {
                return Err(error);
            }
        }
        let Some(own) = self.tell_end(Some(far), emit) else { return Err(TestError::ControlClosed) };
        let bytes = self.control.results(&own, clock::monotonic_ns());
        self.pump.send(&bytes)
    }

    /// Ends the threads, tells the end; gives the results with the output that the client asked for.
    fn tell_end(&mut self, far: Option<&Results>, emit: Emit<'_>) -> Option<Results> {
        let traffic = self.traffic.as_mut()?;
        traffic.leave();
        let cpu = traffic.cpu_of_threads(self.cpu_before, self.start_ns);
        let now_ns = clock::monotonic_ns();
        let progress = traffic.progress()?;
        let mut own = outcome::results(progress, &self.params, cpu, now_ns, far);
        let mut end = outcome::end(progress, &self.params, cpu, now_ns, far, true);
        end.file = self.file().map(outcome::file_end);
        self.emit(Event::Ended(Box::new(end)), emit);
        own.server_output = self.output.take().and_then(Output::finish);
        Some(own)
    }

    /// Tells the client why the test ends, and what was measured.
    fn abandon(&mut self, error: &TestError, emit: Emit<'_>) {
        let bytes = match error {
            TestError::ControlClosed | TestError::ClientTerminated => vec![],
            TestError::Interrupted => vec![State::ServerTerminate.byte()],
            other => other.code().message(other.errno()),
        };
        if let Some(interval) = self.traffic.as_mut().and_then(Traffic::cut) {
            self.emit(Event::Interval(interval), emit);
        }
        self.tell_end(None, emit);
        super::server::refuse(self.pump.socket(), &bytes);
    }

    fn emit(&mut self, event: Event, emit: Emit<'_>) {
        if let Some(output) = &mut self.output {
            output.event(&event);
        }
        emit(event);
    }
}

/// How a test's TCP streams come in.
enum Way {
    General(#[expect(dead_code, reason = "held until the streams are there")] PlainLease),
    Beside(Beside),
}

/// A listener of a test's own. It is retired before the lease lets others go on.
struct Beside {
    listener: Option<Socket>,
    shared: Arc<ServerShared>,
    _lease: BesideLease,
}

impl Drop for Beside {
    fn drop(&mut self) {
        if let Some(listener) = self.listener.take() {
            self.shared.retire(listener);
        }
    }
}

fn blocked() -> TestError {
    TestError::Refused { code: ErrorCode::STREAM, reason: "other tests block the way to streams".into() }
}

fn refused(refusal: Refusal) -> TestError {
    TestError::Refused { code: refusal.code, reason: refusal.reason }
}

/// The bit rate over the last seconds.
#[derive(Debug, Default)]
struct RateWatch(VecDeque<(u64, u64)>);

impl RateWatch {
    /// Bits a second over the last `average_s`, once that long has passed.
    fn note(&mut self, bytes: u64, now_ns: u64, average_s: u32) -> Option<f64> {
        let window_ns = u64::from(average_s) * 1_000_000_000;
        if self.0.back().is_none_or(|(at, _)| now_ns - at >= 50_000_000) {
            self.0.push_back((now_ns, bytes));
        }
        while self.0.get(1).is_some_and(|(at, _)| now_ns - at >= window_ns) {
            self.0.pop_front();
        }
        let (at, before) = *self.0.front()?;
        let passed_ns = now_ns - at;
        (passed_ns >= window_ns && window_ns > 0).then(|| (bytes - before) as f64 * 8e9 / passed_ns as f64)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_rate_is_that_of_the_window() {
        let mut watch = RateWatch::default();
        let mut last = None;
        for tenth in 0..100_u64 {
            let bytes = if tenth < 50 { 0 } else { (tenth - 50) * 125_000 };
            last = watch.note(bytes, 1 + tenth * 100_000_000, 2);
            assert_eq!(last.is_some(), tenth >= 20);
        }
        assert_eq!(last, Some(10_000_000.0));
    }
}
