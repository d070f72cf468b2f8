//! A `linerate serve` reached by TCP: traffic only.

use std::io;
use std::net::{TcpStream, ToSocketAddrs};
use std::time::Duration;

use linerate_model::NodeUrl;
use linerate_sys::sockopt;

use super::{Carrier, LOCAL_LIMIT, unreachable};
use crate::auth::Secret;
use crate::node::{Node, NodeError};

/// How long connecting may take.
const CONNECT_LIMIT: Duration = Duration::from_secs(10);

pub(super) fn connect(
    url: &NodeUrl,
    host: &str,
    port: u16,
    secret: Option<&Secret>,
) -> Result<Node, NodeError> {
    let stream = open(host, port).map_err(|words| unreachable(url, "connect to its server", words))?;
    let failed = |e: io::Error| unreachable(url, "set up the connection", e.to_string());
    let reader = prepare(&stream).map_err(failed)?;
    let carrier = Carrier::socket(stream.try_clone().map_err(failed)?);
    Node::greet(url.clone(), reader, stream, carrier, secret, LOCAL_LIMIT)
}

fn open(host: &str, port: u16) -> Result<TcpStream, String> {
    let addresses = (host, port).to_socket_addrs().map_err(|e| format!("look up {host}: {e}"))?;
    let mut failures = Vec::new();
    for address in addresses {
        match TcpStream::connect_timeout(&address, CONNECT_LIMIT) {
            Ok(stream) => return Ok(stream),
            Err(error) => failures.push(format!("{address}: {}", plain(&error))),
        }
    }
    Err(if failures.is_empty() { format!("{host} has no address") } else { failures.join("; ") })
}

fn plain(error: &io::Error) -> String {
    match error.kind() {
        io::ErrorKind::ConnectionRefused => "connection refused: is linerate serve running there?".to_owned(),
        io::ErrorKind::TimedOut => {
            format!("no answer within {} s: a firewall may drop it", CONNECT_LIMIT.as_secs())
        }
        _ => error.to_string(),
    }
}

fn prepare(stream: &TcpStream) -> io::Result<TcpStream> {
    tune_control(stream)?;
    stream.try_clone()
}

/// No delay for small messages, and a dead network is noticed within about 20 s, also while nothing is said.
pub(crate) fn tune_control(stream: &TcpStream) -> io::Result<()> {
    stream.set_nodelay(true)?;
    let keep =
        sockopt::KeepAlive { idle: Duration::from_secs(5), interval: Duration::from_secs(5), probes: 3 };
    sockopt::set_keepalive(stream, keep).map_err(|e| e.source)?;
    sockopt::set_user_timeout(stream, Duration::from_secs(20)).map_err(|e| e.source)
}
