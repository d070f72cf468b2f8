//! Why a request could not be met, and what kind of refusal that is.

use linerate_link::LinkError;
use linerate_meter::MeterError;
use linerate_sys::SysError;
use linerate_traffic::packet::PacketError;

use crate::protocol::{Refusal, Reply};

pub(super) type Result<T> = std::result::Result<T, BenchError>;

/// Why a request could not be met.
#[derive(Debug, thiserror::Error)]
pub(super) enum BenchError {
    #[error(transparent)]
    Packet(#[from] PacketError),
    #[error(transparent)]
    System(#[from] SysError),
    #[error(transparent)]
    Meter(#[from] MeterError),
    #[error(transparent)]
    Link(#[from] LinkError),
    #[error("{operation} {path}: {cause}")]
    File { operation: &'static str, path: String, cause: std::io::Error },
    #[error("{what}: {why}")]
    Invalid { what: String, why: String },
}

impl BenchError {
    pub(super) fn invalid(what: impl Into<String>, why: impl Into<String>) -> Self {
        Self::Invalid { what: what.into(), why: why.into() }
    }

    fn kind(&self) -> Refusal {
        match self {
            Self::Invalid { .. }
            | Self::Packet(PacketError::Invalid { .. })
            | Self::Link(LinkError::Invalid { .. }) => return Refusal::Usage,
            // A flow or a socket whose parts do not fit together.
            Self::System(error) if error.raw_os_error() == Some(nix::libc::EINVAL) => return Refusal::Usage,
            Self::Link(error) if error.is_forbidden() => return Refusal::Permission,
            _ => {}
        }
        let errno = match self {
            Self::Packet(error) => error.raw_os_error(),
            Self::System(error) => error.raw_os_error(),
            Self::Meter(MeterError::System(error)) => error.raw_os_error(),
            Self::Meter(MeterError::Netlink(error)) => error.raw_os_error(),
            Self::File { cause, .. } => cause.raw_os_error(),
            _ => None,
        };
        match errno {
            Some(nix::libc::EPERM | nix::libc::EACCES) => Refusal::Permission,
            _ => Refusal::Network,
        }
    }

    pub(super) fn into_reply(self) -> Reply {
        Reply::Refused { kind: self.kind(), reason: self.to_string() }
    }
}
