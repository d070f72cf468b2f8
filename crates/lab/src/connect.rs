//! The two nodes of a test, with the ways between them.

use linerate_agent::launch::{self, LaunchOptions};
use linerate_agent::node::{Node, NodeError};
use linerate_agent::protocol::StaleOptions;
use linerate_link::{LabOptions, LinkError, PrivateLab};
use linerate_model::NodeUrl;
use linerate_model::hazard::{Hazard, HazardKind};
use linerate_model::trial::{Family, Side};
use linerate_sys::netns;

use crate::path::{self, LinksOfBoth, Path, PathChoice, PathError};
use crate::runner::Bench;

/// Which nodes, and how to reach them.
#[derive(Debug, Clone)]
pub struct Nodes {
    /// The node under test.
    pub dut: NodeUrl,
    /// Its partner.
    pub peer: NodeUrl,
    /// Links that the user named.
    pub links: PathChoice,
    /// How agents are started.
    pub launch: LaunchOptions,
}

/// Why the nodes could not be brought together.
#[derive(Debug, thiserror::Error)]
pub enum ConnectError {
    /// A node failed.
    #[error(transparent)]
    Node(#[from] NodeError),
    /// There is no way between them.
    #[error(transparent)]
    Path(#[from] PathError),
    /// A server was named as the dut.
    #[error("--dut {0}: a tcp: node only listens; make it the peer, and run linerate on the node under test")]
    DutIsServer(NodeUrl),
    /// The private lab could not be built.
    #[error("build the private lab: {0}")]
    Lab(#[from] LinkError),
}

/// Which IP versions are wanted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Families {
    /// These, and an error where one has no way.
    All(Vec<Family>),
    /// Those of IPv4 and IPv6 that have a way; at least one.
    Usable,
    /// The likeliest that has a way: IPv4, or IPv6 where the peer was reached by it.
    First,
}

/// Connects both nodes and finds the ways between them. Hazards tell of IP versions that have none.
///
/// # Errors
/// Where a node can't be reached, or there is no way.
pub fn connect(nodes: &Nodes, families: &Families) -> Result<(Bench, Vec<Hazard>), ConnectError> {
    if !nodes.dut.is_managed() {
        return Err(ConnectError::DutIsServer(nodes.dut.clone()));
    }
    let (mut dut, mut peer) = launch::connect_pair(&nodes.dut, &nodes.peer, &nodes.launch)?;
    let mut left_behind = Vec::new();
    for (side, node) in [(Side::Dut, &mut dut), (Side::Peer, &mut peer)] {
        if !node.is_traffic_only() {
            left_behind
                .extend(node.restore_stale(StaleOptions::default())?.into_iter().map(|one| (side, one)));
        }
    }
    let links = LinksOfBoth::ask(&mut dut, &mut peer, &nodes.links)?;
    let (wanted, all_needed) = match families {
        Families::All(list) => (list.clone(), true),
        Families::Usable => (vec![Family::V4, Family::V6], false),
        Families::First => (likeliest_first(&peer), false),
    };
    let (mut paths, mut missing): (Vec<Path>, Vec<PathError>) = (Vec::new(), Vec::new());
    for family in wanted {
        match path::find(&mut dut, &mut peer, &links, &nodes.links, family) {
            Ok(path) => paths.push(path),
            Err(error) if all_needed || matches!(error, PathError::Node(_)) => return Err(error.into()),
            Err(error) => missing.push(error),
        }
        if *families == Families::First && !paths.is_empty() {
            break;
        }
    }
    if paths.is_empty() {
        if let Some(error) = missing.into_iter().next() {
            return Err(error.into());
        }
        missing = Vec::new();
    }
    let not_covered = |error: &PathError| Hazard {
        kind: HazardKind::Unavailable,
        side: None,
        evidence: error.to_string(),
        cure: "this IP version is left out".to_owned(),
    };
    let hazards =
        if *families == Families::Usable { missing.iter().map(not_covered).collect() } else { Vec::new() };
    Ok((Bench { dut, peer, paths, left_behind }, hazards))
}

/// IPv4 before IPv6, unless the peer was named by an IPv6 address or reached at one.
fn likeliest_first(peer: &Node) -> Vec<Family> {
    let reached_by_ipv6 = peer.reached_at().is_some_and(|address| address.is_ipv6());
    if reached_by_ipv6 { vec![Family::V6, Family::V4] } else { vec![Family::V4, Family::V6] }
}

/// Where a test without a named peer runs.
#[derive(Debug)]
pub enum Place {
    /// In a private lab.
    Lab(PrivateLab),
    /// Over loopback, since no lab could be built; with the reason.
    Loopback(String),
}

impl Place {
    /// Builds a private lab: directly where this process may, else inside a user namespace, else not at all. What
    /// earlier runs left behind is removed first. Must be called before the process has a second thread.
    ///
    /// # Errors
    /// Where building failed for another reason than a missing permission.
    pub fn private() -> Result<Self, ConnectError> {
        match build() {
            Ok(lab) => return Ok(Self::Lab(lab)),
            Err(error) if error.is_forbidden() => {}
            Err(error) => return Err(error.into()),
        }
        if let Err(error) = netns::unshare_user_root() {
            return Ok(Self::Loopback(error.to_string()));
        }
        Ok(Self::Lab(build()?))
    }

    /// The dut and the peer there.
    pub fn nodes(&self) -> (NodeUrl, NodeUrl) {
        match self {
            Self::Lab(lab) => {
                (NodeUrl::Netns(lab.dut().netns.clone()), NodeUrl::Netns(lab.peer().netns.clone()))
            }
            Self::Loopback(_) => (NodeUrl::Local, NodeUrl::Local),
        }
    }

    /// What to distrust for it.
    pub fn hazard(&self) -> Option<Hazard> {
        let Self::Loopback(reason) = self else { return None };
        Some(Hazard {
            kind: HazardKind::LoopbackInsteadOfLab,
            side: None,
            evidence: format!("ran over loopback, since no private lab could be built: {reason}"),
            cure: "run as root, or allow user namespaces (sysctl user.max_user_namespaces)".to_owned(),
        })
    }
}

fn build() -> Result<PrivateLab, LinkError> {
    PrivateLab::sweep_stale()?;
    PrivateLab::create(LabOptions::default())
}
