//! Which links and addresses the traffic takes: from the link under test, or from the route to the peer.

use std::net::IpAddr;

use linerate_agent::node::{Node, NodeError};
use linerate_model::environment::LinkInfo;
use linerate_model::experiment::PathFacts;
use linerate_model::trial::{Family, Side};

/// The way that data takes for one IP version.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Path {
    /// IP version.
    pub family: Family,
    /// The dut's end.
    pub dut: PathEnd,
    /// The peer's end.
    pub peer: PathEnd,
}

/// One end of a path.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PathEnd {
    /// Link that has the address, where it is known.
    pub link: Option<LinkInfo>,
    /// Test address.
    pub address: IpAddr,
    /// Interface index that a link-local address goes with; 0 for any other.
    pub scope_id: u32,
}

/// What the user chose.
#[derive(Debug, Clone, Default)]
pub struct PathChoice {
    /// Link under test on the dut.
    pub dut_link: Option<String>,
    /// Link on the peer.
    pub peer_link: Option<String>,
}

/// Why there is no way between the nodes.
#[derive(Debug, thiserror::Error)]
pub enum PathError {
    /// A node failed.
    #[error(transparent)]
    Node(#[from] NodeError),
    /// The link that was named is not there.
    #[error("{node}: there is no link {link}; there are: {present}")]
    NoSuchLink {
        /// Which node.
        node: String,
        /// The link.
        link: String,
        /// Links that are there.
        present: String,
    },
    /// The link that was named can't carry traffic.
    #[error(
        "{node}: link {link} is {state}; set it up (ip link set {link} up) and check its cable or far end"
    )]
    LinkDown {
        /// Which node.
        node: String,
        /// The link.
        link: String,
        /// `down` or `without carrier`.
        state: &'static str,
    },
    /// No usable address.
    #[error("{node}: {place} has no usable {family} address")]
    NoAddress {
        /// Which node.
        node: String,
        /// The link, or all of them.
        place: String,
        /// `IPv4` or `IPv6`.
        family: &'static str,
    },
    /// No route, or one over another link.
    #[error("{node}: no {family} way to {peer}: {reasons}")]
    NoRoute {
        /// The dut.
        node: String,
        /// The peer.
        peer: String,
        /// `IPv4` or `IPv6`.
        family: &'static str,
        /// What was found for each address tried.
        reasons: String,
    },
}

impl Path {
    /// What a plan needs to know of it.
    pub fn facts(&self) -> PathFacts {
        let mtu = |end: &PathEnd| end.link.as_ref().map_or(1500, |l| l.mtu);
        PathFacts { family: self.family, mtu_bytes: mtu(&self.dut).min(mtu(&self.peer)) }
    }

    /// The end of one side.
    pub fn end(&self, side: Side) -> &PathEnd {
        match side {
            Side::Dut => &self.dut,
            Side::Peer => &self.peer,
        }
    }
}

/// Name of an IP version.
pub fn family_name(family: Family) -> &'static str {
    match family {
        Family::V4 => "IPv4",
        Family::V6 => "IPv6",
    }
}

/// The links of both nodes, asked for once and used for each IP version.
#[derive(Debug)]
pub struct LinksOfBoth {
    dut: Vec<LinkInfo>,
    peer: Vec<LinkInfo>,
}

impl LinksOfBoth {
    /// Asks both nodes.
    ///
    /// # Errors
    /// Where a node fails, or a link that was named is missing or down.
    pub fn ask(dut: &mut Node, peer: &mut Node, choice: &PathChoice) -> Result<Self, PathError> {
        let links = Self { dut: dut.links()?, peer: peer.links()? };
        check_named(dut, &links.dut, choice.dut_link.as_deref())?;
        check_named(peer, &links.peer, choice.peer_link.as_deref())?;
        Ok(links)
    }
}

fn check_named(node: &Node, links: &[LinkInfo], name: Option<&str>) -> Result<(), PathError> {
    let Some(name) = name else { return Ok(()) };
    let down = |state| PathError::LinkDown { node: node.url().to_string(), link: name.to_owned(), state };
    match links.iter().find(|l| l.name == name) {
        None => Err(PathError::NoSuchLink {
            node: node.url().to_string(),
            link: name.to_owned(),
            present: links.iter().map(|l| l.name.as_str()).collect::<Vec<_>>().join(", "),
        }),
        Some(link) if !link.up => Err(down("down")),
        Some(link) if !link.carrier => Err(down("without carrier")),
        Some(_) => Ok(()),
    }
}

/// Finds the way between two nodes for one IP version.
///
/// # Errors
/// Where there is none; with what was found for each address tried.
pub fn find(
    dut: &mut Node,
    peer: &mut Node,
    links: &LinksOfBoth,
    choice: &PathChoice,
    family: Family,
) -> Result<Path, PathError> {
    let same_place = dut.url() == peer.url();
    let candidates = candidates(peer, &links.peer, choice, family, same_place);
    if candidates.is_empty() {
        let place = choice.peer_link.as_ref().map_or_else(|| "it".to_owned(), |l| format!("link {l}"));
        return Err(PathError::NoAddress {
            node: peer.url().to_string(),
            place,
            family: family_name(family),
        });
    }
    let mut reasons = Vec::new();
    let mut fallback = None;
    for candidate in candidates {
        match dut_end(dut, &links.dut, choice, &candidate)? {
            Ok((end, direct)) => {
                let path = Path { family, dut: end, peer: candidate };
                if direct {
                    return Ok(path);
                }
                fallback.get_or_insert(path);
            }
            Err(reason) => reasons.push(format!("{}: {reason}", candidate.address)),
        }
    }
    fallback.ok_or_else(|| PathError::NoRoute {
        node: dut.url().to_string(),
        peer: peer.url().to_string(),
        family: family_name(family),
        reasons: reasons.join("; "),
    })
}

/// The peer's addresses, the likeliest first.
fn candidates(
    peer: &Node,
    links: &[LinkInfo],
    choice: &PathChoice,
    family: Family,
    same_place: bool,
) -> Vec<PathEnd> {
    let reached_at = peer.reached_at();
    let mut found: Vec<(u8, PathEnd)> = Vec::new();
    for link in links.iter().filter(|l| l.up && l.carrier) {
        if choice.peer_link.as_ref().is_some_and(|name| *name != link.name) {
            continue;
        }
        let named = choice.peer_link.is_some() || (same_place && choice.dut_link.is_some());
        if link.loopback && !(same_place || named) {
            continue;
        }
        let reached_here = link.addresses.iter().any(|a| Some(a.address) == reached_at);
        for address in link.addresses.iter().filter(|a| is_of(a.address, family) && !a.tentative) {
            let local_scope = is_link_local(address.address);
            // Between two processes of one namespace the loopback is the honest path, unless a link is named.
            let rank = match () {
                () if same_place && !named => u8::from(!link.loopback) * 4,
                () if Some(address.address) == reached_at => 0,
                () if reached_here && !local_scope => 1,
                () if !local_scope => 2,
                () => 3,
            };
            let scope_id = if local_scope { link.index } else { 0 };
            found.push((rank, PathEnd { link: Some(link.clone()), address: address.address, scope_id }));
        }
    }
    found.sort_by_key(|(rank, _)| *rank);
    let mut ends: Vec<PathEnd> = found.into_iter().map(|(_, end)| end).collect();
    // A server behind address translation is reached at an address that none of its links has.
    if let Some(address) = reached_at.filter(|a| is_of(*a, family) && choice.peer_link.is_none())
        && ends.iter().all(|e| e.address != address)
    {
        // Over a jump host a node may be reached at its own loopback, which says nothing of where it is from here.
        let at = if address.is_loopback() && !peer.is_traffic_only() { ends.len() } else { 0 };
        ends.insert(at, PathEnd { link: None, address, scope_id: 0 });
    }
    ends
}

/// The dut's end towards one address of the peer, and whether the peer is on the same link; or why there is none.
fn dut_end(
    dut: &mut Node,
    links: &[LinkInfo],
    choice: &PathChoice,
    peer: &PathEnd,
) -> Result<Result<(PathEnd, bool), String>, PathError> {
    let own = |link: &LinkInfo| {
        link.addresses.iter().map(|a| a.address).find(|a| {
            a.is_ipv4() == peer.address.is_ipv4() && is_link_local(*a) == is_link_local(peer.address)
        })
    };
    if is_link_local(peer.address) {
        // A link-local address says nothing of the link it is on: only a named one can be meant.
        let Some(link) = choice.dut_link.as_ref().and_then(|name| links.iter().find(|l| l.name == *name))
        else {
            return Ok(Err("a link-local address needs --link".to_owned()));
        };
        return Ok(match own(link) {
            Some(address) => Ok((PathEnd { link: Some(link.clone()), address, scope_id: link.index }, true)),
            None => Err(format!("link {} has no link-local address", link.name)),
        });
    }
    let route = match dut.route(peer.address) {
        Ok(route) => route,
        Err(error) if matches!(error.cause, linerate_agent::node::NodeFailure::Refused { .. }) => {
            return Ok(Err(error.cause.to_string()));
        }
        Err(error) => return Err(error.into()),
    };
    if let Some(name) = choice.dut_link.as_ref().filter(|name| **name != route.link) {
        return Ok(Err(format!("the route is over {}, not over {name}", route.link)));
    }
    let link = links.iter().find(|l| l.name == route.link);
    let Some(address) = route.source.or_else(|| link.and_then(own)) else {
        return Ok(Err(format!("link {} has no address for it", route.link)));
    };
    if let Some(link) = link.filter(|l| !l.up || !l.carrier) {
        return Ok(Err(format!("link {} is down or without carrier", link.name)));
    }
    Ok(Ok((PathEnd { link: link.cloned(), address, scope_id: 0 }, route.gateway.is_none())))
}

fn is_of(address: IpAddr, family: Family) -> bool {
    address.is_ipv4() == (family == Family::V4)
}

fn is_link_local(address: IpAddr) -> bool {
    match address {
        IpAddr::V4(v4) => v4.is_link_local(),
        IpAddr::V6(v6) => v6.is_unicast_link_local(),
    }
}
