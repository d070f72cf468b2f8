//! Moves bytes: traffic pattern x transport x send method, on pinned blocking threads.
//!
//! An [`Endpoint`] is one side of one trial. The peer listens, the dut connects; data connections prove themselves with
//! the trial's [`Token`]. Threads move bytes in plain blocking loops and count in cache lines of their own, which
//! [`Endpoint::snapshot`] reads without disturbing them. Nothing here measures CPU time of the machine or talks to
//! the other node except by the traffic itself.

pub mod bare;
mod call;
mod connect;
mod control;

pub mod echo;
mod endpoint;
mod error;
mod finish;
pub mod flow;
pub mod fuzz;
mod lane;
mod latency;
mod listen;
mod loss;
mod mover;
pub mod open_socket;
mod pace;
pub mod packet;
mod pattern;
mod place;
mod plan;
mod preamble;
mod result;
mod rr_pipeline;
mod side;
mod socket;
mod tcp_crr;
mod tcp_rr;
mod tcp_stream;
mod udp_door;
mod udp_handshake;
mod udp_rr;
mod udp_stream;
mod wake;
pub mod xdp;
mod zerocopy;

pub use control::Phase;
pub use endpoint::Endpoint;
pub use error::{Result, TrafficError};
pub use lane::Role;
pub use mover::{Mover, OpenProfile};
pub use result::{SideResult, Snapshot, StreamCount, StreamResult, ThreadInfo, ThreadResult};
pub use side::{Token, TrialSide};
