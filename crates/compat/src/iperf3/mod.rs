//! iperf3: the protocol of versions 3.1 to the newest, both roles, and its command line and output.
//!
//! Control messages go through [`client_control`] and [`server_control`], which do no I/O; [`client`] and [`server`] pump
//! them, and move bytes on a thread a stream.

pub mod auth;
pub mod client;
pub mod client_control;
mod door;
pub mod error;
pub mod front;
mod getopt;
mod help;
pub mod json_report;
mod json_text;
mod lane;
mod lane_udp;
mod lenient;
pub mod limits;
pub mod options;
mod outcome;
mod pace;
pub mod params;
mod printer;
mod progress;
mod pump;
mod record;
pub mod report;
pub mod results;
pub mod server;
pub mod server_control;
mod session;
pub mod sockets;
pub mod text_report;
mod tos;
mod traffic;
pub mod udp;
pub mod units;
pub mod wire;

pub use server_control::fuzz_decode;
