//! One open trial on this node: its endpoint, its meter, and what the window gave.

use std::net::{IpAddr, SocketAddr, SocketAddrV6};
use std::time::Duration;

use linerate_link::links;
use linerate_meter::Meter;
use linerate_model::reading::Reading;
use linerate_model::trial::{Side, Trial};
use linerate_model::workload::Workload;
use linerate_sys::{affinity, sockopt};
use linerate_traffic::{Endpoint, Mover, OpenProfile, Token, TrafficError, TrialSide};
use socket2::{Domain, Protocol, Socket, Type};

use crate::auth;
use crate::protocol::{Prepare, Refusal, Reply, Schedule};
use crate::reading;
use crate::window::{self, LinkWatch, Samples, WindowControl};

/// How long the data connections may take to arrive.
const READY_LIMIT: Duration = Duration::from_secs(10);

/// Why a trial can't be opened, or ended early.
#[derive(Debug)]
pub struct TrialFailure {
    kind: Refusal,
    reason: String,
}

impl TrialFailure {
    /// The network or the machine failed.
    pub fn network(reason: impl ToString) -> Self {
        Self { kind: Refusal::Network, reason: reason.to_string() }
    }

    /// The request makes no sense here.
    pub fn usage(reason: impl ToString) -> Self {
        Self { kind: Refusal::Usage, reason: reason.to_string() }
    }

    /// As the controller is told.
    pub fn into_reply(self) -> Reply {
        Reply::Refused { reason: self.reason, kind: self.kind }
    }
}

/// A trial whose endpoint is open.
#[derive(Debug)]
pub struct OpenTrial {
    trial: Trial,
    endpoint: Option<Box<dyn Mover>>,
    meter: Meter,
    link: Option<String>,
    watch: LinkWatch,
    samples: Option<Samples>,
}

impl OpenTrial {
    /// Opens the endpoint: listens, or connects. `profiles` is what runs profiles here.
    ///
    /// # Errors
    /// Where the request makes no sense on this machine, or the kernel or the network refuses.
    pub fn open(prepare: Prepare, profiles: Option<OpenProfile>) -> Result<Self, TrialFailure> {
        check_cpus(&prepare.trial, prepare.side)?;
        let address = prepare.local.ok_or_else(|| TrialFailure::usage("no address to test with"))?;
        let link = match prepare.link {
            Some(link) => Some(link),
            None => link_of(address),
        };
        let meter = Meter::open(link.as_deref()).map_err(TrialFailure::network)?;
        let side = TrialSide {
            trial: prepare.trial,
            token: token(&prepare.token)?,
            local: socket_address(address, prepare.scope_id),
        };
        // The peer listens, whatever it is told: nobody can send a server against others.
        let remote = prepare
            .remote
            .as_ref()
            .filter(|_| prepare.side == Side::Dut)
            .map(|remote| (socket_address(remote.address, prepare.scope_id), remote.ports.as_slice()));
        if prepare.side == Side::Dut && remote.is_none() {
            return Err(TrialFailure::usage("the dut needs to know where the peer listens"));
        }
        let opened = match (&side.trial.workload, profiles) {
            (Workload::Profile(_), Some(open)) => open(&side, prepare.side, remote),
            (Workload::Profile(_), None) => return Err(TrialFailure::usage("this agent runs no profiles")),
            _ => open_endpoint(&side, remote),
        };
        let endpoint = opened.map_err(explain)?;
        let watch = LinkWatch::new(link.clone());
        Ok(Self { trial: side.trial, endpoint: Some(endpoint), meter, link, watch, samples: None })
    }

    /// Whether its window has been run.
    pub fn has_run(&self) -> bool {
        self.samples.is_some()
    }

    /// Traffic before its window, nanoseconds.
    pub fn warmup_ns(&self) -> u64 {
        self.trial.warmup_ns
    }

    /// Ports that the other node is to connect to.
    pub fn ports(&self) -> Vec<u16> {
        self.endpoint.as_ref().map(|e| e.ports()).unwrap_or_default()
    }

    /// The link that the reading will be of.
    pub fn link(&self) -> Option<&str> {
        self.link.as_deref()
    }

    /// Waits until all data connections stand.
    ///
    /// # Errors
    /// Where they do not in time.
    pub fn await_ready(&mut self) -> Result<(), TrialFailure> {
        self.endpoint()?.wait_ready(READY_LIMIT).map_err(explain)
    }

    /// Runs the window.
    ///
    /// # Errors
    /// Where a stream fails, or the controller is gone.
    pub fn run(
        &mut self,
        schedule: Schedule,
        control: &WindowControl,
        say: &dyn Fn(&Reply),
    ) -> Result<(), TrialFailure> {
        let endpoint = self.endpoint.as_mut().ok_or_else(over)?;
        let interval_ns = self.trial.interval_ns;
        let samples = window::run(
            endpoint.as_mut(),
            &mut self.meter,
            &mut self.watch,
            schedule,
            interval_ns,
            control,
            say,
        )?;
        self.samples = Some(samples);
        say(&Reply::WindowClosed);
        Ok(())
    }

    /// Stops what this side sends; what is on its way still arrives.
    ///
    /// # Errors
    /// Where the trial is over.
    pub fn stop(&mut self) -> Result<(), TrialFailure> {
        self.endpoint()?.stop();
        Ok(())
    }

    /// Ends the traffic and gives the reading.
    ///
    /// # Errors
    /// Where no window has been closed before.
    pub fn finish(&mut self, sent_in_window: &[u64]) -> Result<Reading, TrialFailure> {
        let samples = self.samples.take().ok_or_else(|| TrialFailure::usage("no window has been closed"))?;
        let endpoint = self.endpoint.take().ok_or_else(over)?;
        let expected = (!sent_in_window.is_empty()).then_some(sent_in_window);
        Ok(reading::reading(samples, endpoint.finish(expected)))
    }

    fn endpoint(&mut self) -> Result<&mut (dyn Mover + 'static), TrialFailure> {
        self.endpoint.as_deref_mut().ok_or_else(over)
    }
}

/// Whether a trial makes sense on this machine: its CPUs are there, the kernel has its congestion control.
///
/// # Errors
/// Says what would be right.
pub fn check(trial: &Trial, side: Side) -> Result<(), TrialFailure> {
    check_cpus(trial, side)?;
    let Some(name) = trial.workload.tcp_options().and_then(|options| options.congestion.as_deref()) else {
        return Ok(());
    };
    // A socket of its own: asking may have the kernel load the module.
    let scratch = Socket::new(Domain::IPV4, Type::STREAM, Some(Protocol::TCP))
        .map_err(|e| TrialFailure::network(format!("create a socket: {e}")))?;
    sockopt::set_congestion(&scratch, name).map_err(|e| explain(e.into()))
}

fn open_endpoint(
    side: &TrialSide,
    remote: Option<(SocketAddr, &[u16])>,
) -> Result<Box<dyn Mover>, TrafficError> {
    let endpoint = match remote {
        None => Endpoint::listen(side)?,
        Some((address, ports)) => Endpoint::connect(side, address, ports)?,
    };
    Ok(Box::new(endpoint))
}

fn over() -> TrialFailure {
    TrialFailure::usage("the trial is over")
}

fn check_cpus(trial: &Trial, side: Side) -> Result<(), TrialFailure> {
    let (asked, name) = match side {
        Side::Dut => (&trial.pin.dut, "dut"),
        Side::Peer => (&trial.pin.peer, "peer"),
    };
    let allowed = affinity::allowed_cpus().map_err(TrialFailure::network)?;
    let missing = asked.iter().find(|&&cpu| !allowed.contains(&(cpu as usize)));
    missing.map_or(Ok(()), |cpu| {
        Err(TrialFailure::usage(format!(
            "--pin {name}={cpu}: there is no such CPU to run on; there are {allowed:?}"
        )))
    })
}

fn token(hex: &str) -> Result<Token, TrialFailure> {
    let bytes = auth::from_hex(hex).and_then(|bytes| <[u8; 16]>::try_from(bytes).ok());
    bytes.map(Token::from_bytes).ok_or_else(|| TrialFailure::usage("the token is not 16 bytes of hex"))
}

/// The link that has an address; none where the address is nobody's here (behind address translation).
pub(crate) fn link_of(address: IpAddr) -> Option<String> {
    let all = links::all().ok()?;
    all.into_iter().find(|l| l.addresses.iter().any(|a| a.address == address)).map(|l| l.name)
}

fn socket_address(address: IpAddr, scope_id: u32) -> SocketAddr {
    match address {
        IpAddr::V4(v4) => SocketAddr::new(IpAddr::V4(v4), 0),
        IpAddr::V6(v6) => SocketAddr::V6(SocketAddrV6::new(v6, 0, 0, scope_id)),
    }
}

/// Adds what would be right where the kernel does not have what was asked for.
fn explain(error: TrafficError) -> TrialFailure {
    let TrafficError::Setup(cause) = &error else { return TrialFailure::network(error) };
    if !cause.operation.contains("TCP_CONGESTION") {
        return TrialFailure::network(error);
    }
    let offered = sockopt::available_congestion_controls().unwrap_or_default().join(", ");
    TrialFailure::usage(format!("--congestion: {error}; the kernel offers {offered}"))
}
