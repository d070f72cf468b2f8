//! Acts upon links that a qualification asks for. Everything goes through [`Changes`]: what is made, added or changed is in
//! the journal before it is done, and goes back, last first, when the changes do; after SIGKILL by the next linerate.

use std::time::Duration;

use ipnet::IpNet;
use linerate_model::bench::act::{LinkAct, LinkKind};
use linerate_sys::multicast;

use crate::changes::Changes;
use crate::error::{LinkError, Result};
use crate::settings::attributes::Attribute;
use crate::settings::key::Touched;
use crate::settings::made::Made;
use crate::settings::part::Part;
use crate::settings::value::mac_text;
use crate::{address, links, make, neighbour, route};

/// What the names of new links begin with, so that they are known for linerate's own.
pub const NEW_LINK_PREFIX: &str = "lr-";

impl Changes {
    /// Carries out an act upon any link of the namespace in which the changes began.
    ///
    /// # Errors
    /// [`LinkError::Invalid`] for a name or an address that makes no sense, [`LinkError::NoSuchLink`],
    /// [`LinkError::Timeout`] for carrier, else the kernel's refusal.
    pub fn act(&mut self, act: &LinkAct) -> Result<()> {
        let switch = |on: &bool| if *on { "on" } else { "off" };
        match act {
            LinkAct::SetUp { link, up } => self.set_on(link, "up", switch(up)),
            LinkAct::SetMac { link, mac } => self.set_on(link, "mac", &mac_text(mac)),
            LinkAct::SetPromiscuous { link, on } => self.set_on(link, "promiscuous", switch(on)),
            LinkAct::SetAllMulticast { link, on } => self.set_on(link, "all-multicast", switch(on)),
            LinkAct::Make { name, kind } => self.make(name, kind),
            LinkAct::Remove { name } => self.remove(name),
            LinkAct::SetMaster { link, master } => {
                self.keep(master_touches(link))?;
                links::set_master(link, master.as_deref())
            }
            LinkAct::AddAddress { link, address, prefix } => {
                let address = net(*address, *prefix)?;
                self.keep_made(link, Made::Address(address))?;
                address::add(link, address)
            }
            LinkAct::RemoveAddress { link, address, prefix } => {
                let address = net(*address, *prefix)?;
                self.keep_made(link, Made::Address(address))?;
                address::remove(link, address)
            }
            LinkAct::AddNeighbour { link, address, mac } => {
                self.keep_made(link, Made::Neighbour(*address))?;
                neighbour::add(link, *address, *mac)
            }
            LinkAct::AddRoute { link, destination, prefix, gateway } => {
                let destination = net(*destination, *prefix)?;
                self.keep_made(link, Made::Route { destination, gateway: *gateway })?;
                route::add(link, destination, *gateway)
            }
            LinkAct::JoinGroup { link, mac } => {
                self.keep_made(link, Made::Group(*mac))?;
                Ok(multicast::join(link, *mac)?)
            }
            LinkAct::LeaveGroup { link, mac } => {
                self.keep_made(link, Made::Group(*mac))?;
                Ok(multicast::leave(link, *mac)?)
            }
            LinkAct::AwaitCarrier { link, limit_ns } => {
                links::wait_for_carrier(link, Duration::from_nanos(*limit_ns))
            }
        }
    }

    fn make(&mut self, name: &str, kind: &LinkKind) -> Result<()> {
        require_own(name)?;
        if let LinkKind::Veth { other } = kind {
            require_own(other)?;
        }
        self.keep_new_link(name)?;
        make::make(name, kind)
    }

    fn remove(&mut self, name: &str) -> Result<()> {
        if !self.has_made(name) {
            let why = "only a link that the session made is removed".to_owned();
            return Err(LinkError::Invalid { what: format!("remove {name}"), why });
        }
        links::remove(name)
    }

    fn keep_made(&mut self, link: &str, made: Made) -> Result<()> {
        self.keep(vec![Touched { link: link.to_owned(), part: Part::Made(made), optional: false }])
    }
}

fn require_own(name: &str) -> Result<()> {
    let good = name.starts_with(NEW_LINK_PREFIX)
        && (NEW_LINK_PREFIX.len() + 1..=links::MAX_NAME).contains(&name.len())
        && name.bytes().all(|byte| byte.is_ascii_graphic() && byte != b'/' && byte != b':');
    if good {
        return Ok(());
    }
    let why =
        format!("a new link's name begins with {NEW_LINK_PREFIX} and has at most {} bytes", links::MAX_NAME);
    Err(LinkError::Invalid { what: format!("link {name:?}"), why })
}

/// A bond gives its ports another address, both take the MTU along, and either may flush what IPv6 had.
fn master_touches(link: &str) -> Vec<Touched> {
    let dragged = [
        Part::Neighbours,
        Part::Ipv4Routes,
        Part::Ipv6,
        Part::Attribute(Attribute::Mtu),
        Part::Attribute(Attribute::Mac),
        Part::Attribute(Attribute::Up),
    ];
    let touched = |part, optional| Touched { link: link.to_owned(), part, optional };
    let mut all: Vec<_> = dragged.into_iter().map(|part| touched(part, true)).collect();
    all.push(touched(Part::Made(Made::Master), false));
    all
}

fn net(address: std::net::IpAddr, prefix: u8) -> Result<IpNet> {
    IpNet::new(address, prefix).map_err(|_| LinkError::Invalid {
        what: format!("{address}/{prefix}"),
        why: "the prefix is longer than the address".to_owned(),
    })
}
