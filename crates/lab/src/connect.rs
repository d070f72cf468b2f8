//! The two nodes of a test, with the ways between them.

use linerate_agent::launch::{self, LaunchOptions};
use linerate_agent::node::{Node, NodeError};
use linerate_agent::protocol::StaleOptions;
use linerate_link::{LabOptions, LinkError, PrivateLab};
use linerate_model::NodeUrl;
use linerate_model::hazard::{Hazard, HazardKind};
use linerate_model::trial::{Family, Side};
use linerate_sys::netns;

use crate::bench::{Bench, Pair};
use crate::path::{self, LinksOfBoth, PathChoice, PathError};

/// Which nodes, and how to reach them.
#[derive(Debug, Clone)]
pub struct Nodes {
    /// The node under test.
    pub dut: NodeUrl,
    /// Its partners, at least one; a node may be named several times.
    pub peers: Vec<NodeUrl>,
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
    /// The peers are reached over different links, of which one alone can be under test.
    #[error("{first} is reached over the dut's link {link}, {other} over {its}: name peers behind one link")]
    SeveralLinks {
        /// The first peer.
        first: String,
        /// The dut's link towards it.
        link: String,
        /// Another peer.
        other: String,
        /// The dut's link towards that.
        its: String,
    },
    /// A guest with several peers.
    #[error("{0}: a guest has one peer, the guest at the other end of its wire")]
    GuestsComeInPairs(NodeUrl),
    /// No peer is named.
    #[error("no peer is named")]
    NoPeer,
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

/// Connects all nodes and finds the ways between the dut and each peer. Hazards tell of IP versions that have none.
///
/// # Errors
/// Where a node can't be reached, or there is no way.
pub fn connect(nodes: &Nodes, families: &Families) -> Result<(Bench, Vec<Hazard>), ConnectError> {
    if !nodes.dut.is_managed() {
        return Err(ConnectError::DutIsServer(nodes.dut.clone()));
    }
    let guest = |url: &&NodeUrl| matches!(url, NodeUrl::Vm { .. });
    if nodes.peers.len() > 1
        && let Some(guest) = nodes.peers.iter().chain([&nodes.dut]).find(guest)
    {
        return Err(ConnectError::GuestsComeInPairs(guest.clone()));
    }
    let mut pairs = Vec::new();
    let mut left_behind = Vec::new();
    for url in &nodes.peers {
        let (mut dut, mut peer) = launch::connect_pair(&nodes.dut, url, &nodes.launch)?;
        for (side, node) in [(Side::Dut, &mut dut), (Side::Peer, &mut peer)] {
            let asked = side == Side::Dut && !pairs.is_empty();
            if !node.is_traffic_only() && !asked {
                left_behind
                    .extend(node.restore_stale(StaleOptions::default())?.into_iter().map(|one| (side, one)));
            }
        }
        let links = LinksOfBoth::ask(&mut dut, &mut peer, &nodes.links)?;
        pairs.push((Pair { dut, peer, paths: Vec::new() }, links));
    }
    let Some((first, _)) = pairs.first() else { return Err(ConnectError::NoPeer) };
    let (wanted, all_needed) = match families {
        Families::All(list) => (list.clone(), true),
        Families::Usable => (vec![Family::V4, Family::V6], false),
        Families::First => (likeliest_first(&first.peer), false),
    };
    let mut missing: Vec<PathError> = Vec::new();
    let mut found = false;
    for family in wanted {
        match find_for_all(&mut pairs, &nodes.links, family) {
            Ok(()) => found = true,
            Err(error) if all_needed || matches!(error, PathError::Node(_)) => return Err(error.into()),
            Err(error) => missing.push(error),
        }
        if *families == Families::First && found {
            break;
        }
    }
    if !found && !missing.is_empty() {
        return Err(missing.remove(0).into());
    }
    let mut pairs = pairs.into_iter().map(|(pair, _)| pair);
    let Some(first) = pairs.next() else { return Err(ConnectError::NoPeer) };
    let further: Vec<Pair> = pairs.collect();
    further.iter().try_for_each(|other| check_same_link(&first, other))?;
    let not_covered = |error: &PathError| Hazard {
        kind: HazardKind::Unavailable,
        side: None,
        evidence: error.to_string(),
        cure: "this IP version is left out".to_owned(),
    };
    let hazards =
        if *families == Families::Usable { missing.iter().map(not_covered).collect() } else { Vec::new() };
    Ok((Bench { first, further, others: Vec::new(), left_behind }, hazards))
}

/// Finds the way between each pair for one IP version, and notes it; either for all pairs or for none.
fn find_for_all(
    pairs: &mut [(Pair, LinksOfBoth)],
    choice: &PathChoice,
    family: Family,
) -> Result<(), PathError> {
    let mut paths = Vec::new();
    for (pair, links) in pairs.iter_mut() {
        paths.push(path::find(&mut pair.dut, &mut pair.peer, links, choice, family)?);
    }
    for ((pair, _), path) in pairs.iter_mut().zip(paths) {
        pair.paths.push(path);
    }
    Ok(())
}

/// One link of the dut is under test: what its counters and settings are of.
fn check_same_link(first: &Pair, other: &Pair) -> Result<(), ConnectError> {
    let name = |path: &path::Path| path.dut.link.as_ref().map(|l| l.name.clone());
    for (path, its) in first.paths.iter().zip(&other.paths) {
        if let (Some(link), Some(its)) = (name(path), name(its))
            && link != its
        {
            let [first, other] = [first, other].map(|pair| pair.peer.url().to_string());
            return Err(ConnectError::SeveralLinks { first, link, other, its });
        }
    }
    Ok(())
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
    /// Over loopback, since no lab could be built.
    Loopback {
        /// Why not.
        reason: String,
        /// How many peers there are all the same, on this machine.
        peers: u32,
    },
}

impl Place {
    /// Builds a private lab with so many peers: directly where this process may, else inside a user namespace, else not at all. What
    /// earlier runs left behind is removed first. Must be called before the process has a second thread.
    ///
    /// # Errors
    /// Where building failed for another reason than a missing permission.
    pub fn private(peers: u32) -> Result<Self, ConnectError> {
        match build(peers) {
            Ok(lab) => return Ok(Self::Lab(lab)),
            Err(error) if error.is_forbidden() => {}
            Err(error) => return Err(error.into()),
        }
        if let Err(error) = netns::unshare_user_root() {
            return Ok(Self::Loopback { reason: error.to_string(), peers });
        }
        Ok(Self::Lab(build(peers)?))
    }

    /// The dut and the peers there.
    pub fn nodes(&self) -> (NodeUrl, Vec<NodeUrl>) {
        match self {
            Self::Lab(lab) => {
                let peers = lab.peers().iter().map(|peer| NodeUrl::Netns(peer.netns.clone()));
                (NodeUrl::Netns(lab.dut().netns.clone()), peers.collect())
            }
            Self::Loopback { peers, .. } => (NodeUrl::Local, vec![NodeUrl::Local; *peers as usize]),
        }
    }

    /// What to distrust for it.
    pub fn hazard(&self) -> Option<Hazard> {
        let Self::Loopback { reason, .. } = self else { return None };
        Some(Hazard {
            kind: HazardKind::LoopbackInsteadOfLab,
            side: None,
            evidence: format!("ran over loopback, since no private lab could be built: {reason}"),
            cure: "run as root, or allow user namespaces (sysctl user.max_user_namespaces)".to_owned(),
        })
    }
}

fn build(peers: u32) -> Result<PrivateLab, LinkError> {
    PrivateLab::sweep_stale()?;
    PrivateLab::create(LabOptions { further_peers: peers.saturating_sub(1), ..LabOptions::default() })
}
