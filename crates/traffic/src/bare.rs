//! Loops over sockets that are already connected, for protocols that do their own talking.
//!
//! A [`Running`] is one loop on a thread of its own. Loop and owner share a [`Tally`]: the stop flag, and counters that may
//! be read at any time without disturbing the loop. The loops proper are plain functions over a [`Tally`] and a socket, so
//! a protocol may also string them, or [`send_whole`] and [`recv_whole`], together in work of its own.
//!
//! Nothing here adds a byte to what is sent, shuts a connection down or closes it: that belongs to the protocol.
//! A blocked call looks at the stop flag every [`TICK`] ([`Running::start`] sets the socket's timeouts to it).
//!
//! ```
//! use std::sync::Arc;
//! use std::time::Duration;
//! use linerate_traffic::bare::{Buffer, Running, SendPlan, receive_stream, send_stream};
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let listener = std::net::TcpListener::bind("127.0.0.1:0")?;
//! let near = Arc::new(std::net::TcpStream::connect(listener.local_addr()?)?.into());
//! let far = Arc::new(listener.accept()?.0.into());
//! let plan = SendPlan { size: 1024, total_bytes: Some(1 << 20), ..SendPlan::default() };
//! let sender = Running::start("send", &near, None, move |tally, socket| {
//!     send_stream(tally, socket, &Buffer::repeated(1024, b"pattern"), &plan, None)
//! })?;
//! let receiver = Running::start("receive", &far, None, |tally, socket| {
//!     receive_stream(tally, socket, 65536, Some(1 << 20), None)
//! })?;
//! assert!(receiver.wait(Duration::from_secs(10)));
//! assert_eq!(receiver.finish().count.received.bytes, 1 << 20);
//! # sender.finish(); Ok(()) }
//! ```

mod datagram;
mod pacer;
mod rr;
mod running;
mod stream;
mod tally;

pub use datagram::{
    DatagramAsk, DatagramPlan, Took, adopt_peer, answer_datagrams, ask_datagrams, receive_datagrams,
    send_datagrams,
};
pub use pacer::{Pace, Pacer};
pub use rr::{AskPlan, answer, ask};
pub use running::{Finished, Running, TICK};
pub use stream::{SendPlan, receive_stream, recv_some, recv_whole, send_stream, send_whole};
pub use tally::{Buffer, Count, Latencies, Tally};

use std::io;

/// How a loop ended when nothing failed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum End {
    /// All that was asked is done.
    Done,
    /// The stop flag was seen.
    Stopped,
    /// The other end closed its way (TCP), or said by its own sign that no more will come (UDP).
    Closed,
}

/// A call on a data socket that failed.
#[derive(Debug, thiserror::Error)]
#[error("{operation}: {source}")]
pub struct MoveError {
    /// What was attempted ("send", "receive response").
    pub operation: &'static str,
    /// What the kernel said.
    pub source: io::Error,
}

impl MoveError {
    /// The error of a failed `operation`.
    pub fn new(operation: &'static str, source: impl Into<io::Error>) -> Self {
        Self { operation, source: source.into() }
    }
}

/// Result of a loop.
pub type Result<T> = std::result::Result<T, MoveError>;

#[cfg(test)]
mod tests;
