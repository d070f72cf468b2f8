//! netperf and netserver, 2.7.0 and newer.
//!
//! [`server::ServerSession`] and [`client::ClientSession`] are the two ends of a control connection without I/O;
//! [`serve::serve_connection`] and [`drive::Driver`] pump them and move the data. [`options::Options`] reads the command
//! line, [`run_client`] is the whole of `netperf`, [`netserver::ServerArgs`] that of `netserver`.

pub mod client;
mod confidence;
mod cpu;
mod data_client;
mod data_server;
pub mod drive;
mod figures;
mod getopt;
mod help;
pub mod netserver;
pub mod numbers;
mod omni_output;
pub mod options;
#[cfg(test)]
mod pair_tests;
mod record;
pub mod reply;
pub mod request;
mod run;
mod selectors;
pub mod serve;
pub mod server;
mod sockets;
mod table;
pub mod test_options;
mod watch;
pub mod wire;

pub use run::run_client;

/// What `-V` prints: the version whose behaviour this has.
pub const VERSION_LINE: &str = "Netperf version 2.7.0";
