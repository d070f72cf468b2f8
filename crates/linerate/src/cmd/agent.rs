//! `linerate agent`: what the controller starts on each node.

use std::net::IpAddr;

use linerate_agent::changes::NodeChanges;
use linerate_agent::session::{self, SessionOptions};
use linerate_compat::uperf::workload;
use linerate_model::exit::ExitCode;
use linerate_sys::netns::{self, NetnsError};
use nix::libc::EPERM;
use signal_hook::consts::{SIGHUP, SIGTERM};
use signal_hook::iterator::Signals;

use crate::cli::AgentArgs;
use crate::failure::Failure;

pub(crate) fn run(args: AgentArgs) -> Result<ExitCode, Failure> {
    if !args.stdio {
        return Err(Failure::usage("agent is started by linerate itself; it needs --stdio"));
    }
    if let Some(name) = &args.netns {
        enter(name)?;
    }
    let options = SessionOptions {
        reached_at: reached_at(),
        profiles: Some(workload::open),
        ..SessionOptions::default()
    };
    end_orderly(options.changes.clone())?;
    session::serve(std::io::stdin(), std::io::stdout(), &options).map_err(Failure::node)?;
    Ok(ExitCode::Good)
}

/// A signal that ends this agent has its settings put back first. Ctrl-C is not among them: the controller hears it, and
/// finishes what it can.
fn end_orderly(changes: NodeChanges) -> Result<(), Failure> {
    let failed = |error: std::io::Error| Failure::node(format!("handle signals: {error}"));
    let mut signals = Signals::new([SIGTERM, SIGHUP]).map_err(failed)?;
    let wait = move || {
        if signals.forever().next().is_some() {
            // What does not go back stays in the journal, and the next linerate here tells of it.
            let _ = changes.close();
            std::process::exit(ExitCode::Interrupted as i32);
        }
    };
    std::thread::Builder::new().name("signals".to_owned()).spawn(wait).map(drop).map_err(failed)
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
