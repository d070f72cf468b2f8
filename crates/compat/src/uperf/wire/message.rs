//! Headers, acknowledgements, ports, commands and the goodbye.

use crate::uperf::wire::bytes::{Builder, ENDIAN, Fields, Order};
use crate::uperf::wire::{Layout, WireError};
use crate::uperf::workorder::{PROTOCOLS, Protocol};

const MAGIC: &str = "0xbadcafedeadbeef";
const COMMAND_MAGIC: &str = "uperf_command";
const GOODBYE_MAGIC: &str = "So Long, and Thanks for All the Fish";

/// Bytes of a header that tell how long it is.
pub const HEADER_PREFIX: usize = 96;
/// Bytes of an acknowledgement.
pub const ACK_BYTES: usize = 192;
/// Bytes of the acknowledgement of P2, without the ports that may follow.
pub const P2_ACK_BYTES: usize = 196;
/// Bytes of a strand's ports.
pub const SLAVE_INFO_BYTES: usize = 288;
/// Bytes of the message that ends the handshake.
pub const END_BYTES: usize = 192;
/// Bytes of a command.
pub const COMMAND_BYTES: usize = 72;
/// Bytes of a goodbye.
pub const GOODBYE_BYTES: usize = 616;

const PROTOCOLS_AT: usize = 48;
const VERSION_AT: usize = 80;
const HOST_BYTES: usize = 256;

/// Ports that a strand listens on, by protocol number; 0 is none.
pub type Ports = [u16; PROTOCOLS];

/// Which part of the handshake a header begins.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Phase {
    /// Version and protocols. Any number but 2 counts as this.
    One,
    /// A workorder follows.
    Two,
}

/// A header of P1 or P2.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Header {
    /// The master's byte order.
    pub order: Order,
    /// Which part.
    pub phase: Phase,
    /// P2: records of ports that follow the workorder.
    pub infos: u32,
    /// P1: numbers of the protocols that will be used.
    pub protocols: Vec<u32>,
    /// The master's version.
    pub version: String,
}

impl Header {
    /// Writes it in a layout. `version` is the layout's own unless a probe asks for another.
    pub fn encode(&self, layout: Layout) -> Vec<u8> {
        let mut out = Builder::new(layout.header_bytes(), self.order);
        out.text(0, 32, MAGIC);
        out.u32(32, ENDIAN);
        out.u32(36, if self.phase == Phase::Two { 2 } else { 1 });
        out.u32(40, self.infos);
        for number in self.protocols.iter().filter(|n| (**n as usize) < PROTOCOLS) {
            out.u32(PROTOCOLS_AT + *number as usize * 4, 1);
        }
        out.text(VERSION_AT, 16, &self.version);
        out.done()
    }

    /// Reads its first 96 bytes, which tell everything.
    ///
    /// # Errors
    /// Not a header.
    pub fn decode(bytes: &[u8]) -> Result<Self, WireError> {
        let order = Order::from_word(Fields::new(bytes, HEADER_PREFIX, Order::Little)?.raw(32));
        let order = order.map_err(|e| if starts_with_magic(bytes) { e } else { WireError::Magic })?;
        let fields = Fields::new(bytes, HEADER_PREFIX, order)?;
        if fields.text(0, 32) != MAGIC {
            return Err(WireError::Magic);
        }
        Ok(Self {
            order,
            phase: if fields.u32(36) == 2 { Phase::Two } else { Phase::One },
            infos: fields.u32(40),
            protocols: (0..PROTOCOLS as u32)
                .filter(|n| fields.u32(PROTOCOLS_AT + *n as usize * 4) == 1)
                .collect(),
            version: fields.text(VERSION_AT, 16),
        })
    }

    /// Whether it has the long form of layout A.
    pub fn is_long(&self) -> bool {
        self.version == Layout::A.version()
    }
}

fn starts_with_magic(bytes: &[u8]) -> bool {
    bytes.starts_with(MAGIC.as_bytes())
}

/// A slave's answer to a header.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Ack {
    /// Whether the status is `OK`.
    pub ok: bool,
    /// Why not.
    pub message: String,
}

impl Ack {
    /// Yes.
    pub fn yes() -> Self {
        Self { ok: true, message: String::new() }
    }

    /// No, and why.
    pub fn no(message: impl Into<String>) -> Self {
        Self { ok: false, message: message.into() }
    }

    /// Writes it.
    pub fn encode(&self) -> Vec<u8> {
        let mut out = Builder::new(ACK_BYTES, Order::Little);
        out.text(0, 64, if self.ok { "OK" } else { "Not OK" });
        out.text(64, 128, &self.message);
        out.done()
    }

    /// Reads it. The message of a good one may be garbage, so it is dropped.
    ///
    /// # Errors
    /// Cut short.
    pub fn decode(bytes: &[u8]) -> Result<Self, WireError> {
        let fields = Fields::new(bytes, ACK_BYTES, Order::Little)?;
        Ok(match fields.text(0, 64).as_str() {
            "OK" => Self::yes(),
            _ => Self::no(fields.text(64, 128)),
        })
    }
}

/// Writes the acknowledgement of P2, with the slave's ports.
pub fn encode_p2_ack(ack: &Ack, ports: &[Ports], order: Order) -> Vec<u8> {
    let mut count = Builder::new(4, order);
    count.u32(0, ports.len() as u32);
    let mut bytes = [ack.encode(), count.done()].concat();
    bytes.extend(ports.iter().flat_map(|p| encode_ports(p, order)));
    bytes
}

/// Reads the acknowledgement of P2 and how many records of ports follow.
///
/// # Errors
/// Cut short.
pub fn decode_p2_ack(bytes: &[u8], order: Order) -> Result<(Ack, u32), WireError> {
    let fields = Fields::new(bytes, P2_ACK_BYTES, order)?;
    Ok((Ack::decode(bytes)?, fields.u32(ACK_BYTES)))
}

/// Writes a strand's ports.
pub fn encode_ports(ports: &Ports, order: Order) -> Vec<u8> {
    let mut out = Builder::new(SLAVE_INFO_BYTES, order);
    for (index, port) in ports.iter().enumerate() {
        out.u32(HOST_BYTES + index * 4, u32::from(*port));
    }
    out.done()
}

/// Reads a strand's ports.
///
/// # Errors
/// Cut short, or no ports.
pub fn decode_ports(bytes: &[u8], order: Order) -> Result<Ports, WireError> {
    let fields = Fields::new(bytes, SLAVE_INFO_BYTES, order)?;
    let mut ports = Ports::default();
    for (index, port) in ports.iter_mut().enumerate() {
        let number = fields.u32(HOST_BYTES + index * 4);
        *port = u16::try_from(number).map_err(|_| WireError::Unknown { what: "port", number })?;
    }
    Ok(ports)
}

/// What a master tells a running slave.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Command {
    /// Begin transaction of this index.
    Next(u32),
    /// End at once.
    Abort,
    /// Finish, and say goodbye.
    SendStats,
}

impl Command {
    /// Writes it; to be sent in one call, since a real slave takes one read for one command.
    pub fn encode(self, order: Order) -> Vec<u8> {
        let mut out = Builder::new(COMMAND_BYTES, order);
        out.text(0, 64, COMMAND_MAGIC);
        let (number, value) = match self {
            Self::Next(index) => (0, index),
            Self::Abort => (1, 0),
            Self::SendStats => (2, 0),
        };
        out.u32(64, number);
        out.u32(68, value);
        out.done()
    }

    /// Reads it.
    ///
    /// # Errors
    /// Not a command.
    pub fn decode(bytes: &[u8], order: Order) -> Result<Self, WireError> {
        let fields = Fields::new(bytes, COMMAND_BYTES, order)?;
        if fields.text(0, 64) != COMMAND_MAGIC {
            return Err(WireError::CommandMagic);
        }
        match fields.u32(64) {
            0 => Ok(Self::Next(fields.u32(68))),
            1 => Ok(Self::Abort),
            2 => Ok(Self::SendStats),
            number => Err(WireError::Unknown { what: "command", number }),
        }
    }
}

/// What the text of a goodbye is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum GoodbyeKind {
    /// Errors or warnings.
    Error,
    /// Warnings.
    Warning,
    /// All is well.
    #[default]
    Info,
    /// Nothing.
    None,
}

/// A slave's figures at its end.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Goodbye {
    /// What the text is.
    pub kind: GoodbyeKind,
    /// From the end of the handshake to the end of the last strand, nanoseconds.
    pub elapsed_ns: u64,
    /// Always 0 from a real slave.
    pub errors: u64,
    /// Payload moved, both ways.
    pub bytes: u64,
    /// Flowops executed.
    pub operations: u64,
    /// Lines of messages, or `Success`.
    pub text: String,
}

impl Goodbye {
    /// Writes it.
    pub fn encode(&self, order: Order) -> Vec<u8> {
        let mut out = Builder::new(GOODBYE_BYTES, order);
        out.text(0, 64, GOODBYE_MAGIC);
        out.u64(
            64,
            match self.kind {
                GoodbyeKind::Error => 0xaa,
                GoodbyeKind::Warning => 0xbb,
                GoodbyeKind::Info => 0xcc,
                GoodbyeKind::None => 0xdd,
            },
        );
        for (index, value) in [self.elapsed_ns, self.errors, self.bytes, self.operations].iter().enumerate() {
            out.u64(72 + index * 8, *value);
        }
        out.text(104, 512, &self.text);
        out.done()
    }

    /// Reads it.
    ///
    /// # Errors
    /// Not a goodbye.
    pub fn decode(bytes: &[u8], order: Order) -> Result<Self, WireError> {
        let fields = Fields::new(bytes, GOODBYE_BYTES, order)?;
        let magic = fields.text(0, 64);
        if magic != GOODBYE_MAGIC {
            return Err(WireError::GoodbyeMagic(magic));
        }
        Ok(Self {
            kind: match fields.u64(64) {
                0xaa => GoodbyeKind::Error,
                0xbb => GoodbyeKind::Warning,
                0xcc => GoodbyeKind::Info,
                _ => GoodbyeKind::None,
            },
            elapsed_ns: fields.u64(72),
            errors: fields.u64(80),
            bytes: fields.u64(88),
            operations: fields.u64(96),
            text: fields.text(104, 512),
        })
    }
}

/// The protocol that a number in P1 stands for, if it can be opened here.
///
/// # Errors
/// The message of a slave that can't.
pub(crate) fn offered(number: u32) -> Result<Protocol, String> {
    match Protocol::from_number(number) {
        Some(protocol) if protocol.is_offered() => Ok(protocol),
        Some(protocol) => Err(format!("Unsupported protocol:{}", protocol.title())),
        None => Err("Unsupported protocol:uDAPL".into()),
    }
}
