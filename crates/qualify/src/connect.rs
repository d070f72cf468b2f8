//! Brings both ends together: agents, links, addresses; refuses what must not be qualified.

mod find;

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use linerate_agent::launch::{self, LaunchOptions};
use linerate_agent::node::{Node, NodeError};
use linerate_agent::protocol::StaleOptions;
use linerate_model::NodeUrl;
use linerate_model::environment::LinkInfo;
use linerate_model::trial::Side;

use crate::bench::Bench;
use crate::case::Privilege;
use crate::privilege;
use crate::station::Station;
use crate::trouble::Trouble;
use crate::watch::Watch;

/// Which ends, and how to reach them.
#[derive(Debug, Clone)]
pub struct Ends {
    /// The node under test.
    pub dut: NodeUrl,
    /// Its partner.
    pub peer: NodeUrl,
    /// Link under test; the only one where none is named.
    pub dut_link: Option<String>,
    /// Link of the peer; found by probes where none is named.
    pub peer_link: Option<String>,
    /// How agents are started.
    pub launch: LaunchOptions,
    /// Takes the link also where the control path runs over it.
    pub even_control_path: bool,
    /// Addresses of this machine that somebody who started us came in by (`SSH_CONNECTION`).
    pub came_in_by: Vec<IpAddr>,
    /// IPv4 addresses of dut and peer, where they are told.
    pub v4: Option<(Ipv4Addr, Ipv4Addr)>,
    /// IPv6 addresses of dut and peer, where they are told.
    pub v6: Option<(Ipv6Addr, Ipv6Addr)>,
    /// What joins the ends, where it is known: `veth`, `hub`, `cable`, `switch`, `tap`, `injector`.
    pub medium: Option<String>,
}

/// Why the ends can't be brought together.
#[derive(Debug, thiserror::Error)]
pub enum ConnectError {
    /// A node failed.
    #[error(transparent)]
    Node(#[from] NodeError),
    /// A node refused something that joining needs.
    #[error("{0}")]
    Trouble(#[from] Trouble),
    /// A server does traffic only.
    #[error("{0}: a tcp: node does traffic only and can't be qualified with; use ssh:")]
    Stranger(NodeUrl),
    /// The link is not there.
    #[error("{node}: there is no link {link}; there are: {present}")]
    NoSuchLink {
        /// Node.
        node: String,
        /// Link.
        link: String,
        /// Links that are there.
        present: String,
    },
    /// No link is named, and it is not clear which is meant.
    #[error("{node}: name one of its links with {option}: {present}")]
    WhichLink {
        /// Node.
        node: String,
        /// `--link` or `--peer-link`.
        option: &'static str,
        /// Links that are there.
        present: String,
    },
    /// The link is down.
    #[error(
        "{node}: link {link} is {state}; set it up (ip link set {link} up) and check its cable or far end"
    )]
    Down {
        /// Node.
        node: String,
        /// Link.
        link: String,
        /// `down` or `without carrier`.
        state: &'static str,
    },
    /// Both ends are one link.
    #[error("dut and peer are the same link ({0}); a qualification needs two ends")]
    SameLink(String),
    /// The link is what the nodes are reached over.
    #[error(
        "{node}: {link} is the control path ({why}); cases would cut it. Choose another link, or say --even-control-path"
    )]
    ControlPath {
        /// Node.
        node: String,
        /// Link.
        link: String,
        /// How that is known.
        why: String,
    },
    /// Nothing that the dut sends arrives.
    #[error("{dut}: probes sent on {link} arrive on no link of {peer} ({tried}): the link has no peer there")]
    NoPeer {
        /// The dut.
        dut: String,
        /// Its link.
        link: String,
        /// The peer.
        peer: String,
        /// Links that were listened on.
        tried: String,
    },
    /// An agent may not do what every case needs.
    #[error(
        "{0}: its agent may not open packet sockets; run it as root, or give it CAP_NET_RAW and CAP_NET_ADMIN"
    )]
    NoPrivilege(String),
}

/// Both ends, joined.
#[derive(Debug)]
pub struct Joined {
    dut: Station,
    peer: Station,
    medium: String,
}

/// Connects both nodes, chooses and checks their links.
///
/// # Errors
/// Where a node can't be reached, or the links can't, or must not, be qualified.
pub fn connect(ends: &Ends, stop: &Arc<AtomicBool>) -> Result<Joined, ConnectError> {
    for url in [&ends.dut, &ends.peer] {
        if !url.is_managed() {
            return Err(ConnectError::Stranger(url.clone()));
        }
    }
    let (mut dut, mut peer) = launch::connect_pair(&ends.dut, &ends.peer, &ends.launch)?;
    for node in [&mut dut, &mut peer] {
        node.restore_stale(StaleOptions::default())?;
    }
    let dut_link = find::named_or_only(&mut dut, ends.dut_link.as_deref(), "--link")?;
    if !ends.even_control_path {
        check_control_path(&mut dut, &dut_link.name, peer.reached_at(), &ends.came_in_by)?;
    }
    let named = ends.peer_link.as_deref();
    let same_place = same_place(&mut dut, &mut peer)?;
    if same_place && named == Some(dut_link.name.as_str()) {
        return Err(ConnectError::SameLink(dut_link.name));
    }
    let watch = Watch::new(Arc::clone(stop));
    let mut dut = station(Side::Dut, dut, dut_link, &watch)?;
    let candidates = find::candidates(&mut peer, named, same_place.then_some(dut.facts.index))?;
    let peer_link = find::by_probes(&mut dut, &mut peer, &candidates)?;
    if !ends.even_control_path {
        check_control_path(&mut peer, &peer_link.name, dut.node.reached_at(), &ends.came_in_by)?;
    }
    let mut peer = station(Side::Peer, peer, peer_link, &watch)?;
    find::addresses(&mut dut, &mut peer, ends);
    let medium =
        ends.medium.clone().unwrap_or_else(|| if dut.is_veth() { "veth" } else { "unknown" }.to_owned());
    Ok(Joined { dut, peer, medium })
}

fn station(side: Side, mut node: Node, link: LinkInfo, watch: &Watch) -> Result<Station, ConnectError> {
    // In full: with its driver.
    let link = node.environment(Some(&link.name))?.link.unwrap_or(link);
    let mut station = Station::new(side, node, link, watch.clone());
    station.privilege = privilege::of(&mut station)?;
    if station.privilege < Privilege::Raw {
        return Err(ConnectError::NoPrivilege(station.node.url().to_string()));
    }
    Ok(station)
}

/// Whether both nodes are in one network namespace: same machine, same links.
fn same_place(dut: &mut Node, peer: &mut Node) -> Result<bool, ConnectError> {
    if dut.url() == peer.url() {
        return Ok(true);
    }
    let (here, there) = (dut.environment(None)?, peer.environment(None)?);
    if here.boot_id != there.boot_id {
        return Ok(false);
    }
    let ids = |links: Vec<LinkInfo>| links.into_iter().map(|l| (l.index, l.name, l.mac)).collect::<Vec<_>>();
    let (here, there) = (ids(dut.links()?), ids(peer.links()?));
    // Two namespaces that have nothing but their loopback look the same.
    Ok(here == there && here.len() > 1)
}

/// A link that the node itself is reached over, or that leads to the controller, must not be qualified.
fn check_control_path(
    node: &mut Node,
    link: &str,
    other_at: Option<IpAddr>,
    came_in_by: &[IpAddr],
) -> Result<(), ConnectError> {
    let refuse = |node: &Node, why: String| {
        Err(ConnectError::ControlPath { node: node.url().to_string(), link: link.to_owned(), why })
    };
    let has = |links: &[LinkInfo], address: IpAddr| {
        links.iter().any(|l| l.name == link && l.addresses.iter().any(|a| a.address == address))
    };
    let links = node.links()?;
    match node.url().clone() {
        NodeUrl::Ssh(_) => {
            if let Some(address) = node.reached_at().filter(|address| has(&links, *address)) {
                return refuse(node, format!("its agent is reached at {address}"));
            }
        }
        NodeUrl::Local => {
            if let Some(address) = came_in_by.iter().find(|address| has(&links, **address)) {
                return refuse(node, format!("you came in by {address}"));
            }
            if let Some(address) = other_at
                && let Ok(route) = node.route(address)
                && route.link == link
            {
                return refuse(node, format!("the other node is reached over it at {address}"));
            }
        }
        _ => return Ok(()),
    }
    // An address of documentation (RFC 5737): where everything unknown goes.
    let anywhere = IpAddr::from([192, 0, 2, 1]);
    match node.route(anywhere) {
        Ok(route) if route.link == link => refuse(node, "its default route goes over it".to_owned()),
        _ => Ok(()),
    }
}

impl Joined {
    /// Node and link of both ends, for locks.
    pub(crate) fn names(&self) -> Vec<String> {
        // A guest is the run's own: another run of the same profile boots another.
        let shared = [&self.dut, &self.peer].into_iter().filter(|station| station.node.machine().is_none());
        shared.map(|station| format!("{} {}", station.node.url(), station.link())).collect()
    }

    /// Dut's and peer's links, for a headline: `netns:a eth0 (veth)`.
    pub fn headline(&self) -> String {
        let end = |station: &Station| {
            let driver = if station.driver().is_empty() { "unknown driver" } else { station.driver() };
            format!("{} {} ({driver})", station.node.url(), station.link())
        };
        format!("{} to {}", end(&self.dut), end(&self.peer))
    }

    pub(crate) fn bench(self, seed: u64, run: u64) -> Bench {
        let watch = self.dut.watch.clone();
        let mut bench = Bench::new(self.dut, self.peer, watch, seed, run);
        bench.medium = self.medium;
        bench
    }
}
