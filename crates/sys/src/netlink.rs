//! Blocking netlink requests, generic over the message type.
//!
//! One socket, one request at a time. Every reply is checked against the request's sequence number, a dump that the
//! kernel calls inconsistent is taken again, and the kernel's own words (extended acknowledgement) reach the error.
//! Message types come from crates that implement the traits of `netlink-packet-core`.
//!
//! Sources: netlink(7), the kernel's Documentation/userspace-api/netlink/intro.rst, linux/netlink.h.

use std::io;

use netlink_packet_core::{
    NLM_F_ACK, NLM_F_DUMP, NLM_F_DUMP_INTR, NLM_F_REQUEST, NLMSG_ALIGNTO, NetlinkDeserializable,
    NetlinkHeader, NetlinkMessage, NetlinkPayload, NetlinkSerializable, NlasIterator, parse_string,
    parse_u32,
};
use netlink_sys::{Socket, SocketAddr};

use crate::error::SysError;

/// `NETLINK_ROUTE`: links, addresses, routes, qdiscs (linux/netlink.h).
pub const ROUTE: isize = libc::NETLINK_ROUTE as isize;
/// `NETLINK_GENERIC`: families with dynamic numbers, ethtool among them (linux/netlink.h).
pub const GENERIC: isize = libc::NETLINK_GENERIC as isize;

const HEADER_LEN: usize = 16;
const SEQUENCE_OFFSET: usize = 8;
const NLMSGERR_ATTR_MSG: u16 = 1;
const NLMSGERR_ATTR_OFFS: u16 = 2;
const NLMSGERR_ATTR_MISS_TYPE: u16 = 5;
const NLM_F_CAPPED: u16 = 0x100;
const NLM_F_ACK_TLVS: u16 = 0x200;

/// How often a dump is taken again because objects changed under it.
const DUMP_ATTEMPTS: u32 = 16;
/// No reply of the kernel comes near this; a larger one is taken for damage.
const MAX_DATAGRAM: usize = 16 << 20;

/// Why a netlink request gave no answer.
#[derive(Debug, thiserror::Error)]
pub enum NetlinkError {
    /// The socket itself failed.
    #[error(transparent)]
    Socket(#[from] SysError),
    /// The kernel refused the request.
    #[error("{operation}: {refusal}")]
    Refused {
        /// What was asked, with its object ("set features of eth0").
        operation: String,
        /// What the kernel said.
        refusal: Refusal,
    },
    /// The reply does not decode.
    #[error("{operation}: malformed reply: {detail}")]
    Malformed {
        /// What was asked.
        operation: String,
        /// What is wrong with the reply.
        detail: String,
    },
    /// Objects kept changing while they were being listed.
    #[error("{operation}: the list changed under each of {attempts} attempts")]
    Inconsistent {
        /// What was asked.
        operation: String,
        /// How many dumps were tried.
        attempts: u32,
    },
}

impl NetlinkError {
    /// The `errno` value, if the kernel gave one.
    pub fn raw_os_error(&self) -> Option<i32> {
        match self {
            Self::Socket(error) => error.raw_os_error(),
            Self::Refused { refusal, .. } => Some(refusal.errno),
            Self::Malformed { .. } | Self::Inconsistent { .. } => None,
        }
    }

    /// The kernel's refusal, if this is one.
    pub fn refusal(&self) -> Option<&Refusal> {
        match self {
            Self::Refused { refusal, .. } => Some(refusal),
            _ => None,
        }
    }
}

/// A negative acknowledgement: `errno` and the extended text, if the kernel gave one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Refusal {
    /// Positive errno value.
    pub errno: i32,
    /// `NLMSGERR_ATTR_MSG`: the kernel's explanation.
    pub message: Option<String>,
    /// `NLMSGERR_ATTR_OFFS`: offset in bytes of the offending attribute within the request.
    pub offset: Option<u32>,
    /// `NLMSGERR_ATTR_MISS_TYPE`: number of the attribute that the request lacks.
    pub missing: Option<u32>,
}

impl std::fmt::Display for Refusal {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}", io::Error::from_raw_os_error(self.errno))?;
        match &self.message {
            Some(message) => write!(f, ": {message}"),
            None => Ok(()),
        }
    }
}

/// What came back for one request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Reply<M> {
    /// The messages, in the kernel's order.
    pub messages: Vec<M>,
    /// The kernel's remark on a request that it carried out all the same.
    pub warning: Option<String>,
}

/// A netlink socket in the namespace in which the calling thread was when it opened it.
#[derive(Debug)]
pub struct Netlink {
    socket: Socket,
    sequence: u32,
}

impl Netlink {
    /// Opens a socket for `protocol` ([`ROUTE`] or [`GENERIC`]) in the calling thread's network namespace.
    ///
    /// # Errors
    /// The kernel's refusal of socket(2), bind(2) or of an option that checking relies on.
    pub fn open(protocol: isize) -> Result<Self, NetlinkError> {
        let failed = |operation| move |error| SysError::new(operation, "netlink socket", error);
        let mut socket = Socket::new(protocol).map_err(failed("open"))?;
        socket.bind_auto().map_err(failed("bind"))?;
        socket.set_cap_ack(true).map_err(failed("set NETLINK_CAP_ACK"))?;
        socket.set_ext_ack(true).map_err(failed("set NETLINK_EXT_ACK"))?;
        socket.set_netlink_get_strict_chk(true).map_err(failed("set NETLINK_GET_STRICT_CHK"))?;
        Ok(Self { socket, sequence: 0 })
    }

    /// Sends one request and collects its replies until the kernel acknowledges it.
    ///
    /// `operation` names the request and its object for errors; `flags` are added to `NLM_F_REQUEST | NLM_F_ACK`.
    ///
    /// # Errors
    /// [`NetlinkError::Refused`] with the kernel's words, or a failure of socket or decoding.
    pub fn request<M>(&mut self, operation: &str, message: M, flags: u16) -> Result<Reply<M>, NetlinkError>
    where
        M: NetlinkSerializable + NetlinkDeserializable,
    {
        let mut request = encode(message, NLM_F_REQUEST | NLM_F_ACK | flags);
        let exchange = self.exchange(operation, &mut request)?;
        Ok(Reply { messages: exchange.messages, warning: exchange.warning })
    }

    /// Lists all objects that match `message`; taken again when the kernel says that the list changed under it.
    ///
    /// # Errors
    /// As [`Self::request`], and [`NetlinkError::Inconsistent`] when no attempt gave a whole list.
    pub fn dump<M>(&mut self, operation: &str, message: M) -> Result<Vec<M>, NetlinkError>
    where
        M: NetlinkSerializable + NetlinkDeserializable,
    {
        let mut request = encode(message, NLM_F_REQUEST | NLM_F_DUMP);
        for _ in 0..DUMP_ATTEMPTS {
            let exchange = self.exchange(operation, &mut request)?;
            if !exchange.interrupted {
                return Ok(exchange.messages);
            }
        }
        Err(NetlinkError::Inconsistent { operation: operation.to_owned(), attempts: DUMP_ATTEMPTS })
    }

    fn exchange<M: NetlinkDeserializable>(
        &mut self,
        operation: &str,
        request: &mut [u8],
    ) -> Result<Exchange<M>, NetlinkError> {
        self.sequence = self.sequence.wrapping_add(1);
        request[SEQUENCE_OFFSET..SEQUENCE_OFFSET + 4].copy_from_slice(&self.sequence.to_ne_bytes());
        self.send(operation, request)?;
        let mut exchange = Exchange::new(self.sequence);
        while !exchange.complete {
            let datagram = self.receive(operation)?;
            exchange.take(operation, &datagram)?;
        }
        Ok(exchange)
    }

    fn send(&self, operation: &str, request: &[u8]) -> Result<(), NetlinkError> {
        let kernel = SocketAddr::new(0, 0);
        loop {
            match self.socket.send_to(request, &kernel, 0) {
                Ok(_) => return Ok(()),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(SysError::new("send netlink request", operation, error).into()),
            }
        }
    }

    /// One whole datagram from the kernel; its size is peeked at first, so that none is cut.
    fn receive(&self, operation: &str) -> Result<Vec<u8>, NetlinkError> {
        let mut datagram = Vec::with_capacity(1);
        loop {
            let size = self.receive_into(operation, &mut datagram, libc::MSG_PEEK | libc::MSG_TRUNC)?.0;
            if size > MAX_DATAGRAM {
                let detail = format!("datagram of {size} bytes");
                return Err(NetlinkError::Malformed { operation: operation.to_owned(), detail });
            }
            datagram.clear();
            datagram.reserve(size);
            let (_, sender) = self.receive_into(operation, &mut datagram, 0)?;
            if sender.port_number() == 0 {
                return Ok(datagram);
            }
            // Another process may write to our port; only port 0 is the kernel.
            datagram.clear();
        }
    }

    fn receive_into(
        &self,
        operation: &str,
        buffer: &mut Vec<u8>,
        flags: libc::c_int,
    ) -> Result<(usize, SocketAddr), NetlinkError> {
        loop {
            match self.socket.recv_from(buffer, flags) {
                Ok(received) => return Ok(received),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(SysError::new("receive netlink reply", operation, error).into()),
            }
        }
    }
}

fn encode<M: NetlinkSerializable>(message: M, flags: u16) -> Vec<u8> {
    let mut header = NetlinkHeader::default();
    header.flags = flags;
    let mut packet = NetlinkMessage::new(header, NetlinkPayload::InnerMessage(message));
    packet.finalize();
    let mut bytes = vec![0; packet.buffer_len()];
    packet.serialize(&mut bytes);
    bytes
}

/// The state of one request's replies; fed datagrams, does no I/O.
struct Exchange<M> {
    sequence: u32,
    messages: Vec<M>,
    warning: Option<String>,
    interrupted: bool,
    complete: bool,
}

impl<M: NetlinkDeserializable> Exchange<M> {
    fn new(sequence: u32) -> Self {
        Self { sequence, messages: Vec::new(), warning: None, interrupted: false, complete: false }
    }

    fn take(&mut self, operation: &str, datagram: &[u8]) -> Result<(), NetlinkError> {
        let malformed = |detail| NetlinkError::Malformed { operation: operation.to_owned(), detail };
        let mut rest = datagram;
        while !rest.is_empty() && !self.complete {
            let length = message_length(rest).map_err(malformed)?;
            self.take_message(operation, &rest[..length])?;
            rest = rest.get(align(length)..).unwrap_or_default();
        }
        Ok(())
    }

    fn take_message(&mut self, operation: &str, bytes: &[u8]) -> Result<(), NetlinkError> {
        let malformed = |detail| NetlinkError::Malformed { operation: operation.to_owned(), detail };
        // Left over from a request whose replies were not read to their end.
        if bytes[SEQUENCE_OFFSET..SEQUENCE_OFFSET + 4] != self.sequence.to_ne_bytes() {
            return Ok(());
        }
        let message =
            NetlinkMessage::<M>::deserialize(bytes).map_err(|error| malformed(error.to_string()))?;
        self.interrupted |= message.header.flags & NLM_F_DUMP_INTR != 0;
        let flags = message.header.flags;
        match message.payload {
            NetlinkPayload::InnerMessage(inner) => self.messages.push(inner),
            NetlinkPayload::Done(done) => {
                self.end(operation, done.code, extended(flags, &done.extended_ack))?;
            }
            NetlinkPayload::Error(error) => {
                let attributes = extended(flags, error_attributes(flags, &error.header));
                self.end(operation, error.raw_code(), attributes)?;
            }
            NetlinkPayload::Overrun(_) => return Err(malformed("the kernel lost data".to_owned())),
            _ => {}
        }
        Ok(())
    }

    fn end(&mut self, operation: &str, code: i32, attributes: &[u8]) -> Result<(), NetlinkError> {
        self.complete = true;
        let refusal = refusal(code, attributes);
        if code < 0 {
            return Err(NetlinkError::Refused { operation: operation.to_owned(), refusal });
        }
        self.warning = refusal.message;
        Ok(())
    }
}

/// The length of the first message in `bytes`, header included, checked against what is there.
fn message_length(bytes: &[u8]) -> Result<usize, String> {
    let Some((length, _)) = bytes.split_first_chunk::<4>() else {
        return Err(format!("{} stray bytes", bytes.len()));
    };
    let length = u32::from_ne_bytes(*length) as usize;
    if length < HEADER_LEN || length > bytes.len() {
        return Err(format!("message of {length} bytes in {}", bytes.len()));
    }
    Ok(length)
}

/// For fuzzers: reads any bytes as the kernel's answer to a request, attributes of refusals included.
pub fn fuzz_decode<M: NetlinkDeserializable>(bytes: &[u8]) {
    let sequence =
        bytes.get(SEQUENCE_OFFSET..).and_then(|b| b.first_chunk()).map_or(0, |b| u32::from_ne_bytes(*b));
    // What is wrong with them is of no interest here.
    let _ = Exchange::<M>::new(sequence).take("fuzz", bytes);
}

const fn align(length: usize) -> usize {
    let to = NLMSG_ALIGNTO as usize;
    length.div_ceil(to) * to
}

/// The attributes of an acknowledgement; without this flag the bytes are something else.
fn extended(flags: u16, bytes: &[u8]) -> &[u8] {
    if flags & NLM_F_ACK_TLVS == 0 { &[] } else { bytes }
}

/// What follows the request that an error message quotes: its header alone when capped, else all of it.
fn error_attributes(flags: u16, quoted: &[u8]) -> &[u8] {
    let skip = match quoted.split_first_chunk::<4>() {
        Some((length, _)) if flags & NLM_F_CAPPED == 0 => align(u32::from_ne_bytes(*length) as usize),
        _ => HEADER_LEN,
    };
    quoted.get(skip..).unwrap_or_default()
}

fn refusal(code: i32, attributes: &[u8]) -> Refusal {
    let mut refusal = Refusal { errno: code.saturating_neg(), message: None, offset: None, missing: None };
    // A damaged remark must not hide the refusal itself: attributes that do not decode are left out.
    for attribute in NlasIterator::new(attributes).flatten() {
        match attribute.kind() {
            NLMSGERR_ATTR_MSG => refusal.message = parse_string(attribute.value()).ok(),
            NLMSGERR_ATTR_OFFS => refusal.offset = parse_u32(attribute.value()).ok(),
            NLMSGERR_ATTR_MISS_TYPE => refusal.missing = parse_u32(attribute.value()).ok(),
            _ => {}
        }
    }
    refusal
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::netlink_raw::RawMessage as Raw;

    const RTM_GETLINK: u16 = 18;
    /// struct ifinfomsg: family, pad, type, index, flags, change.
    const IFINFOMSG: [u8; 16] = [0; 16];

    fn message(kind: u16, flags: u16, sequence: u32, payload: &[u8]) -> Vec<u8> {
        let mut bytes = Vec::new();
        bytes.extend((HEADER_LEN as u32 + payload.len() as u32).to_ne_bytes());
        bytes.extend(kind.to_ne_bytes());
        bytes.extend(flags.to_ne_bytes());
        bytes.extend(sequence.to_ne_bytes());
        bytes.extend(0u32.to_ne_bytes());
        bytes.extend(payload);
        bytes.resize(align(bytes.len()), 0);
        bytes
    }

    #[test]
    fn lists_links_of_this_namespace() {
        let mut netlink = Netlink::open(ROUTE).unwrap();
        let request = Raw { kind: RTM_GETLINK, payload: IFINFOMSG.to_vec() };
        let links = netlink.dump("list links", request).unwrap();
        assert!(links.iter().any(|link| link.payload[4..8] == 1i32.to_ne_bytes()), "loopback is index 1");
        assert!(links.iter().all(|link| link.kind == 16), "all are RTM_NEWLINK");
    }

    #[test]
    fn one_socket_serves_many_requests_and_carries_the_kernels_words() {
        let mut netlink = Netlink::open(ROUTE).unwrap();
        // An index that no link has, then a request that strict checking must refuse.
        let mut absent = IFINFOMSG;
        absent[4..8].copy_from_slice(&0x7fff_fff0_i32.to_ne_bytes());
        let error =
            netlink.request("show link", Raw { kind: RTM_GETLINK, payload: absent.to_vec() }, 0).unwrap_err();
        assert_eq!(error.raw_os_error(), Some(libc::ENODEV));
        assert!(error.to_string().starts_with("show link: No such device"), "{error}");

        let mut strict = IFINFOMSG;
        strict[2] = 1;
        let error =
            netlink.dump("list links", Raw { kind: RTM_GETLINK, payload: strict.to_vec() }).unwrap_err();
        let refusal = error.refusal().expect("a refusal");
        assert_eq!(refusal.errno, libc::EINVAL);
        assert!(refusal.message.as_ref().is_some_and(|text| text.contains("Invalid values")), "{error}");

        let mut lo = IFINFOMSG;
        lo[4] = 1;
        let reply = netlink.request("show link", Raw { kind: RTM_GETLINK, payload: lo.to_vec() }, 0).unwrap();
        assert_eq!(reply.messages.len(), 1);
        assert_eq!(reply.warning, None);
    }

    #[test]
    fn replies_to_other_requests_are_left_alone() {
        let mut exchange = Exchange::<Raw>::new(7);
        let mut datagram = message(16, 0, 6, b"old!");
        datagram.extend(message(16, 0, 7, b"mine"));
        datagram.extend(message(3, 0, 7, &0u32.to_ne_bytes()));
        exchange.take("x", &datagram).unwrap();
        assert!(exchange.complete);
        assert_eq!(exchange.messages, [Raw { kind: 16, payload: b"mine".to_vec() }]);
    }

    #[test]
    fn an_interrupted_dump_is_noticed_wherever_the_flag_stands() {
        for flagged in 0..2 {
            let mut exchange = Exchange::<Raw>::new(1);
            let flag = |at| if at == flagged { NLM_F_DUMP_INTR } else { 0 };
            let mut datagram = message(16, flag(0), 1, b"");
            datagram.extend(message(3, flag(1), 1, &0u32.to_ne_bytes()));
            exchange.take("x", &datagram).unwrap();
            assert!(exchange.interrupted);
        }
    }

    #[test]
    fn extended_text_is_found_with_and_without_the_quoted_payload() {
        let mut text = vec![7, 0, 1, 0, b'n', b'o', 0, 0];
        text.extend([8, 0, 2, 0, 48, 0, 0, 0]);
        for capped in [true, false] {
            let mut payload = (-libc::EINVAL).to_ne_bytes().to_vec();
            payload.extend(message(20, 0, 1, b"quoted payload!!"));
            if capped {
                payload.truncate(4 + HEADER_LEN);
            }
            payload.extend(&text);
            let flags = NLM_F_ACK_TLVS | if capped { NLM_F_CAPPED } else { 0 };
            let error = Exchange::<Raw>::new(1).take("ask", &message(2, flags, 1, &payload)).unwrap_err();
            let expected = Refusal {
                errno: libc::EINVAL,
                message: Some("no".to_owned()),
                offset: Some(48),
                missing: None,
            };
            assert_eq!(error.refusal(), Some(&expected));
        }
    }

    proptest! {
        #[test]
        fn hostile_datagrams_never_panic(bytes in proptest::collection::vec(any::<u8>(), 0..256)) {
            let _ = Exchange::<Raw>::new(1).take("x", &bytes);
        }

        #[test]
        fn hostile_messages_never_panic(
            kind in 0u16..6,
            flags in any::<u16>(),
            payload in proptest::collection::vec(any::<u8>(), 0..96),
        ) {
            let _ = Exchange::<Raw>::new(1).take("x", &message(kind, flags, 1, &payload));
        }
    }
}
