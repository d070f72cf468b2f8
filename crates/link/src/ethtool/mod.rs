//! What ethtool(8) shows and sets, over generic netlink; driver information and statistics over the ioctl.
//!
//! A driver that lacks a thing answers `EOPNOTSUPP`: see [`LinkError::is_unsupported`].
//!
//! Source: the kernel's Documentation/networking/ethtool-netlink.rst.

pub(crate) mod attribute;
mod bitset;
mod features;
mod fuzz;
mod message;
mod parameters;
mod physical;
mod rss;
mod strings;

use linerate_sys::netlink::{self, Netlink};
use netlink_packet_core::DecodeError;
use netlink_packet_generic::ctrl::nlas::GenlCtrlAttrs;
use netlink_packet_generic::ctrl::{GenlCtrl, GenlCtrlCmd};
use netlink_packet_generic::{GenlFamily, GenlMessage};

pub use self::features::FeatureState;
pub use self::fuzz::fuzz_decode;
pub use self::parameters::{Group, Parameter};
pub use self::physical::Physical;
pub use self::rss::Rss;
pub use self::strings::StringSet;
pub use linerate_sys::ethtool_ioctl::DriverInfo;

use self::attribute::{Attribute, Attributes};
use self::message::{Command, EthtoolMessage};
use crate::error::{LinkError, Result};
use crate::links::MAX_NAME;
use crate::rtnl::placed;

/// The ethtool family in the network namespace in which this was opened.
#[derive(Debug)]
pub struct Ethtool {
    netlink: Netlink,
    family: u16,
}

impl Ethtool {
    /// Opens a socket in the calling thread's network namespace and looks up the family.
    ///
    /// # Errors
    /// ENOENT where the kernel has no ethtool over netlink (before 5.6, or built without it).
    pub fn open() -> Result<Self> {
        let mut netlink = Netlink::open(netlink::GENERIC)?;
        let operation = "look up the netlink family ethtool";
        let name = GenlCtrlAttrs::FamilyName(EthtoolMessage::family_name().to_owned());
        let request = GenlCtrl { cmd: GenlCtrlCmd::GetFamily, nlas: vec![name] };
        let reply = netlink.request(operation, GenlMessage::from_payload(request), 0)?;
        let id = |attribute: &GenlCtrlAttrs| match attribute {
            GenlCtrlAttrs::FamilyId(id) => Some(*id),
            _ => None,
        };
        let family = reply.messages.iter().flat_map(|message| &message.payload.nlas).find_map(id);
        let family = family.ok_or_else(|| LinkError::unexpected(operation, "no family id in it"))?;
        Ok(Self { netlink, family })
    }

    /// Sends a request about a link and hands the attributes of the reply, if there is one, to `read`.
    fn ask<T>(
        &mut self,
        operation: &str,
        command: Command,
        link: &str,
        attributes: Vec<Attribute>,
        read: impl FnOnce(&Attributes<'_>) -> std::result::Result<T, DecodeError>,
    ) -> Result<T> {
        let malformed = |error: DecodeError| LinkError::unexpected(operation, error.to_string());
        match self.send(operation, command, link, attributes)?.as_slice() {
            [EthtoolMessage::Reply(payload)] => {
                Attributes::parse(payload).and_then(|reply| read(&reply)).map_err(malformed)
            }
            replies => Err(LinkError::unexpected(operation, format!("{} replies", replies.len()))),
        }
    }

    fn send(
        &mut self,
        operation: &str,
        command: Command,
        link: &str,
        attributes: Vec<Attribute>,
    ) -> Result<Vec<EthtoolMessage>> {
        if link.is_empty() || link.len() > MAX_NAME || link.contains('\0') {
            let why = format!("a link's name has 1 to {MAX_NAME} bytes");
            return Err(LinkError::Invalid { what: format!("{operation}: link {link:?}"), why });
        }
        let mut message = GenlMessage::from_payload(EthtoolMessage::about(command, link, attributes));
        message.set_resolved_family_id(self.family);
        let reply = self.netlink.request(operation, message, 0).map_err(placed)?;
        Ok(reply.messages.into_iter().map(|message| message.payload).collect())
    }
}

/// What the driver of `link` says of itself; ask from a thread in the link's namespace.
///
/// # Errors
/// EOPNOTSUPP where there is no driver to ask (loopback).
pub fn driver_info(link: &str) -> Result<DriverInfo> {
    Ok(linerate_sys::ethtool_ioctl::driver_info(link)?)
}

/// The driver's own statistics of `link` in its order; ask from a thread in the link's namespace.
///
/// # Errors
/// EOPNOTSUPP where the driver has none.
pub fn statistics(link: &str) -> Result<Vec<(String, u64)>> {
    let mut attempts = 0;
    loop {
        match linerate_sys::ethtool_ioctl::statistics(link) {
            // Their number changed in between.
            Err(error) if error.raw_os_error() == Some(nix::libc::EAGAIN) && attempts < 10 => attempts += 1,
            other => return Ok(other?),
        }
    }
}
