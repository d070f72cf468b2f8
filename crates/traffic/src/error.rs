//! What can go wrong while bytes move: each names the operation, its object and the cause.

use std::io;
use std::net::SocketAddr;

use linerate_sys::SysError;

/// Result of a call into this crate.
pub type Result<T> = std::result::Result<T, TrafficError>;

/// Why traffic could not be set up, or ended early.
#[derive(Debug, thiserror::Error)]
pub enum TrafficError {
    /// A socket could not be made or did not take an option, or a thread could not be pinned.
    #[error(transparent)]
    Setup(#[from] SysError),
    /// The peer refused, or the network did.
    #[error("connect to {address}: {source}")]
    Connect {
        /// Where to.
        address: SocketAddr,
        /// What the kernel said.
        source: io::Error,
    },
    /// Nothing came back; not even a refusal.
    #[error(
        "connect to {address}: no answer within {seconds} s (a firewall that drops, or the peer is gone)"
    )]
    NoAnswer {
        /// Where to.
        address: SocketAddr,
        /// How long was waited.
        seconds: u64,
    },
    /// The server does not have a port for each stream.
    #[error("the peer offers {given} ports where {needed} are needed")]
    Ports {
        /// Ports that the peer named.
        given: usize,
        /// Ports that the trial needs.
        needed: usize,
    },
    /// Not all streams proved themselves in time.
    #[error("{missing} of {needed} connections did not arrive within {seconds} s")]
    NotReady {
        /// Connections missing.
        missing: usize,
        /// Connections needed.
        needed: usize,
        /// How long was waited.
        seconds: u64,
    },
    /// A stream failed in the middle.
    #[error("{operation} on stream {stream} with {remote}: {source}")]
    Stream {
        /// Its number, from 0.
        stream: u32,
        /// The other end.
        remote: SocketAddr,
        /// What was attempted ("send", "receive", "connect").
        operation: &'static str,
        /// What the kernel said.
        source: io::Error,
    },
    /// The other end closed a stream before the trial was over.
    #[error(
        "stream {stream}: {remote} closed the connection after {bytes} bytes, before the end of the trial"
    )]
    PeerClosed {
        /// Its number, from 0.
        stream: u32,
        /// The other end.
        remote: SocketAddr,
        /// Payload bytes that had arrived.
        bytes: u64,
    },
    /// The endpoint was stopped before it had started.
    #[error("stopped before the start")]
    Stopped,
    /// A stream has failed; the text of its error.
    #[error("{0}")]
    Failed(String),
}
