//! One rtnetlink socket, with errors that say in which namespace they happened.

use linerate_sys::netlink::{self, Netlink, NetlinkError};
use netlink_packet_route::RouteNetlinkMessage;

use crate::error::Result;
use crate::netns;

pub(crate) struct Rtnl(Netlink);

impl Rtnl {
    pub(crate) fn open() -> Result<Self> {
        Ok(Self(Netlink::open(netlink::ROUTE)?))
    }

    pub(crate) fn request(
        &mut self,
        operation: &str,
        message: RouteNetlinkMessage,
        flags: u16,
    ) -> Result<Vec<RouteNetlinkMessage>> {
        Ok(self.0.request(operation, message, flags).map_err(placed)?.messages)
    }

    pub(crate) fn dump(
        &mut self,
        operation: &str,
        message: RouteNetlinkMessage,
    ) -> Result<Vec<RouteNetlinkMessage>> {
        Ok(self.0.dump(operation, message).map_err(placed)?)
    }
}

/// Adds the namespace to a refusal; looked up only when there is one.
pub(crate) fn placed(error: NetlinkError) -> NetlinkError {
    match error {
        NetlinkError::Refused { mut operation, refusal } => {
            operation.push_str(&netns::place());
            NetlinkError::Refused { operation, refusal }
        }
        other => other,
    }
}
