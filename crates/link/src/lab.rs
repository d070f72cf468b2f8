//! The private lab: two namespaces `lr-ID-dut` and `lr-ID-peer` joined by a veth pair. With further peers (`lr-ID-peer2` ...)
//! each has a veth pair to a bridge in a namespace of its own, `lr-ID-hub`, and so has the dut.
//!
//! A lab has an owner, which holds a lock on `/run/linerate/lab-ID.lock` as long as it lives. The kernel lets go of the
//! lock however the owner ends, so a lab whose lock is free and that is not marked as kept is stale, and
//! [`PrivateLab::sweep_stale`] takes it away.

use std::net::{Ipv4Addr, Ipv6Addr};
use std::time::Duration;

use ipnet::{IpNet, Ipv4Net, Ipv6Net};
use linerate_model::bench::act::LinkKind;
use linerate_model::trial::Side;
use linerate_sys::netns as sys;

use crate::error::{LinkError, Result};
use crate::lab_lock::{self, LabLock, Taken};
use crate::make::make;
use crate::netns::in_netns;
use crate::{address, links, sysctl, veth};

const DUT_LINK: &str = "lr-dut";
const PEER_LINK: &str = "lr-peer";
const HUB_LINK: &str = "lr-hub";
/// Most of a veth, so that the ends' MTU alone counts.
const HUB_MTU_BYTES: u32 = 65_535;
/// Most peers beside the first: addresses are numbered by one byte.
const MOST_FURTHER_PEERS: u32 = 200;
const IPV4_PREFIX: u8 = 24;
const IPV6_PREFIX: u8 = 64;
const CARRIER_LIMIT: Duration = Duration::from_secs(5);

/// The addresses of one end of a link that only linerate uses.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct EndAddresses {
    /// RFC 2544 section 12, appendix C.2.2: 198.18.0.0/15 is set aside for benchmarks.
    pub ipv4: Ipv4Addr,
    /// RFC 4193: a unique local prefix; it never leaves the link.
    pub ipv6: Ipv6Addr,
}

impl EndAddresses {
    /// The addresses of the node under test, or of its partner.
    pub const fn of(side: Side) -> Self {
        let last = match side {
            Side::Dut => 1,
            Side::Peer => 2,
        };
        Self {
            ipv4: Ipv4Addr::new(198, 18, 0, last),
            ipv6: Ipv6Addr::new(0xfd6c, 0x696e, 0x6572, 0, 0, 0, 0, last as u16),
        }
    }

    /// The addresses of a peer: 0 is the first, further ones are numbered on.
    fn of_peer(number: u32) -> Self {
        let first = Self::of(Side::Peer);
        Self {
            ipv4: Ipv4Addr::from_bits(first.ipv4.to_bits() + number),
            ipv6: Ipv6Addr::from_bits(first.ipv6.to_bits() + u128::from(number)),
        }
    }
}

/// What a lab is to be like.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct LabOptions {
    /// Transmit and receive queues of each end; `None` leaves it to the kernel.
    pub queues: Option<u32>,
    /// MTU of both ends, bytes; `None` leaves it at 1500.
    pub mtu: Option<u32>,
    /// Peers beside the first; with any the ends are joined by a bridge rather than a pair.
    pub further_peers: u32,
}

/// One end of a lab.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LabEnd {
    /// Namespace (`lr-ID-dut`); the node's URL is `netns:` with it.
    pub netns: String,
    /// Name of the link in it.
    pub link: String,
    /// Its IPv4 address.
    pub ipv4: Ipv4Addr,
    /// Its IPv6 address; `None` where the kernel has no IPv6.
    pub ipv6: Option<Ipv6Addr>,
}

/// A lab that is taken away when this is dropped.
#[derive(Debug)]
pub struct PrivateLab {
    lock: Option<LabLock>,
    dut: LabEnd,
    peers: Vec<LabEnd>,
}

/// A lab that stays up, and what is needed to use and remove it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KeptLab {
    /// The lab's id, for [`remove`].
    pub id: String,
    /// The one end.
    pub dut: LabEnd,
    /// The other ends, at least one.
    pub peers: Vec<LabEnd>,
    /// The lab is inside this process's own user namespace and vanishes with the last process there: one that merely
    /// waits must be started by the caller, and the lab is entered through its pid.
    pub needs_holder: bool,
}

/// A lab that is there.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LabState {
    /// Its id.
    pub id: String,
    /// A living process owns it.
    pub owned: bool,
    /// It was kept on purpose.
    pub kept: bool,
}

impl PrivateLab {
    /// Makes a lab: the namespaces, what joins them, addresses, everything up with carrier, IPv6 usable at once.
    ///
    /// # Errors
    /// [`LinkError::Invalid`] for more than 201 peers; the first step that failed (EPERM without `CAP_SYS_ADMIN`); what was
    /// made until then is removed again.
    pub fn create(options: LabOptions) -> Result<Self> {
        if options.further_peers > MOST_FURTHER_PEERS {
            let what = format!("create a lab with {} peers", options.further_peers.saturating_add(1));
            let why = format!("at most {} have an address", MOST_FURTHER_PEERS + 1);
            return Err(LinkError::Invalid { what, why });
        }
        let lock = LabLock::create()?;
        let id = lock.id().to_owned();
        let end = |name: &str, link: &str, ipv4| LabEnd {
            netns: netns_name(&id, name),
            link: link.to_owned(),
            ipv4,
            ipv6: None,
        };
        let further = (1..=options.further_peers)
            .map(|number| end(&format!("peer{}", number + 1), PEER_LINK, EndAddresses::of_peer(number).ipv4));
        // From here on Drop cleans up whatever exists.
        let mut lab = Self {
            dut: end("dut", DUT_LINK, EndAddresses::of(Side::Dut).ipv4),
            peers: std::iter::once(end("peer", PEER_LINK, EndAddresses::of(Side::Peer).ipv4))
                .chain(further)
                .collect(),
            lock: Some(lock),
        };
        lab.build(options)?;
        Ok(lab)
    }

    fn build(&mut self, options: LabOptions) -> Result<()> {
        for end in std::iter::once(&self.dut).chain(&self.peers) {
            sys::create(&end.netns)?;
        }
        match self.peers.as_slice() {
            [peer] => veth::create(&veth_end(&self.dut), &veth_end(peer), options.queues)?,
            _ => self.join_by_bridge(options)?,
        }
        let addresses = std::iter::once(EndAddresses::of(Side::Dut)).chain((0..).map(EndAddresses::of_peer));
        for (end, addresses) in std::iter::once(&mut self.dut).chain(&mut self.peers).zip(addresses) {
            let netns = end.netns.clone();
            end.ipv6 = in_netns(&netns, || set_up_end(&end.link, addresses, options.mtu))?;
        }
        for end in std::iter::once(&self.dut).chain(&self.peers) {
            in_netns(&end.netns, || links::wait_for_carrier(&end.link, CARRIER_LIMIT))?;
        }
        Ok(())
    }

    /// A pair from each end to a bridge, which is up with all of them.
    fn join_by_bridge(&self, options: LabOptions) -> Result<()> {
        let hub = netns_name(self.id(), "hub");
        sys::create(&hub)?;
        in_netns(&hub, || make(HUB_LINK, &LinkKind::Bridge))?;
        for (number, end) in std::iter::once(&self.dut).chain(&self.peers).enumerate() {
            let port = format!("port{number}");
            let at_hub = veth::End { netns: hub.clone(), link: port.clone() };
            veth::create(&at_hub, &veth_end(end), options.queues)?;
            in_netns(&hub, || {
                links::set_mtu(&port, HUB_MTU_BYTES)?;
                links::set_master(&port, Some(HUB_LINK))?;
                set_up_silent(&port)
            })?;
        }
        in_netns(&hub, || set_up_silent(HUB_LINK))
    }

    /// Its id.
    pub fn id(&self) -> &str {
        self.lock.as_ref().map_or("", LabLock::id)
    }

    /// The end for the node under test.
    pub fn dut(&self) -> &LabEnd {
        &self.dut
    }

    /// The end for its partner; of several the first.
    pub fn peer(&self) -> &LabEnd {
        // Invariant: `create` makes at least one.
        &self.peers[0]
    }

    /// The ends for all its partners.
    pub fn peers(&self) -> &[LabEnd] {
        &self.peers
    }

    /// Takes the lab away and says what could not be removed, which dropping it can't.
    ///
    /// # Errors
    /// The first removal that failed; the others are done all the same.
    pub fn remove(mut self) -> Result<()> {
        self.lock.take().map_or(Ok(()), take_down)
    }

    /// Leaves the lab up after this process, marked so that no sweep takes it.
    ///
    /// # Errors
    /// The mark can't be written; then the lab is removed.
    pub fn keep(mut self) -> Result<KeptLab> {
        let (dut, peers) = (self.dut.clone(), self.peers.clone());
        let Some(lock) = &mut self.lock else {
            return Err(LinkError::unexpected("keep the lab", "it is gone"));
        };
        lock.mark_kept()?;
        let id = lock.id().to_owned();
        self.lock = None;
        Ok(KeptLab { id, dut, peers, needs_holder: sys::in_own_user_namespace() })
    }

    /// Removes every lab whose owner died without doing so; never one that is owned or kept. Returns the ids of those
    /// removed. To be called at the start of each run.
    ///
    /// # Errors
    /// The first lab that could not be removed; the others are swept all the same.
    pub fn sweep_stale() -> Result<Vec<String>> {
        let mut removed = Vec::new();
        let mut outcome = Ok(());
        // A lab's file is made before its namespaces and removed after them: without it they are nobody's.
        for id in ids_of_namespaces()? {
            if matches!(LabLock::take(&id)?, Taken::Gone) {
                let swept = remove_ends(&id);
                removed.push(id);
                outcome = outcome.and(swept);
            }
        }
        for id in LabLock::ids()? {
            let swept = match LabLock::take(&id) {
                Ok(Taken::Free(lock)) if !lock.is_kept() => take_down(lock),
                Ok(_) => continue,
                Err(error) => Err(error),
            };
            match swept {
                Ok(()) => removed.push(id),
                Err(error) => outcome = outcome.and(Err(error)),
            }
        }
        outcome.map(|()| removed)
    }
}

impl Drop for PrivateLab {
    fn drop(&mut self) {
        if let Some(lock) = self.lock.take() {
            // Nobody is left to tell; what stays behind is stale and the next sweep reports it.
            let _ = take_down(lock);
        }
    }
}

impl KeptLab {
    /// The command that runs a shell at one end. `holder` is the pid of the waiting process, where one is needed.
    pub fn enter_command(&self, end: &LabEnd, holder: Option<u32>) -> Vec<String> {
        let mut words = match holder {
            Some(pid) => ["nsenter", "--preserve-credentials", "-U", "-m", "-t"]
                .map(str::to_owned)
                .into_iter()
                .chain([pid.to_string()])
                .collect(),
            None => Vec::new(),
        };
        words.extend(["ip", "netns", "exec", &end.netns, "sh"].map(str::to_owned));
        words
    }
}

/// The labs that are there, sorted by id.
///
/// # Errors
/// `/run/linerate` or a lock in it can't be read.
pub fn list() -> Result<Vec<LabState>> {
    let mut labs = Vec::new();
    for id in LabLock::ids()? {
        match LabLock::take(&id)? {
            Taken::Free(lock) => labs.push(LabState { id, owned: false, kept: lock.is_kept() }),
            Taken::Owned => labs.push(LabState { id, owned: true, kept: false }),
            Taken::Gone => {}
        }
    }
    Ok(labs)
}

/// Removes a kept or stale lab.
///
/// # Errors
/// [`LinkError::Invalid`] when there is none of this id or a living process owns it; else what could not be removed.
pub fn remove(id: &str) -> Result<()> {
    let refuse =
        |why: &str| Err(LinkError::Invalid { what: format!("remove lab {id}"), why: why.to_owned() });
    if !LabLock::ids()?.iter().any(|known| known == id) {
        return refuse("there is no lab of this id");
    }
    match LabLock::take(id)? {
        Taken::Free(lock) => take_down(lock),
        Taken::Owned => refuse("a running linerate uses it"),
        Taken::Gone => refuse("there is no lab of this id"),
    }
}

fn veth_end(end: &LabEnd) -> veth::End {
    veth::End { netns: end.netns.clone(), link: end.link.clone() }
}

/// Brings a link of the hub up, which is to say nothing by itself.
fn set_up_silent(link: &str) -> Result<()> {
    if sysctl::exists("net.ipv6") {
        sysctl::write(&format!("net/ipv6/conf/{link}/disable_ipv6"), "1")?;
    }
    links::set_up(link, true)
}

/// Brings up one end of a link that only linerate uses, in the calling thread's namespace: addresses that are usable at
/// once, and nothing on the wire but what the test sends. Returns its IPv6 address, if it could have one.
///
/// # Errors
/// [`LinkError::NoSuchLink`], or the kernel's refusal.
pub fn set_up_end(link: &str, addresses: EndAddresses, mtu: Option<u32>) -> Result<Option<Ipv6Addr>> {
    let has_ipv6 = sysctl::exists("net.ipv6");
    if has_ipv6 {
        // A new namespace may inherit the switch from the first one (net.core.devconf_inherit_init_net).
        for name in ["all", "default", "lo", link] {
            sysctl::write(&format!("net/ipv6/conf/{name}/disable_ipv6"), "0")?;
        }
        // Link-local addresses too are usable at once, and nothing on the wire but what the test sends.
        for name in ["accept_dad", "accept_ra", "router_solicitations"] {
            sysctl::write(&format!("net/ipv6/conf/{link}/{name}"), "0")?;
        }
    }
    if let Some(mtu) = mtu {
        links::set_mtu(link, mtu)?;
    }
    links::set_up("lo", true)?;
    address::add(link, IpNet::V4(Ipv4Net::new_assert(addresses.ipv4, IPV4_PREFIX)))?;
    if has_ipv6 {
        address::add(link, IpNet::V6(Ipv6Net::new_assert(addresses.ipv6, IPV6_PREFIX)))?;
    }
    links::set_up(link, true)?;
    Ok(has_ipv6.then_some(addresses.ipv6))
}

/// Removes whatever exists of the lab that `lock` stands for, and the lock last.
fn take_down(lock: LabLock) -> Result<()> {
    remove_ends(lock.id()).and_then(|()| lock.remove())
}

fn remove_ends(id: &str) -> Result<()> {
    let mut outcome = Ok(());
    for netns in sys::list()? {
        let Some((_, end)) = parts(&netns).filter(|(owner, _)| *owner == id) else { continue };
        let link = match end {
            "dut" => DUT_LINK,
            "hub" => HUB_LINK,
            _ => PEER_LINK,
        };
        // A process may still hold the namespace open; without its link it is harmless.
        let removed = match in_netns(&netns, || links::remove(link)) {
            Err(LinkError::NoSuchLink { .. }) => Ok(()),
            // A name on which no namespace was mounted yet when the owner was killed.
            Err(error) if error.raw_os_error() == Some(nix::libc::EINVAL) => Ok(()),
            other => other,
        };
        let unnamed = sys::remove(&netns).map_err(LinkError::from);
        outcome = outcome.and(removed).and(unnamed);
    }
    outcome
}

/// Ids of the labs that have a namespace, sorted.
fn ids_of_namespaces() -> Result<Vec<String>> {
    let mut ids: Vec<String> =
        sys::list()?.iter().filter_map(|name| Some(parts(name)?.0.to_owned())).collect();
    ids.sort();
    ids.dedup();
    Ok(ids)
}

fn netns_name(id: &str, end: &str) -> String {
    format!("lr-{id}-{end}")
}

/// The lab's id and the end (`dut`, `peer`, `peer2` ..., `hub`) that a namespace's name tells of.
fn parts(netns: &str) -> Option<(&str, &str)> {
    let (id, end) = netns.strip_prefix("lr-")?.split_once('-')?;
    let number = end.strip_prefix("peer");
    let known = matches!(end, "dut" | "hub")
        || number.is_some_and(|n| n.is_empty() || n.bytes().all(|b| b.is_ascii_digit()));
    (lab_lock::is_id(id) && known).then_some((id, end))
}
