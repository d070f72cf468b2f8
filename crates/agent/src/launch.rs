//! Starts, or reaches, an agent at each kind of place.

mod child;
mod ssh;
mod tcp;
pub mod vm;

use std::path::PathBuf;
use std::process::Command;
use std::time::Duration;

use linerate_model::NodeUrl;

use crate::auth::Secret;
use crate::node::{Node, NodeError, NodeFailure};

pub use child::Carrier;
pub(crate) use tcp::tune_control;

/// How long an agent on this machine may take to greet.
const LOCAL_LIMIT: Duration = Duration::from_secs(10);
/// How long one on another machine may take: name lookup, ssh with jump hosts, a prompt that somebody answers.
const REMOTE_LIMIT: Duration = Duration::from_secs(60);

/// What the user chose about reaching nodes.
#[derive(Debug, Clone, Default)]
pub struct LaunchOptions {
    /// The program that is this linerate; started again as the agent.
    pub program: PathBuf,
    /// Name or path of linerate on `ssh:` nodes; `None` is `linerate` in the remote `PATH`.
    pub remote_program: Option<String>,
    /// Copy this program to `ssh:` nodes first, and remove it afterwards.
    pub push: bool,
    /// Secret for `tcp:` nodes.
    pub secret: Option<Secret>,
    /// Extra words for ssh, before the destination (`-p 2222`, `-F FILE`).
    pub ssh_options: Vec<String>,
    /// Kernel of `vm:` nodes: a version that is here, or a folder; `None` is what the profile says, or the newest.
    pub kernel: Option<String>,
    /// The guests that were booted for `vm:` nodes with these options.
    pub guests: vm::Guests,
}

/// Connects to both nodes of a test, and lays the wire between them where one is a guest.
///
/// # Errors
/// As [`connect`]; also where no wire can join these two.
pub fn connect_pair(
    dut: &NodeUrl,
    peer: &NodeUrl,
    options: &LaunchOptions,
) -> Result<(Node, Node), NodeError> {
    match vm::connect_pair(dut, peer, options)? {
        Some(pair) => Ok(pair),
        None => Ok((connect(dut, options)?, connect(peer, options)?)),
    }
}

/// Connects to the agent of a node, starting it where it is ours to start.
///
/// # Errors
/// Where it can't be started, reached or greeted; with what it had to say.
pub fn connect(url: &NodeUrl, options: &LaunchOptions) -> Result<Node, NodeError> {
    match url {
        NodeUrl::Local => {
            let mut command = Command::new(&options.program);
            command.args(["agent", "--stdio"]);
            child::connect(url, command, false, LOCAL_LIMIT)
        }
        NodeUrl::Netns(name) => {
            let mut command = Command::new(&options.program);
            command.args(["agent", "--stdio", "--netns", name]);
            child::connect(url, command, false, LOCAL_LIMIT)
        }
        NodeUrl::Ssh(destination) => ssh::connect(url, destination, options),
        NodeUrl::Tcp { host, port } => tcp::connect(url, host, *port, options.secret.as_ref()),
        NodeUrl::Vm { profile, seat } => vm::connect(url, profile, *seat, options),
    }
}

fn unreachable(url: &NodeUrl, operation: &'static str, words: String) -> NodeError {
    NodeError { node: url.to_string(), operation, cause: NodeFailure::Unreachable(words) }
}
