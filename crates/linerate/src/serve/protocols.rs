//! Which protocols are served, and on which ports.

use clap::{Args, ValueEnum};
use linerate_model::node::DEFAULT_SERVE_PORT;

use crate::failure::Failure;

/// A protocol that `linerate serve` answers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Protocol {
    /// linerate's own.
    Linerate,
    /// netperf's.
    Netperf,
    /// iperf3's.
    Iperf3,
    /// uperf's.
    Uperf,
    /// ttcp's.
    Ttcp,
}

/// The options that choose protocols and ports.
#[derive(Debug, Args)]
#[command(next_help_heading = "Protocols")]
pub(crate) struct ProtocolArgs {
    /// Serve only these.
    #[arg(long, value_name = "NAME", value_delimiter = ',')]
    only: Vec<Protocol>,
    /// Port of linerate's own protocol.
    #[arg(long, visible_alias = "linerate-port", default_value_t = DEFAULT_SERVE_PORT)]
    port: u16,
    /// Leave out linerate's own protocol.
    #[arg(long)]
    no_linerate: bool,
    /// Port for netperf.
    #[arg(long, default_value_t = 12865)]
    netperf_port: u16,
    /// Leave out netperf.
    #[arg(long)]
    no_netperf: bool,
    /// Port for iperf3, TCP and UDP.
    #[arg(long, default_value_t = 5201)]
    iperf3_port: u16,
    /// Leave out iperf3.
    #[arg(long)]
    no_iperf3: bool,
    /// Serve one iperf3 client at a time and call the server busy to others, as iperf3 does.
    #[arg(long)]
    pub(crate) one_at_a_time: bool,
    /// Port for uperf.
    #[arg(long, default_value_t = 20000)]
    uperf_port: u16,
    /// Leave out uperf.
    #[arg(long)]
    no_uperf: bool,
    /// Port for ttcp, TCP and UDP.
    #[arg(long, default_value_t = 5001)]
    ttcp_port: u16,
    /// Leave out ttcp.
    #[arg(long)]
    no_ttcp: bool,
}

impl ProtocolArgs {
    /// The protocols to serve, with their ports.
    ///
    /// # Errors
    /// Where none is left.
    pub(crate) fn chosen(&self) -> Result<Vec<(Protocol, u16)>, Failure> {
        let all = [
            (Protocol::Linerate, self.port, self.no_linerate),
            (Protocol::Netperf, self.netperf_port, self.no_netperf),
            (Protocol::Iperf3, self.iperf3_port, self.no_iperf3),
            (Protocol::Uperf, self.uperf_port, self.no_uperf),
            (Protocol::Ttcp, self.ttcp_port, self.no_ttcp),
        ];
        let wanted = |protocol| self.only.is_empty() || self.only.contains(&protocol);
        let chosen: Vec<_> = all
            .into_iter()
            .filter(|&(p, _, left_out)| wanted(p) && !left_out)
            .map(|(p, port, _)| (p, port))
            .collect();
        if chosen.is_empty() {
            return Err(Failure::usage("no protocol is left to serve"));
        }
        Ok(chosen)
    }
}

impl Protocol {
    /// Its name.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Linerate => "linerate",
            Self::Netperf => "netperf",
            Self::Iperf3 => "iperf3",
            Self::Uperf => "uperf",
            Self::Ttcp => "ttcp",
        }
    }
}
