//! One rtnetlink socket, with errors that say in which namespace they happened.

use linerate_sys::netlink::{self, Netlink, NetlinkError};
use netlink_packet_route::RouteNetlinkMessage;

use crate::error::Result;
use crate::netns;
use crate::raw::Raw;

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

    /// A request whose answer nobody needs, as bytes.
    pub(crate) fn raw_request(&mut self, operation: &str, message: Raw, flags: u16) -> Result<()> {
        self.0.request(operation, message, flags).map_err(placed)?;
        Ok(())
    }

    /// A request whose answer is read as bytes.
    pub(crate) fn raw_get(&mut self, operation: &str, message: Raw) -> Result<Vec<Raw>> {
        Ok(self.0.request(operation, message, 0).map_err(placed)?.messages)
    }

    /// A list as the kernel sends it.
    pub(crate) fn raw_dump(&mut self, operation: &str, message: Raw) -> Result<Vec<Raw>> {
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

#[cfg(test)]
mod tests {
    use netlink_packet_core::{NetlinkDeserializable, NetlinkHeader};
    use proptest::prelude::*;

    use super::*;

    /// RTM_NEWLINK, RTM_NEWADDR, RTM_NEWROUTE (linux/rtnetlink.h) and the length of their fixed head.
    const KINDS: [(u16, usize); 3] = [(16, 16), (20, 8), (24, 12)];

    /// Attributes with right lengths and hostile values: what reaches the decoders behind the first check.
    fn attributes() -> impl Strategy<Value = Vec<u8>> {
        let attribute =
            (0u16..70, proptest::collection::vec(any::<u8>(), 0..40)).prop_map(|(kind, value)| {
                let mut bytes = (value.len() as u16 + 4).to_ne_bytes().to_vec();
                bytes.extend(kind.to_ne_bytes());
                bytes.extend(value);
                bytes.resize(bytes.len().div_ceil(4) * 4, 0);
                bytes
            });
        proptest::collection::vec(attribute, 0..6).prop_map(|attributes| attributes.concat())
    }

    proptest! {
        #[test]
        fn hostile_messages_never_panic(
            which in 0usize..KINDS.len(),
            head in proptest::collection::vec(any::<u8>(), 16),
            rest in attributes(),
        ) {
            let (kind, length) = KINDS[which];
            let mut header = NetlinkHeader::default();
            header.message_type = kind;
            let payload = [&head[..length], &rest].concat();
            if let Ok(message) = RouteNetlinkMessage::deserialize(&header, &payload) {
                let _ = crate::links::described(&message);
                let _ = crate::address::described(&message);
            }
        }
    }
}
