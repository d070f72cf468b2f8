//! What serves the clients of other tools: netperf, uperf and ttcp, each client on a thread of its own.

use std::net::{SocketAddr, TcpStream, UdpSocket};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use linerate_agent::server::{Admission, Served, Service, Visitor};
use linerate_compat::netperf::serve as netperf;
use linerate_compat::ttcp;
use linerate_compat::uperf::slave as uperf;

use crate::failure::Failure;

/// Why a client was turned away.
const FULL: &str = "as many clients as --max-clients allows are being served";

/// What clients of other tools may do.
#[derive(Debug, Clone)]
pub(crate) struct Limits {
    /// Longest test.
    pub(crate) max_duration: Option<Duration>,
    /// Most bits a second that the server sends a client.
    pub(crate) max_rate: Option<u64>,
    /// Clients may choose the CPU that serves them.
    pub(crate) allow_pinning: bool,
    /// Tests end when it is set.
    pub(crate) stop: Arc<AtomicBool>,
}

/// A service that takes a client's place first, and logs what came of the client.
fn client_service(
    serve: impl Fn(&mut TcpStream, SocketAddr) -> Result<(), String> + Send + Sync + 'static,
) -> Service {
    Arc::new(move |mut visitor: Visitor| {
        let Some(_place) = visitor.admission.enter() else { return Served::Refused(FULL) };
        Served::Client(serve(&mut visitor.stream, visitor.from).err())
    })
}

/// Serves netperf clients.
pub(crate) fn netperf_service(limits: &Limits) -> Service {
    let stop = Arc::clone(&limits.stop);
    let allowed = netperf::Limits {
        max_duration: limits.max_duration,
        max_bits_per_second: limits.max_rate,
        allow_pinning: limits.allow_pinning,
        passphrase: None,
    };
    client_service(move |stream, client| {
        let mut tell = |event: netperf::ServeEvent| log_netperf(client, &event);
        match netperf::serve_connection(stream, &allowed, &stop, &mut tell) {
            Ok(linerate_compat::netperf::server::Ended::ByClient) => Ok(()),
            Ok(other) => Err(other.to_string()),
            Err(error) => Err(format!("control connection: {error}")),
        }
    })
}

fn log_netperf(client: SocketAddr, event: &netperf::ServeEvent) {
    let protocol = "netperf";
    match event {
        netperf::ServeEvent::Test { request, port } => {
            let (pattern, transport) = (request.pattern, request.transport);
            tracing::info!(protocol, %client, ?pattern, ?transport, data_port = port, "test");
        }
        netperf::ServeEvent::Done(_) => tracing::info!(protocol, %client, "test done"),
        netperf::ServeEvent::PinningIgnored(cpu) => {
            tracing::info!(protocol, %client, cpu, "wish for a CPU ignored; --allow-pinning grants it");
        }
        netperf::ServeEvent::Failed(reason) => tracing::warn!(protocol, %client, reason, "test failed"),
    }
}

/// Is the slave of uperf masters.
pub(crate) fn uperf_service(limits: &Limits) -> Service {
    let stop = Arc::clone(&limits.stop);
    let allowed = uperf::Limits {
        max_duration: limits.max_duration,
        max_bits_per_second: limits.max_rate,
        ..uperf::Limits::default()
    };
    client_service(move |stream, client| {
        let summary = uperf::serve_connection(stream, &allowed, &stop)
            .map_err(|error| format!("control connection: {error}"))?;
        let uperf::SlaveSummary { strands, bytes, operations, elapsed_ns, failure, .. } = summary;
        let seconds = elapsed_ns as f64 / 1e9;
        tracing::info!(protocol = "uperf", %client, strands, bytes, operations, seconds, "test");
        failure.map_or(Ok(()), Err)
    })
}

/// Takes what ttcp transmitters send over TCP.
pub(crate) fn ttcp_service(limits: &Limits) -> Service {
    let (stop, max_duration) = (Arc::clone(&limits.stop), limits.max_duration);
    Arc::new(move |visitor: Visitor| {
        let Some(_place) = visitor.admission.enter() else { return Served::Refused(FULL) };
        let client = visitor.from;
        let (bytes, elapsed_ns, ended) = ttcp::serve_connection(visitor.stream, max_duration, &stop);
        tracing::info!(protocol = "ttcp", %client, bytes, seconds = elapsed_ns as f64 / 1e9, "test");
        Served::Client(match ended {
            ttcp::Ended::Closed | ttcp::Ended::Stopped => None,
            ttcp::Ended::TooLong => Some("longer than --max-duration allows".to_owned()),
            ttcp::Ended::Broken(reason) => Some(reason),
        })
    })
}

/// Takes what ttcp transmitters send over UDP, on a thread of its own for as long as the process lives. Nothing is sent back.
pub(crate) fn take_ttcp_datagrams(
    address: SocketAddr,
    admission: Admission,
    limits: &Limits,
) -> Result<(), Failure> {
    let failed = |e: std::io::Error| Failure::node(format!("listen on UDP {address} for ttcp: {e}"));
    let socket = UdpSocket::bind(address).map_err(failed)?;
    let stop = Arc::clone(&limits.stop);
    let serve = move || {
        let allowed = |client: SocketAddr| admission.allows(client.ip());
        let mut tell = |test: ttcp::UdpTest| {
            let (client, bytes, seconds) = (test.peer, test.bytes, test.elapsed_ns as f64 / 1e9);
            tracing::info!(protocol = "ttcp", %client, bytes, seconds, "UDP test");
        };
        if let Err(error) = ttcp::serve_udp(&socket, &allowed, &stop, &mut tell) {
            tracing::warn!(protocol = "ttcp", %error, "UDP ended");
        }
    };
    std::thread::Builder::new().name("ttcp-udp".to_owned()).spawn(serve).map_err(failed)?;
    Ok(())
}
