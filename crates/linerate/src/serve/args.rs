//! The command line of `linerate serve`.

use std::path::PathBuf;

use clap::Args;
use ipnet::IpNet;

use crate::serve::protocols::ProtocolArgs;

pub(crate) const SERVE_EXAMPLES: &str = "\
Examples:
  linerate serve                               every protocol on its own port, for everybody
  linerate serve --allow 10.0.0.0/8 --max-clients 4 --max-duration 60
  linerate serve --only linerate --secret-file secret
  linerate serve --only netperf --netperf-port 2222";

#[derive(Debug, Args)]
pub(crate) struct ServeArgs {
    /// Address to listen on; all of them where none is given, IPv4 and IPv6.
    #[arg(long, value_name = "ADDRESS")]
    pub(crate) bind: Option<std::net::IpAddr>,
    #[command(flatten)]
    pub(crate) protocols: ProtocolArgs,
    /// Most clients at once; those of iperf3 are counted apart.
    #[arg(long, value_name = "N", default_value_t = 32)]
    pub(crate) max_clients: usize,
    /// Longest trial, seconds.
    #[arg(long, value_name = "SECONDS")]
    pub(crate) max_duration: Option<String>,
    /// Networks that may connect, as often as needed.
    #[arg(long, value_name = "CIDR", value_delimiter = ',')]
    pub(crate) allow: Vec<IpNet>,
    /// File with a secret that clients must know; it never crosses the wire.
    #[arg(long, value_name = "FILE")]
    pub(crate) secret_file: Option<PathBuf>,
    /// Most bits a second that the server sends a client.
    #[arg(long, value_name = "RATE")]
    pub(crate) max_rate: Option<String>,
    /// Clients of netperf may choose the CPU that serves them.
    #[arg(long)]
    pub(crate) allow_pinning: bool,
    /// Serve counts as Prometheus text at this address (http://ADDR/metrics).
    #[arg(long, value_name = "ADDR:PORT")]
    pub(crate) stats: Option<std::net::SocketAddr>,
    /// Log as JSON lines.
    #[arg(long)]
    pub(crate) log_json: bool,
}
