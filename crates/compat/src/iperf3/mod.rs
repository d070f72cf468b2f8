//! iperf3: the protocol of versions 3.1 to the newest, both roles, and its command line and output.
//!
//! Control messages go through [`client_control`] and [`server_control`], which do no I/O; [`client`] and [`server`] pump
//! them, and move bytes on a thread a stream.

pub mod client_control;
pub mod error;
mod lenient;
pub mod params;
pub mod results;
pub mod server_control;
pub mod udp;
pub mod wire;

pub use server_control::fuzz_decode;
