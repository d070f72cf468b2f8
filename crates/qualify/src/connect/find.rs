//! Which link is meant, which is joined to it, and which addresses are used.

use std::net::IpAddr;
use std::time::{Duration, Instant};

use linerate_agent::node::Node;
use linerate_model::bench::probe::{self, ProbeId};
use linerate_model::bench::{BenchReply, BenchRequest, Handle, PortOptions};
use linerate_model::environment::LinkInfo;

use super::{ConnectError, Ends};
use crate::frame::{self, BROADCAST, Hosts};
use crate::must::delivery::probe_id;
use crate::station::{Station, nanoseconds};
use crate::trouble::Trouble;

/// Frames that came together are told together.
const IDLE_NS: u64 = 20_000_000;

/// The link that is named, or the only one that is up.
pub(super) fn named_or_only(
    node: &mut Node,
    named: Option<&str>,
    option: &'static str,
) -> Result<LinkInfo, ConnectError> {
    let links: Vec<LinkInfo> = node.links()?.into_iter().filter(|link| !link.loopback).collect();
    let url = node.url().to_string();
    let present = links.iter().map(|link| link.name.as_str()).collect::<Vec<_>>().join(", ");
    let chosen = match named {
        Some(name) => match links.iter().find(|link| is_named(link, name)) {
            Some(link) => link,
            None => return Err(ConnectError::NoSuchLink { node: url, link: name.to_owned(), present }),
        },
        None => match links.iter().filter(|link| link.up).collect::<Vec<_>>().as_slice() {
            [only] => only,
            _ if links.len() == 1 => &links[0],
            _ => return Err(ConnectError::WhichLink { node: url, option, present }),
        },
    };
    check_up(&url, chosen)?;
    Ok(chosen.clone())
}

/// A link goes by its name, its hardware address or its bus address.
fn is_named(link: &LinkInfo, name: &str) -> bool {
    let by = |fact: &Option<String>| fact.as_deref().is_some_and(|fact| fact.eq_ignore_ascii_case(name));
    link.name == name || by(&link.mac) || by(&link.bus)
}

fn check_up(node: &str, link: &LinkInfo) -> Result<(), ConnectError> {
    let state = match (link.up, link.carrier) {
        (true, true) => return Ok(()),
        (false, _) => "down",
        (true, false) => "without carrier",
    };
    Err(ConnectError::Down { node: node.to_owned(), link: link.name.clone(), state })
}

/// Links of the peer that may be the far end: the one that is named, or all that are up. `not` is the index of the dut's
/// link, where both are in one place.
pub(super) fn candidates(
    peer: &mut Node,
    named: Option<&str>,
    not: Option<u32>,
) -> Result<Vec<LinkInfo>, ConnectError> {
    if named.is_some() {
        return Ok(vec![named_or_only(peer, named, "--peer-link")?]);
    }
    let links = peer.links()?.into_iter();
    Ok(links.filter(|l| !l.loopback && l.up && l.carrier && Some(l.index) != not).collect())
}

/// The first of the candidates on which probes of the dut arrive.
pub(super) fn by_probes(
    dut: &mut Station,
    peer: &mut Node,
    candidates: &[LinkInfo],
) -> Result<LinkInfo, ConnectError> {
    const ROUNDS: u64 = 3;
    const WAIT_NS: u64 = 700_000_000;
    let tried = candidates.iter().map(|link| link.name.as_str()).collect::<Vec<_>>().join(", ");
    let no_peer = ConnectError::NoPeer {
        dut: dut.node.url().to_string(),
        link: dut.link().to_owned(),
        peer: peer.url().to_string(),
        tried: if tried.is_empty() { "none is up".to_owned() } else { tried },
    };
    let ports: Vec<Handle> =
        candidates.iter().map(|link| listen(peer, &link.name)).collect::<Result<_, _>>()?;
    let out = dut.open_port(PortOptions { send_only: true, ..PortOptions::default() })?;
    let run = u64::from(std::process::id()) << 32 | 0x11e;
    let hosts = Hosts { to_mac: BROADCAST, ..Hosts::nobody(BROADCAST, dut.mac()) };
    let mut found = None;
    for sequence in 0..ROUNDS {
        let bytes = frame::probe(&hosts, ProbeId { run, stream: 0, sequence }, 60);
        dut.send(&out, &[frame::out(bytes)])?;
        let wait = WAIT_NS / ports.len().max(1) as u64;
        for (link, port) in candidates.iter().zip(&ports) {
            if found.is_none() && hears(peer, *port, run, wait)? {
                found = Some(link.clone());
            }
        }
        if found.is_some() {
            break;
        }
    }
    dut.close(out.handle)?;
    for handle in ports {
        peer.bench(&BenchRequest::Close { handle })?;
    }
    found.ok_or(no_peer)
}

fn listen(peer: &mut Node, link: &str) -> Result<Handle, ConnectError> {
    let options = PortOptions {
        link: link.to_owned(),
        ether_type: probe::ETHER_TYPE,
        // Another suite may be at work on the link.
        slots: 2048,
        ..PortOptions::default()
    };
    match peer.bench(&BenchRequest::OpenPort(options)) {
        Ok(BenchReply::Opened(handle)) => Ok(handle),
        Ok(_) => Err(Trouble::harness("open a port: unexpected answer").into()),
        Err(error) if error.is_permission() => Err(ConnectError::NoPrivilege(peer.url().to_string())),
        Err(error) => Err(error.into()),
    }
}

/// Whether one of our probes comes within the time; others' frames, as many as they be, are passed over.
fn hears(peer: &mut Node, port: Handle, run: u64, wait_ns: u64) -> Result<bool, ConnectError> {
    const AT_ONCE: u32 = 256;
    let give_up = Instant::now() + Duration::from_nanos(wait_ns);
    loop {
        let left_ns = nanoseconds(give_up.saturating_duration_since(Instant::now()));
        let request =
            BenchRequest::Receive { port, most: AT_ONCE, idle_ns: left_ns.min(IDLE_NS), limit_ns: left_ns };
        let BenchReply::Frames { frames, .. } = peer.bench(&request)? else {
            return Err(Trouble::harness("receive frames: unexpected answer").into());
        };
        if frames.iter().any(|frame| probe_id(&frame.bytes).is_some_and(|(id, _)| id.run == run)) {
            return Ok(true);
        }
        if left_ns == 0 {
            return Ok(false);
        }
    }
}

/// Takes addresses of a common network that the links have; lends them some where there are none.
pub(super) fn addresses(dut: &mut Station, peer: &mut Station, ends: &Ends) {
    let pair = |is: fn(&IpAddr) -> bool| {
        let usable = |link: &LinkInfo| -> Vec<(IpAddr, u8)> {
            let own = link.addresses.iter().filter(|a| is(&a.address) && !is_link_local(a.address));
            own.map(|a| (a.address, a.prefix)).collect()
        };
        let there = usable(&peer.facts);
        usable(&dut.facts).into_iter().find_map(|(here, prefix)| {
            let net = ipnet::IpNet::new(here, prefix).ok()?;
            there.iter().find(|(there, _)| net.contains(there)).map(|(there, _)| (here, *there))
        })
    };
    let told_v4 = ends.v4.map(|(here, there)| (here.into(), there.into()));
    let told_v6 = ends.v6.map(|(here, there)| (here.into(), there.into()));
    let v4 = told_v4.or_else(|| pair(IpAddr::is_ipv4));
    let v6 = told_v6.or_else(|| pair(IpAddr::is_ipv6));
    if let Some((IpAddr::V4(here), IpAddr::V4(there))) = v4 {
        (dut.v4, peer.v4) = (Some(here), Some(there));
    } else {
        // RFC 2544 appendix C.2.2; the private lab has 198.18.0.0/24.
        let (here, there) = ([198, 18, 251, 1], [198, 18, 251, 2]);
        (dut.v4, peer.v4) = (Some(here.into()), Some(there.into()));
        dut.lent.push((here.into(), 24));
        peer.lent.push((there.into(), 24));
    }
    if let Some((IpAddr::V6(here), IpAddr::V6(there))) = v6 {
        (dut.v6, peer.v6) = (Some(here), Some(there));
    }
}

fn is_link_local(address: IpAddr) -> bool {
    match address {
        IpAddr::V4(v4) => v4.is_link_local(),
        IpAddr::V6(v6) => v6.is_unicast_link_local(),
    }
}
