//! netperf and netserver, 2.7.0 and newer.
//!
//! [`server::ServerSession`] and [`client::ClientSession`] are the two ends of a control connection without I/O;
//! [`serve::serve_connection`] and [`drive::Driver`] pump them and move the data. [`options`] reads the command line,
//! [`report`] prints netperf's layouts, [`run_client`] is the whole of `netperf`.

pub mod client;
pub mod reply;
pub mod request;
pub mod server;
pub mod wire;
