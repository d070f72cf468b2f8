//! Netlink messages as the kernel sends them: their bytes, decoded by nobody.
//!
//! For what must be put back exactly as it was, and for answers in which an attribute that nobody here knows must not spoil the
//! rest.

use std::convert::Infallible;

use netlink_packet_core::{NetlinkDeserializable, NetlinkHeader, NetlinkSerializable};

/// A message as bytes: its fixed structure and its attributes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RawMessage {
    /// Message type (`nlmsg_type`).
    pub kind: u16,
    /// What follows the netlink header.
    pub payload: Vec<u8>,
}

impl NetlinkSerializable for RawMessage {
    fn message_type(&self) -> u16 {
        self.kind
    }

    fn buffer_len(&self) -> usize {
        self.payload.len()
    }

    fn serialize(&self, buffer: &mut [u8]) {
        buffer.copy_from_slice(&self.payload);
    }
}

impl NetlinkDeserializable for RawMessage {
    type Error = Infallible;

    fn deserialize(header: &NetlinkHeader, payload: &[u8]) -> Result<Self, Infallible> {
        Ok(Self { kind: header.message_type, payload: payload.to_vec() })
    }
}
