//! The control protocol's bytes: layouts A to F of the messages between master and slave, both byte orders.
//!
//! Nothing is framed: who reads knows from what came before how much is to come. Decoders take a whole message of the
//! right length; strings end at their first NUL, and what follows it is ignored.

mod bytes;
mod layout;
mod message;
mod workorder;

pub use bytes::Order;
pub use layout::{Layout, detect};
pub(crate) use message::offered;
pub use message::{
    ACK_BYTES, Ack, COMMAND_BYTES, Command, END_BYTES, GOODBYE_BYTES, Goodbye, GoodbyeKind, HEADER_PREFIX,
    Header, P2_ACK_BYTES, Phase, Ports, SLAVE_INFO_BYTES, decode_p2_ack, decode_ports, encode_p2_ack,
    encode_ports,
};
pub use workorder::{
    GROUP_BYTES, GroupHead, TRANSACTION_BYTES, TransactionHead, decode_flowop, encode_workorder,
};

/// Why bytes are not what they should be.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum WireError {
    /// The first field of a header is not uperf's.
    #[error("Wrong magic")]
    Magic,
    /// The word that tells the byte order is neither.
    #[error("Wrong endian word {0:#010x}")]
    Endian(u32),
    /// A command does not begin as one.
    #[error("Wrong command magic")]
    CommandMagic,
    /// A goodbye does not begin as one.
    #[error("Wrong goodbye magic: {0}")]
    GoodbyeMagic(String),
    /// A number that stands for nothing.
    #[error("Unknown {what} {number}")]
    Unknown {
        /// What it should have been.
        what: &'static str,
        /// The number.
        number: u32,
    },
    /// More than is allowed.
    #[error("{what} {number} is more than {most}")]
    TooMany {
        /// Of what.
        what: &'static str,
        /// How many.
        number: u64,
        /// How many are allowed.
        most: u64,
    },
    /// Fewer bytes than the message has.
    #[error("a message of {0} bytes is cut short")]
    Short(usize),
}

/// Runs every decoder over `bytes`; for fuzzing.
pub fn fuzz_decode(bytes: &[u8]) {
    let _header = Header::decode(bytes);
    let _ack = Ack::decode(bytes);
    let _goodbye = Goodbye::decode(bytes, Order::Little);
    for order in [Order::Little, Order::Big] {
        let _command = Command::decode(bytes, order);
        let _p2 = decode_p2_ack(bytes, order);
        let _ports = decode_ports(bytes, order);
        let _transaction = TransactionHead::decode(bytes, order);
        let _detected = detect(bytes, order);
        for layout in Layout::ALL {
            let _flowop = decode_flowop(bytes, layout, order);
        }
    }
    let _group = GroupHead::decode(bytes);
}

#[cfg(test)]
mod tests;
