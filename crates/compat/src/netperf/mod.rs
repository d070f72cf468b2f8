//! netperf and netserver, 2.7.0 and newer.
//!
//! [`server::ServerSession`] and [`client::ClientSession`] are the two ends of a control connection without I/O;
//! [`serve::serve_connection`] pumps the one and moves the data of its tests. [`options::Options`] reads the command line.

pub mod client;
mod cpu;
mod data_server;
mod getopt;
mod help;
pub mod netserver;
pub mod numbers;
pub mod options;
pub mod reply;
pub mod request;
pub mod serve;
pub mod server;
mod sockets;
mod watch;
pub mod wire;

/// What `-V` prints: the version whose behaviour this has.
pub const VERSION_LINE: &str = "Netperf version 2.7.0";
