//! ttcp: a plain byte stream, or UDP with marker datagrams, in one direction, told in ttcp's own lines.
//!
//! There is no control connection: over TCP everything is payload and the end of the stream is the end of the test; over UDP a
//! datagram of at most 4 bytes is a marker. The syntax is SGI ttcp 1.12's, with the forks' options that do not clash.

mod marker;
mod options;
mod pattern;
mod report;
mod run;
mod serve;
mod sockets;

pub use marker::{Arrival, Markers, fuzz_decode};
pub use options::{Options, OptionsError, Unit};
pub use report::Tally;
pub use run::{Io, main};
pub use serve::{Ended, UdpTest, serve_connection, serve_udp};

/// TCP and UDP port where none is given.
pub const DEFAULT_PORT: u16 = 5001;
