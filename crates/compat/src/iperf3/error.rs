//! How a test fails.

use std::net::SocketAddr;

use linerate_sys::SysError;

use super::wire::ErrorCode;

/// The other side broke the protocol.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ProtocolError {
    /// A control byte that means nothing.
    #[error("control message {0:#04x} means nothing")]
    UnknownState(u8),
    /// A control message at the wrong moment.
    #[error("control message {byte:#04x} while {phase}")]
    Unexpected {
        /// The byte that came.
        byte: u8,
        /// What this side was doing.
        phase: &'static str,
    },
    /// A message above the limit.
    #[error("a message of {length} bytes, limit {limit}")]
    TooLong {
        /// Its length, bytes.
        length: usize,
        /// The limit, bytes.
        limit: usize,
    },
    /// A message that is no JSON, or lacks what it must have.
    #[error("{what}: {reason}")]
    Unreadable {
        /// Which message.
        what: &'static str,
        /// What is wrong with it.
        reason: String,
    },
}

/// A test that could not be run to its end.
#[derive(Debug, thiserror::Error)]
pub enum TestError {
    /// The other side broke the protocol.
    #[error("protocol broken by the other side: {0}")]
    Protocol(#[from] ProtocolError),
    /// The server runs another test, or knows no such test.
    #[error("the server is busy running a test; try again later")]
    AccessDenied,
    /// The server refused or ended the test.
    #[error("the server ended the test: {} (code {}{})", code.text(), code.0, errno_text(*errno))]
    Server {
        /// Its code.
        code: ErrorCode,
        /// The system's error number there, 0 for none.
        errno: i32,
    },
    /// This server refused or ended the test.
    #[error("{reason}")]
    Refused {
        /// What the client was told.
        code: ErrorCode,
        /// Why.
        reason: String,
    },
    /// The server was told to stop.
    #[error("the server has terminated")]
    ServerTerminated,
    /// The client was told to stop.
    #[error("the client has terminated")]
    ClientTerminated,
    /// This side was told to stop.
    #[error("interrupted")]
    Interrupted,
    /// The control connection is closed.
    #[error("control socket has closed unexpectedly")]
    ControlClosed,
    /// No answer in time.
    #[error("no {what} within {seconds} s")]
    Timeout {
        /// What was waited for.
        what: &'static str,
        /// How long.
        seconds: u64,
    },
    /// A stream's call failed.
    #[error("{operation} on stream to {remote}: {source}")]
    Stream {
        /// Which call.
        operation: &'static str,
        /// The far end.
        remote: SocketAddr,
        /// Why.
        source: std::io::Error,
    },
    /// The other side closed a stream before the test was over.
    #[error("stream to {remote} was closed before the end of the test")]
    StreamClosed {
        /// The far end.
        remote: SocketAddr,
    },
    /// No connection.
    #[error("unable to connect to server {host} port {port}: {source}")]
    Connect {
        /// The server.
        host: String,
        /// Its port.
        port: u16,
        /// Why.
        source: std::io::Error,
    },
    /// A system call failed.
    #[error(transparent)]
    Sys(#[from] SysError),
}

fn errno_text(errno: i32) -> String {
    if errno == 0 { String::new() } else { format!(", {}", std::io::Error::from_raw_os_error(errno)) }
}

impl TestError {
    /// What a client is told of it.
    pub fn code(&self) -> ErrorCode {
        match self {
            Self::Refused { code, .. } | Self::Server { code, .. } => *code,
            Self::Stream { operation: "send", .. } => ErrorCode::STREAM_WRITE,
            Self::Stream { .. } | Self::StreamClosed { .. } => ErrorCode::STREAM_READ,
            Self::Protocol(ProtocolError::UnknownState(_) | ProtocolError::Unexpected { .. }) => {
                ErrorCode::UNKNOWN_STATE
            }
            _ => ErrorCode::STREAM,
        }
    }

    /// The system's error number, 0 for none.
    pub fn errno(&self) -> i32 {
        match self {
            Self::Stream { source, .. } => source.raw_os_error().unwrap_or(0),
            Self::Sys(error) => error.raw_os_error().unwrap_or(0),
            _ => 0,
        }
    }
}
