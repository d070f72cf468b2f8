//! Where the suite runs: the command line, a topology file, the kernel selftests' names, or a private lab.

use std::collections::BTreeMap;
use std::net::IpAddr;

use linerate_agent::launch::LaunchOptions;
use linerate_lab::connect::Place;
use linerate_model::NodeUrl;
use linerate_qualify::connect::Ends;
use linerate_qualify::environment;
use linerate_qualify::topology::Topology;

use super::args::QualifyArgs;
use crate::failure::Failure;

/// File of the kernel selftests' names, in the working directory.
const CONFIG_FILE: &str = "net.config";

/// Where the suite runs.
pub(super) struct Where {
    pub(super) topology: Topology,
    /// Told by the kernel selftests' names: their exit codes apply.
    pub(super) as_selftest: bool,
}

/// Finds out.
pub(super) fn find(args: &QualifyArgs) -> Result<Where, Failure> {
    let nodes = &args.nodes;
    if let Some(path) = &nodes.topology {
        let text = std::fs::read_to_string(path)
            .map_err(|e| Failure::usage(format!("read {}: {e}", path.display())))?;
        let topology =
            Topology::parse(&text).map_err(|e| Failure::usage(format!("{}: {e}", path.display())))?;
        return Ok(Where { topology: told(topology, args), as_selftest: false });
    }
    let named = args.peer.is_some() || nodes.dut.is_some() || nodes.link.is_some();
    let selftest = if named { None } else { selftest()? };
    let as_selftest = selftest.is_some();
    let place = Where { topology: told(selftest.unwrap_or_default(), args), as_selftest };
    place.check(args)?;
    Ok(place)
}

/// What the kernel selftests' names tell; a file stands above the process's environment.
fn selftest() -> Result<Option<Topology>, Failure> {
    let from_process = environment::NAMES.iter().filter_map(|name| {
        let value = std::env::var(name).ok()?;
        Some(((*name).to_owned(), value))
    });
    let mut values: BTreeMap<String, String> = from_process.collect();
    match std::fs::read_to_string(CONFIG_FILE) {
        Ok(text) => values.extend(environment::parse_file(&text)),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => {}
        Err(error) => return Err(Failure::usage(format!("read {CONFIG_FILE}: {error}"))),
    }
    environment::read(&values).map_err(Failure::usage)
}

/// The command line stands above everything else.
fn told(mut topology: Topology, args: &QualifyArgs) -> Topology {
    let nodes = &args.nodes;
    topology.peer = args.peer.clone().or(topology.peer);
    topology.dut = nodes.dut.clone().or(topology.dut);
    topology.dut_link = nodes.link.clone().or(topology.dut_link);
    topology.peer_link = nodes.peer_link.clone().or(topology.peer_link);
    topology
}

impl Where {
    /// Without a partner and a link the suite makes itself a pair.
    pub(super) fn is_private(&self) -> bool {
        self.topology.peer.is_none() && self.topology.dut_link.is_none() && self.topology.dut.is_none()
            || (self.as_selftest && self.topology.peer.is_none() && self.topology.dut_link.is_none())
    }

    fn check(&self, args: &QualifyArgs) -> Result<(), Failure> {
        if self.topology.peer.is_none() && !self.is_private() {
            let why = "a link is named and no peer: linerate qualify PEER --link ..., or REMOTE_TYPE and REMOTE_ARGS";
            return Err(Failure::usage(why));
        }
        let given = [
            ("--peer-link", args.nodes.peer_link.is_some()),
            ("--push", args.nodes.push),
            ("--remote-program", args.nodes.remote_program.is_some()),
        ];
        match given.into_iter().find(|(_, given)| *given && self.is_private()) {
            Some((option, _)) => Err(Failure::usage(format!("{option} needs a PEER"))),
            None => Ok(()),
        }
    }

    /// The ends, and how they are reached.
    pub(super) fn ends(&self, args: &QualifyArgs, lab: Option<&Place>) -> Result<Ends, Failure> {
        let nodes = &args.nodes;
        let launch = LaunchOptions {
            program: std::env::current_exe()
                .map_err(|e| Failure::node(format!("find this program's own file: {e}")))?,
            remote_program: nodes.remote_program.clone(),
            push: nodes.push,
            ssh_options: nodes.ssh_option.clone(),
            kernel: nodes.kernel.clone(),
            ..LaunchOptions::default()
        };
        let own = self.topology.dut.clone().unwrap_or(NodeUrl::Local);
        let (dut, peer) = match (lab, &self.topology.peer) {
            (Some(lab), _) => {
                let (dut, peers) = lab.nodes();
                (dut, peers.into_iter().next().unwrap_or(own))
            }
            // One guest named alone is a whole bench: the NIC under test, and a partner at the other end of its wire.
            (None, Some(guest @ NodeUrl::Vm { .. })) if self.topology.dut.is_none() => {
                (guest.clone(), guest.other_seat().unwrap_or(own))
            }
            (None, Some(peer)) => (own, peer.clone()),
            (None, None) => return Err(Failure::usage("name a peer: linerate qualify PEER --link ...")),
        };
        Ok(Ends {
            dut,
            peer,
            dut_link: self.topology.dut_link.clone(),
            peer_link: self.topology.peer_link.clone(),
            launch,
            even_control_path: nodes.even_control_path,
            came_in_by: came_in_by(),
            v4: self.topology.v4,
            v6: self.topology.v6,
            medium: self.topology.medium.clone(),
        })
    }
}

/// This machine's address in `SSH_CONNECTION` (ssh(1)): client address and port, server address and port.
fn came_in_by() -> Vec<IpAddr> {
    let connection = std::env::var("SSH_CONNECTION").unwrap_or_default();
    connection.split_whitespace().nth(2).and_then(|address| address.parse().ok()).into_iter().collect()
}
