//! TCP (RFC 9293), UDP (RFC 768) and other headers behind IP.

/// TCP flag bits.
pub mod flags {
    /// No more data.
    pub const FIN: u8 = 0x01;
    /// Synchronise.
    pub const SYN: u8 = 0x02;
    /// Reset.
    pub const RST: u8 = 0x04;
    /// Push.
    pub const PSH: u8 = 0x08;
    /// Acknowledgement.
    pub const ACK: u8 = 0x10;
    /// Urgent.
    pub const URG: u8 = 0x20;
    /// ECN echo.
    pub const ECE: u8 = 0x40;
    /// Congestion window reduced.
    pub const CWR: u8 = 0x80;
}

/// A TCP header.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Tcp {
    /// Source port.
    pub from: u16,
    /// Destination port.
    pub to: u16,
    /// Sequence number.
    pub sequence: u32,
    /// Acknowledgement number.
    pub acknowledgement: u32,
    /// Flags of [`flags`].
    pub flags: u8,
    /// Window.
    pub window: u16,
    /// Urgent pointer.
    pub urgent: u16,
    /// Options, padded to a multiple of 4 with zeros; at most 40 bytes.
    pub options: Vec<u8>,
}

impl Tcp {
    /// A data segment.
    pub fn new(from: u16, to: u16) -> Self {
        Self {
            from,
            to,
            sequence: 1,
            acknowledgement: 1,
            flags: flags::ACK,
            window: 0xffff,
            urgent: 0,
            options: Vec::new(),
        }
    }

    /// The timestamps option with two no-operations before it (RFC 7323 appendix A).
    pub fn timestamps(value: u32, echo: u32) -> Vec<u8> {
        let mut options = vec![1, 1, 8, 10];
        options.extend(value.to_be_bytes());
        options.extend(echo.to_be_bytes());
        options
    }
}

/// A UDP header.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Udp {
    /// Source port.
    pub from: u16,
    /// Destination port.
    pub to: u16,
    /// Length field instead of the right one.
    pub wrong_length: Option<u16>,
}

/// What stands behind the IP header.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Transport {
    /// TCP.
    Tcp(Tcp),
    /// UDP.
    Udp(Udp),
    /// Any protocol number, without a header of ours.
    Bare(u8),
}

impl Transport {
    /// Its protocol number.
    pub fn protocol(&self) -> u8 {
        match self {
            Self::Tcp(_) => 6,
            Self::Udp(_) => 17,
            Self::Bare(protocol) => *protocol,
        }
    }

    /// Bytes of its header.
    pub fn header_bytes(&self) -> usize {
        match self {
            Self::Tcp(tcp) => 20 + tcp.options.len().min(40).next_multiple_of(4),
            Self::Udp(_) => 8,
            Self::Bare(_) => 0,
        }
    }

    /// Where its checksum is, bytes from its start.
    pub fn sum_offset(&self) -> Option<usize> {
        match self {
            Self::Tcp(_) => Some(16),
            Self::Udp(_) => Some(6),
            Self::Bare(_) => None,
        }
    }

    /// Its header before a payload, with a checksum of 0.
    pub fn header(&self, payload_bytes: usize) -> Vec<u8> {
        match self {
            Self::Tcp(tcp) => tcp_header(tcp, self.header_bytes()),
            Self::Udp(udp) => {
                let length = udp.wrong_length.unwrap_or((8 + payload_bytes) as u16);
                let words = [udp.from, udp.to, length, 0];
                words.iter().flat_map(|word| word.to_be_bytes()).collect()
            }
            Self::Bare(_) => Vec::new(),
        }
    }
}

fn tcp_header(tcp: &Tcp, length: usize) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(length);
    bytes.extend(tcp.from.to_be_bytes());
    bytes.extend(tcp.to.to_be_bytes());
    bytes.extend(tcp.sequence.to_be_bytes());
    bytes.extend(tcp.acknowledgement.to_be_bytes());
    bytes.extend([((length / 4) as u8) << 4, tcp.flags]);
    bytes.extend(tcp.window.to_be_bytes());
    bytes.extend([0, 0]);
    bytes.extend(tcp.urgent.to_be_bytes());
    bytes.extend(&tcp.options[..tcp.options.len().min(40)]);
    bytes.resize(length, 0);
    bytes
}
