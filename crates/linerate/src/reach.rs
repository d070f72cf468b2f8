//! How commands other than `run` reach one node.

use clap::Args;
use linerate_agent::launch::{self, LaunchOptions};
use linerate_agent::node::Node;
use linerate_model::NodeUrl;

use crate::failure::Failure;

#[derive(Debug, Args)]
#[command(next_help_heading = "Nodes")]
pub(crate) struct ReachArgs {
    /// Copy linerate to ssh: nodes first, and remove it afterwards.
    #[arg(long)]
    push: bool,
    /// Name or path of linerate on ssh: nodes.
    #[arg(long, value_name = "PATH", conflicts_with = "push")]
    remote_program: Option<String>,
    /// A word for ssh's own command line, as often as needed.
    #[arg(long, value_name = "WORD", allow_hyphen_values = true)]
    ssh_option: Vec<String>,
    /// Kernel of vm: nodes: a version that `linerate vm list` shows, or the folder of an unpacked package.
    #[arg(long, value_name = "KERNEL")]
    kernel: Option<String>,
}

impl ReachArgs {
    /// Connects to a node whose settings and links may be seen.
    pub(crate) fn connect(&self, url: &NodeUrl) -> Result<Node, Failure> {
        if !url.is_managed() {
            return Err(Failure::usage(format!("{url}: a tcp: node does traffic only; use ssh:")));
        }
        Ok(launch::connect(url, &self.options()?)?)
    }

    /// How nodes are to be reached.
    pub(crate) fn options(&self) -> Result<LaunchOptions, Failure> {
        let program = std::env::current_exe()
            .map_err(|e| Failure::node(format!("find this program's own file: {e}")))?;
        Ok(LaunchOptions {
            program,
            remote_program: self.remote_program.clone(),
            push: self.push,
            secret: None,
            ssh_options: self.ssh_option.clone(),
            kernel: self.kernel.clone(),
            ..LaunchOptions::default()
        })
    }
}

/// The link that is meant where none is named: the only one that is no loopback.
pub(crate) fn only_link(node: &mut Node) -> Result<String, Failure> {
    let links = node.links()?;
    let candidates: Vec<_> = links.iter().filter(|link| !link.loopback).collect();
    let up: Vec<_> = candidates.iter().filter(|link| link.up).collect();
    let names = || candidates.iter().map(|link| link.name.as_str()).collect::<Vec<_>>().join(", ");
    match (up.as_slice(), candidates.as_slice()) {
        ([one], _) => Ok(one.name.clone()),
        (_, [one]) => Ok(one.name.clone()),
        (_, []) => {
            Err(Failure::usage(format!("{} has no link but its loopback; name it with --link", node.url())))
        }
        _ => Err(Failure::usage(format!(
            "{} has several links: name one of {} with --link",
            node.url(),
            names()
        ))),
    }
}

/// Prints a result; that the reader has enough (`| head`) is no failure.
pub(crate) fn print(text: &str) -> Result<(), Failure> {
    use std::io::Write;
    let mut stdout = std::io::stdout().lock();
    match stdout.write_all(text.as_bytes()).and_then(|()| stdout.flush()) {
        Err(error) if error.kind() == std::io::ErrorKind::BrokenPipe => Ok(()),
        other => other.map_err(|e| Failure::node(format!("write to stdout: {e}"))),
    }
}

/// Prints a result as JSON.
pub(crate) fn print_json(value: &impl serde::Serialize) -> Result<(), Failure> {
    let text = serde_json::to_string_pretty(value).map_err(|e| Failure::node(format!("write JSON: {e}")))?;
    print(&(text + "\n"))
}
