//! The work that all tools do.

use std::fmt::{self, Display};

use clap::ValueEnum;

/// What is moved, and in what pieces.
#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
pub(crate) enum Work {
    /// One TCP stream, 128 KiB a call.
    TcpStream,
    /// Four TCP streams, 128 KiB a call.
    TcpStreams4,
    /// One byte there and one back over one TCP connection, one request at a time.
    TcpRr,
    /// UDP datagrams of 64 bytes as fast as the sender can.
    Udp64,
}

impl Work {
    pub(crate) const ALL: [Self; 4] = [Self::TcpStream, Self::TcpStreams4, Self::TcpRr, Self::Udp64];

    /// Payload bytes of a datagram.
    pub(crate) const DATAGRAM_SIZE_BYTES: u32 = 64;

    /// How many connections or flows.
    pub(crate) fn streams(self) -> u32 {
        if self == Self::TcpStreams4 { 4 } else { 1 }
    }

    /// What is counted.
    pub(crate) fn unit(self) -> Unit {
        match self {
            Self::TcpStream | Self::TcpStreams4 => Unit::Byte,
            Self::TcpRr => Unit::Transaction,
            Self::Udp64 => Unit::Datagram,
        }
    }
}

impl Display for Work {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(match self {
            Self::TcpStream => "one TCP stream, 128 KiB a call",
            Self::TcpStreams4 => "four TCP streams, 128 KiB a call",
            Self::TcpRr => "TCP request/response, 1 byte each way",
            Self::Udp64 => "UDP, 64 bytes a datagram, unpaced",
        })
    }
}

/// What a work counts.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Unit {
    /// Bytes received.
    Byte,
    /// A request and its response.
    Transaction,
    /// Datagrams received.
    Datagram,
}

impl Unit {
    /// A rate in units a second, as a reader wants it.
    pub(crate) fn rate(self, per_second: f64) -> String {
        match self {
            Self::Byte => format!("{:.2} Gbit/s", per_second * 8.0 / 1e9),
            Self::Transaction => format!("{per_second:.0} /s"),
            Self::Datagram => format!("{:.1} k/s", per_second / 1e3),
        }
    }

    /// CPU seconds a unit, as service demand.
    pub(crate) fn demand(self, cpu_seconds_per_unit: f64) -> String {
        let microseconds = cpu_seconds_per_unit * 1e6;
        match self {
            Self::Byte => format!("{:.4} us/KB", microseconds * 1024.0),
            Self::Transaction => format!("{microseconds:.2} us/transaction"),
            Self::Datagram => format!("{microseconds:.3} us/datagram"),
        }
    }
}

/// Where the work is done.
#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
pub(crate) enum PlaceKind {
    /// The loopback link of a namespace that has nothing else.
    Loopback,
    /// Two namespaces joined by a veth pair.
    Veth,
}

impl PlaceKind {
    pub(crate) const ALL: [Self; 2] = [Self::Loopback, Self::Veth];
}

impl Display for PlaceKind {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(match self {
            Self::Loopback => "loopback",
            Self::Veth => "a veth pair between two namespaces",
        })
    }
}
