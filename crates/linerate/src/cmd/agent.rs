//! `linerate agent`: what the controller starts on each node.

use std::net::IpAddr;

use linerate_agent::session::{self, SessionOptions};
use linerate_model::exit::ExitCode;
use linerate_sys::netns::{self, NetnsError};
use nix::libc::EPERM;

use crate::cli::AgentArgs;
use crate::failure::Failure;

pub(crate) fn run(args: AgentArgs) -> Result<ExitCode, Failure> {
    if !args.stdio {
        return Err(Failure::usage("agent is started by linerate itself; it needs --stdio"));
    }
    if let Some(name) = &args.netns {
        enter(name)?;
    }
    let options = SessionOptions { reached_at: reached_at(), ..SessionOptions::default() };
    session::serve(std::io::stdin(), std::io::stdout(), &options).map_err(Failure::node)?;
    Ok(ExitCode::Good)
}

fn enter(name: &str) -> Result<(), Failure> {
    match netns::enter_process(name) {
        Ok(_hidden_mounts) => Ok(()),
        Err(NetnsError::System(error)) if error.raw_os_error() == Some(EPERM) => {
            Err(Failure::permission(error))
        }
        Err(error) => Err(Failure::node(error)),
    }
}

/// The address at which ssh reached this machine: the third word of `SSH_CONNECTION` (ssh(1)).
fn reached_at() -> Option<IpAddr> {
    let connection = std::env::var("SSH_CONNECTION").ok()?;
    let address = connection.split(' ').nth(2)?;
    // A link-local address carries its interface: `fe80::1%eth0`.
    address.split('%').next()?.parse().ok()
}
