//! Exit codes: an interface that scripts rely on (design ruling 8).

/// How a linerate command ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ExitCode {
    /// Done and good.
    Good = 0,
    /// A failed case, or a verdict that `--fail-on` names.
    Failed = 1,
    /// The command line asks for something that cannot be.
    Usage = 2,
    /// A node or the network failed.
    Node = 3,
    /// A permission is missing.
    Permission = 4,
    /// Interrupted; what was measured until then is kept.
    Interrupted = 5,
}

impl From<ExitCode> for std::process::ExitCode {
    fn from(code: ExitCode) -> Self {
        Self::from(code as u8)
    }
}
