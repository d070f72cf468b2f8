//! What serves iperf3 clients. Its data connections come through the same port as its control connections, so it has a server of
//! its own, on a thread of its own.

use std::net::{IpAddr, SocketAddr};
use std::sync::{Arc, Mutex, PoisonError};

use ipnet::IpNet;
use linerate_agent::server::ServerEvent;
use linerate_compat::iperf3::limits::Limits;
use linerate_compat::iperf3::report::Event;
use linerate_compat::iperf3::server::{self, Server, ServerOptions, ServerTold};

use super::standins;
use crate::failure::Failure;

/// Seconds over which a rate limit is averaged.
const RATE_SECONDS: u32 = 5;

/// Hears what happens, for log and counts.
pub(crate) type Tell = Arc<dyn Fn(&'static str, ServerEvent) + Send + Sync>;

/// Who may come, and where to.
pub(crate) struct Iperf3Options {
    /// Address to listen on; all where none is given.
    pub(crate) bind: Option<IpAddr>,
    /// TCP and UDP port.
    pub(crate) port: u16,
    /// Networks that may come; all where none is named.
    pub(crate) allow: Vec<IpNet>,
    /// Most tests at once.
    pub(crate) clients: usize,
}

/// Listens, and serves on a thread until `limits.stop` is set. Gives the port.
pub(crate) fn start(options: Iperf3Options, limits: &standins::Limits, tell: Tell) -> Result<u16, Failure> {
    let allowed = Limits {
        clients: options.clients,
        duration_s: limits.max_duration.map(|d| u32::try_from(d.as_secs().max(1)).unwrap_or(u32::MAX)),
        rate: limits.max_rate.map(|rate| (rate, RATE_SECONDS)),
        allow: options.allow,
        pinning: limits.allow_pinning,
        ..Limits::default()
    };
    let bound =
        ServerOptions { bind: options.bind, port: options.port, limits: allowed, ..ServerOptions::default() };
    let ways_out = "choose another port with --iperf3-port, or leave it out with --no-iperf3";
    let server =
        Server::bind(bound).map_err(|e| Failure::node(format!("listen for iperf3: {e}; {ways_out}")))?;
    let port = server.port();
    let stop = Arc::clone(&limits.stop);
    let failures = Failures::default();
    let hear = Arc::new(move |event: server::ServerEvent| {
        if let Some(event) = failures.translate(event.client, event.address, event.what) {
            tell("iperf3", event);
        }
    });
    let serve = move || {
        if let Err(error) = server.run(&stop, &(hear as _)) {
            tracing::error!(protocol = "iperf3", %error, "ended");
        }
    };
    std::thread::Builder::new()
        .name("serve-iperf3".to_owned())
        .spawn(serve)
        .map_err(|e| Failure::node(format!("start a thread: {e}")))?;
    Ok(port)
}

/// Why clients failed, until they are gone.
#[derive(Default)]
struct Failures(Mutex<std::collections::HashMap<u64, String>>);

impl Failures {
    fn translate(&self, client: u64, address: SocketAddr, what: ServerTold) -> Option<ServerEvent> {
        let mut failures = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        match what {
            ServerTold::Test(Event::Connected(_)) => Some(ServerEvent::Knocked(address)),
            ServerTold::Test(Event::Failed(reason)) => {
                failures.insert(client, reason);
                None
            }
            ServerTold::Test(_) => None,
            ServerTold::Refused(reason) => Some(ServerEvent::Refused(address, reason)),
            ServerTold::Gone => Some(ServerEvent::Ended(address, failures.remove(&client))),
        }
    }
}
