//! How a command fails: what is said, and with which exit code it ends.

use std::fmt;

use linerate_agent::node::NodeError;
use linerate_lab::connect::ConnectError;
use linerate_lab::path::PathError;
use linerate_lab::runner::RunError;
use linerate_model::exit::ExitCode;

/// A command that could not do its work.
#[derive(Debug)]
pub(crate) struct Failure {
    code: ExitCode,
    message: String,
}

impl Failure {
    /// The command line asks for something that cannot be.
    pub(crate) fn usage(message: impl fmt::Display) -> Self {
        Self { code: ExitCode::Usage, message: message.to_string() }
    }

    /// A node, the network or this machine failed.
    pub(crate) fn node(message: impl fmt::Display) -> Self {
        Self { code: ExitCode::Node, message: message.to_string() }
    }

    /// A permission is missing.
    pub(crate) fn permission(message: impl fmt::Display) -> Self {
        Self { code: ExitCode::Permission, message: message.to_string() }
    }

    /// Adds what else failed.
    pub(crate) fn and(mut self, message: impl fmt::Display) -> Self {
        self.message = format!("{}; {message}", self.message);
        self
    }

    /// Says it on stderr; gives the exit code.
    pub(crate) fn tell(&self) -> ExitCode {
        eprintln!("linerate: {}", self.message);
        self.code
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl From<NodeError> for Failure {
    fn from(error: NodeError) -> Self {
        if error.is_permission() {
            Self::permission(error)
        } else if error.is_usage() {
            Self::usage(error)
        } else {
            Self::node(error)
        }
    }
}

impl From<PathError> for Failure {
    fn from(error: PathError) -> Self {
        match error {
            PathError::Node(error) => error.into(),
            other => Self::node(other),
        }
    }
}

impl From<RunError> for Failure {
    fn from(error: RunError) -> Self {
        match error {
            RunError::Node(error) => error.into(),
            RunError::Setting(error) => Self::usage(error),
            other => Self::node(other),
        }
    }
}

impl From<ConnectError> for Failure {
    fn from(error: ConnectError) -> Self {
        match error {
            ConnectError::Node(error) => error.into(),
            ConnectError::Path(error) => error.into(),
            ConnectError::DutIsServer(_) => Self::usage(error),
            other => Self::node(other),
        }
    }
}
