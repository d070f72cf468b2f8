//! The tools, and how each is told to do a work.

use std::{fmt, process::Command};

use clap::ValueEnum;

use super::{place::Place, work::Work};
use crate::repository;

/// linerate and its peers.
#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
pub(crate) enum Tool {
    Linerate,
    Iperf3,
    Netperf,
    Nuttcp,
    Sockperf,
    Qperf,
}

/// The commands of one run.
pub(crate) struct Plan {
    /// The server, and the port it listens at; linerate brings its own.
    pub(crate) server: Option<(Command, u16)>,
    /// All started at once.
    pub(crate) clients: Vec<Command>,
}

impl Tool {
    pub(crate) const ALL: [Self; 6] =
        [Self::Linerate, Self::Iperf3, Self::Netperf, Self::Nuttcp, Self::Sockperf, Self::Qperf];

    /// Its program.
    pub(crate) fn program(self) -> &'static str {
        match self {
            Self::Linerate => "linerate",
            Self::Iperf3 => "iperf3",
            Self::Netperf => "netperf",
            Self::Nuttcp => "nuttcp",
            Self::Sockperf => "sockperf",
            Self::Qperf => "qperf",
        }
    }

    /// Why it can't do a work.
    pub(crate) fn obstacle(self, work: Work) -> Option<&'static str> {
        match (self, work) {
            (Self::Iperf3 | Self::Nuttcp, Work::TcpRr) => Some("has no request/response"),
            (Self::Sockperf, Work::TcpStream | Work::TcpStreams4) => {
                Some("sends at most 65,507 bytes a call")
            }
            (Self::Qperf, Work::TcpStreams4) => Some("has one stream"),
            _ => None,
        }
    }

    /// What is different from the work asked for, where the tool can't do better.
    pub(crate) fn deviation(self, work: Work) -> Option<&'static str> {
        match (self, work) {
            (Self::Sockperf, Work::TcpRr) => Some("14 bytes each way, its least"),
            (Self::Netperf, Work::TcpStreams4) => Some("four clients at once"),
            (Self::Sockperf, Work::Udp64) => Some("its own figure is the sender's"),
            _ => None,
        }
    }

    /// The command that prints its version.
    pub(crate) fn version_command(self) -> Command {
        let (program, option) = match self {
            Self::Linerate => return command_with(repository::linerate(), &["--version"]),
            Self::Iperf3 => ("iperf3", "--version"),
            Self::Netperf => ("netperf", "-V"),
            Self::Nuttcp => ("nuttcp", "-V"),
            Self::Sockperf => ("sockperf", "--version"),
            Self::Qperf => ("qperf", "--version"),
        };
        command_with(program, &[option])
    }

    /// How to do a work for some seconds.
    pub(crate) fn plan(self, work: Work, place: &Place, seconds: u32) -> Plan {
        let time = seconds.to_string();
        match self {
            Self::Linerate => linerate(work, place, &time),
            Self::Iperf3 => iperf3(work, place, &time),
            Self::Netperf => netperf(work, place, &time),
            Self::Nuttcp => nuttcp(work, place, &time),
            Self::Sockperf => sockperf(work, place, &time),
            Self::Qperf => qperf(work, place, &time),
        }
    }
}

impl fmt::Display for Tool {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(self.program())
    }
}

fn linerate(work: Work, place: &Place, time: &str) -> Plan {
    let (mut command, peer, dut) = place.linerate(&repository::linerate().to_string_lossy());
    command.args(["run", &peer, "--dut", &dut, "--family", "4", "--pin", "dut=0,peer=1"]);
    command.args(["-t", time, "--warmup", "0.5", "--json", "--no-store"]);
    match work {
        Work::TcpStream | Work::TcpStreams4 => {
            command.args(["-w", "tcp-stream", "--size", "128K", "--streams", &work.streams().to_string()])
        }
        Work::TcpRr => command.args(["-w", "tcp-rr", "--request", "1", "--response", "1"]),
        Work::Udp64 => command.args(["-w", "udp-stream", "--size", "64"]),
    };
    Plan { server: None, clients: vec![command] }
}

fn iperf3(work: Work, place: &Place, time: &str) -> Plan {
    let mut server = place.server("iperf3");
    server.args(["--server", "--one-off"]);
    let mut client = place.client("iperf3");
    client.args(["--client", &place.server_address(), "--time", time, "--json"]);
    match work {
        Work::Udp64 => client.args(["--udp", "--bitrate", "0", "--length", "64"]),
        _ => client.args(["--length", "128K", "--parallel", &work.streams().to_string()]),
    };
    Plan { server: Some((server, 5201)), clients: vec![client] }
}

fn netperf(work: Work, place: &Place, time: &str) -> Plan {
    let mut server = place.server("netserver");
    server.args(["-D", "-4", "-L", &place.server_address()]);
    let client = || {
        let mut client = place.client("netperf");
        client.args(["-4", "-H", &place.server_address(), "-l", time, "-P", "0"]);
        client.args(match work {
            Work::TcpStream | Work::TcpStreams4 => ["-t", "TCP_STREAM", "--", "-m", "131072"],
            Work::TcpRr => ["-t", "TCP_RR", "--", "-r", "1,1"],
            Work::Udp64 => ["-t", "UDP_STREAM", "--", "-m", "64"],
        });
        client.args(["-k", "THROUGHPUT,LOCAL_SEND_CALLS,REMOTE_RECV_CALLS,ELAPSED_TIME"]);
        if work == Work::Udp64 {
            // Without it the datagrams may not leave by a route.
            client.args(["-R", "1"]);
        }
        client
    };
    Plan { server: Some((server, 12865)), clients: (0..work.streams()).map(|_| client()).collect() }
}

fn nuttcp(work: Work, place: &Place, time: &str) -> Plan {
    let mut server = place.server("nuttcp");
    server.args(["-S", "--nofork", "-4"]);
    let mut client = place.client("nuttcp");
    client.args(["-t", "-4", "-fparse", &format!("-T{time}")]);
    match work {
        Work::Udp64 => client.args(["-u", "-l64", "-Ru"]),
        _ => client.args(["-l128k", &format!("-N{}", work.streams())]),
    };
    client.arg(place.server_address());
    Plan { server: Some((server, 5000)), clients: vec![client] }
}

fn sockperf(work: Work, place: &Place, time: &str) -> Plan {
    let address = place.server_address();
    let socket = ["-i", &address, "-p", "11111"];
    let (mode, protocol, size): (_, &[&str], _) = match work {
        Work::Udp64 => ("throughput", &[], "64"),
        _ => ("ping-pong", &["--tcp"], "14"),
    };
    let mut server = place.server("sockperf");
    server.arg("server").args(protocol).args(socket);
    let mut client = place.client("sockperf");
    client.arg(mode).args(protocol).args(socket).args(["-m", size, "-t", time]);
    Plan { server: Some((server, 11111)), clients: vec![client] }
}

fn qperf(work: Work, place: &Place, time: &str) -> Plan {
    let server = place.server("qperf");
    let (size, test) = match work {
        Work::TcpStream | Work::TcpStreams4 => ("128K", "tcp_bw"),
        Work::TcpRr => ("1", "tcp_lat"),
        Work::Udp64 => ("64", "udp_bw"),
    };
    let mut client = place.client("qperf");
    client.args(["-t", time, "-uu", "-v", "-m", size, &place.server_address(), test]);
    Plan { server: Some((server, 19765)), clients: vec![client] }
}

fn command_with(program: impl AsRef<std::ffi::OsStr>, arguments: &[&str]) -> Command {
    let mut command = Command::new(program);
    command.args(arguments);
    command
}
