//! What a client asks for: one test, in the omni record or in one of the classic ones.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use super::wire::Message;

/// Which record a test's messages use. The response's type is the request's plus 1.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Layout {
    /// One record for all tests (97), what clients of 2.7.0 and newer send.
    Omni,
    /// Classic TCP_STREAM (10), also TCP_SENDFILE and TCP_MSS of new clients.
    TcpStream,
    /// Classic TCP_RR (13).
    TcpRr,
    /// Classic UDP_STREAM (16).
    UdpStream,
    /// Classic UDP_RR (19).
    UdpRr,
    /// Classic TCP_CRR (34).
    TcpCrr,
    /// Classic TCP_MAERTS (94).
    TcpMaerts,
    /// TCP_CC (300), classic only.
    TcpCc,
}

impl Layout {
    /// All of them.
    pub const ALL: [Self; 8] = [
        Self::Omni,
        Self::TcpStream,
        Self::TcpRr,
        Self::UdpStream,
        Self::UdpRr,
        Self::TcpCrr,
        Self::TcpMaerts,
        Self::TcpCc,
    ];

    /// Type word of the request.
    pub fn kind(self) -> i32 {
        match self {
            Self::Omni => 97,
            Self::TcpStream => 10,
            Self::TcpRr => 13,
            Self::UdpStream => 16,
            Self::UdpRr => 19,
            Self::TcpCrr => 34,
            Self::TcpMaerts => 94,
            Self::TcpCc => 300,
        }
    }

    /// The layout of a request's type word.
    pub fn of(kind: i32) -> Option<Self> {
        Self::ALL.into_iter().find(|layout| layout.kind() == kind)
    }
}

/// How data flows, as the client sees it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Pattern {
    /// The client sends.
    Stream,
    /// The server sends.
    Maerts,
    /// Request and response over one connection, or by datagrams.
    Rr,
    /// A connection for each request and response.
    Crr,
    /// A connection for nothing: connect and close.
    Cc,
}

/// Protocol of the data.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Transport {
    /// TCP.
    Tcp,
    /// UDP.
    Udp,
}

/// When a test ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Length {
    /// After seconds.
    Seconds(u32),
    /// After bytes (one way) or transactions.
    Count(u64),
    /// When the client is done.
    Unlimited,
}

/// One test, as asked for. Sizes in bytes; -1 is the system's default, for send and receive sizes 0 too.
#[derive(Debug, Clone, PartialEq)]
pub struct Request {
    /// Record that it came in.
    pub layout: Layout,
    /// CPU that the server is to bind to; -1 is none.
    pub bind_cpu: i32,
    /// How data flows.
    pub pattern: Pattern,
    /// Protocol of the data.
    pub transport: Transport,
    /// When it ends.
    pub length: Length,
    /// Server's SO_SNDBUF.
    pub send_buffer: i32,
    /// Server's SO_RCVBUF.
    pub receive_buffer: i32,
    /// Bytes of the server's send calls.
    pub send_size: i32,
    /// Bytes of the server's receive calls.
    pub receive_size: i32,
    /// Send buffers in the ring; 0 is the server's choice.
    pub send_width: i32,
    /// Receive buffers in the ring.
    pub receive_width: i32,
    /// Alignment and offset of send buffers.
    pub send_align: [u32; 2],
    /// Alignment and offset of receive buffers.
    pub receive_align: [u32; 2],
    /// Request bytes.
    pub request_size: i32,
    /// Response bytes.
    pub response_size: i32,
    /// Whether both ends set TCP_NODELAY.
    pub nodelay: bool,
    /// Whether the server measures its CPUs.
    pub measure_cpu: bool,
    /// Whether datagrams go without checksum.
    pub no_checksum: bool,
    /// Whether routing is allowed (else SO_DONTROUTE).
    pub routing: bool,
    /// Whether the server keeps the data connection alive.
    pub keepalive: bool,
    /// Whether the server connects its UDP socket.
    pub connect_server: bool,
    /// The server's rate from the iteration before.
    pub cpu_rate: f32,
    /// Data port wanted; 0 is any.
    pub port: u16,
    /// 4 or 6; 0 is not said.
    pub family: u8,
    /// The client's data port, where it is known before.
    pub client_port: u16,
    /// Messages of a burst, and microseconds from one to the next; 0 is unpaced.
    pub interval: [u32; 2],
    /// Address that the client sends data from, if it said.
    pub client_address: Option<IpAddr>,
    /// Address that the server is to bind, if the client said.
    pub server_address: Option<IpAddr>,
    /// SO_PRIORITY; -1 is none.
    pub priority: i32,
    /// TOS or traffic class; -1 is none.
    pub tos: i32,
    /// Congestion control; empty is the system's.
    pub congestion: String,
    /// File that the server is to send from; only ever refused.
    pub fill_file: String,
    /// Whether to receive and send without copies.
    pub avoid_copy: [bool; 2],
}

/// Why a request can't be served: it is told to the client as an error number.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum RequestError {
    /// The type word means nothing.
    #[error("request of unknown type {0}")]
    UnknownType(i32),
    /// A socket type, protocol or direction that is not offered.
    #[error("a test of socket type {socket_type}, protocol {protocol}, direction {direction} is not offered")]
    Unsupported {
        /// 1 stream, 2 datagram.
        socket_type: u32,
        /// IP protocol number.
        protocol: u32,
        /// 2 the server sends, 4 it receives.
        direction: u32,
    },
}

const FLAG_NODELAY: u32 = 0x1;
const FLAG_CONNECT: u32 = 0x4;
const FLAG_MEASURE_CPU: u32 = 0x8;
const FLAG_NO_CHECKSUM: u32 = 0x10;
const FLAG_ROUTING: u32 = 0x20;
const FLAG_CONNECT_SERVER: u32 = 0x4000;
const FLAG_KEEPALIVE: u32 = 0x8000_0000;

const SERVER_SENDS: u32 = 2;
const SERVER_RECEIVES: u32 = 4;
const STREAM: u32 = 1;
const DATAGRAM: u32 = 2;
const TCP: u32 = 6;
const UDP: u32 = 17;

impl Request {
    /// A test with everything at its default.
    pub fn new(layout: Layout, pattern: Pattern, transport: Transport, length: Length) -> Self {
        Self {
            layout,
            bind_cpu: -1,
            pattern,
            transport,
            length,
            send_buffer: -1,
            receive_buffer: -1,
            send_size: -1,
            receive_size: -1,
            send_width: 0,
            receive_width: 0,
            send_align: [8, 0],
            receive_align: [8, 0],
            request_size: -1,
            response_size: -1,
            nodelay: false,
            measure_cpu: false,
            no_checksum: false,
            routing: true,
            keepalive: false,
            connect_server: false,
            cpu_rate: 0.0,
            port: 0,
            family: 4,
            client_port: 0,
            interval: [0, 0],
            client_address: None,
            server_address: None,
            priority: -1,
            tos: -1,
            congestion: String::new(),
            fill_file: String::new(),
            avoid_copy: [false, false],
        }
    }

    /// Reads a request of any layout.
    ///
    /// # Errors
    /// The type is unknown, or the test is none that is offered.
    pub fn decode(message: &Message) -> Result<Self, RequestError> {
        let layout = Layout::of(message.kind()).ok_or_else(|| RequestError::UnknownType(message.kind()))?;
        let mut request = match layout {
            Layout::Omni => Self::decode_omni(message)?,
            Layout::TcpStream | Layout::TcpMaerts => Self::decode_stream(layout, message),
            Layout::UdpStream => Self::decode_udp_stream(message),
            Layout::TcpRr | Layout::UdpRr | Layout::TcpCrr | Layout::TcpCc => {
                Self::decode_rr(layout, message)
            }
        };
        request.bind_cpu = message.second();
        Ok(request)
    }

    /// The message for it.
    pub fn encode(&self) -> Message {
        let mut message = Message::new(self.layout.kind(), self.bind_cpu);
        match self.layout {
            Layout::Omni => self.encode_omni(&mut message),
            Layout::TcpStream | Layout::TcpMaerts => self.encode_stream(&mut message),
            Layout::UdpStream => self.encode_udp_stream(&mut message),
            Layout::TcpRr | Layout::UdpRr | Layout::TcpCrr | Layout::TcpCc => self.encode_rr(&mut message),
        }
        message
    }

    fn decode_omni(m: &Message) -> Result<Self, RequestError> {
        let flags = m.u32(56);
        let (socket_type, protocol, direction) = (m.u32(96), m.u32(100), m.u32(104));
        let unsupported = RequestError::Unsupported { socket_type, protocol, direction };
        let transport = match (socket_type, protocol) {
            (STREAM, TCP | 0) => Transport::Tcp,
            (DATAGRAM, UDP | 0) => Transport::Udp,
            _ => return Err(unsupported),
        };
        let connect = flags & FLAG_CONNECT != 0;
        let pattern = match (direction & (SERVER_SENDS | SERVER_RECEIVES), connect) {
            (0, true) => Pattern::Cc,
            (_, true) => Pattern::Crr,
            (SERVER_RECEIVES, false) => Pattern::Stream,
            (SERVER_SENDS, false) => Pattern::Maerts,
            (_, false) => Pattern::Rr,
        };
        if connect && transport == Transport::Udp {
            return Err(unsupported);
        }
        let family = m.u32(92) as u8;
        Ok(Self {
            send_buffer: m.i32(8),
            send_size: m.i32(12),
            send_align: [m.u32(16), m.u32(20)],
            send_width: m.i32(24),
            request_size: m.i32(28),
            receive_buffer: m.i32(32),
            receive_size: m.i32(36),
            receive_align: [m.u32(40), m.u32(44)],
            receive_width: m.i32(48),
            response_size: m.i32(52),
            nodelay: flags & FLAG_NODELAY != 0,
            measure_cpu: flags & FLAG_MEASURE_CPU != 0,
            no_checksum: flags & FLAG_NO_CHECKSUM != 0,
            routing: flags & FLAG_ROUTING != 0,
            connect_server: flags & FLAG_CONNECT_SERVER != 0,
            keepalive: flags & FLAG_KEEPALIVE != 0,
            cpu_rate: m.f32(60),
            avoid_copy: [m.u32(68) != 0, m.u32(72) != 0],
            port: m.u32(88) as u16,
            family,
            client_port: m.u32(108) as u16,
            interval: [m.u32(112), m.u32(116)],
            client_address: address(m, 120, family),
            server_address: address(m, 136, family),
            priority: m.i32(152),
            tos: m.i32(156),
            congestion: m.text(160, 16),
            fill_file: m.text(176, 32),
            ..Self::new(Layout::Omni, pattern, transport, length(m.i32(64)))
        })
    }

    fn encode_omni(&self, m: &mut Message) {
        let mut flags = 0;
        for (flag, on) in [
            (FLAG_NODELAY, self.nodelay),
            (FLAG_CONNECT, matches!(self.pattern, Pattern::Crr | Pattern::Cc)),
            (FLAG_MEASURE_CPU, self.measure_cpu),
            (FLAG_NO_CHECKSUM, self.no_checksum),
            (FLAG_ROUTING, self.routing),
            (FLAG_CONNECT_SERVER, self.connect_server),
            (FLAG_KEEPALIVE, self.keepalive),
        ] {
            flags |= if on { flag } else { 0 };
        }
        let (socket_type, protocol) = match self.transport {
            Transport::Tcp => (STREAM, TCP),
            Transport::Udp => (DATAGRAM, UDP),
        };
        let direction = match self.pattern {
            Pattern::Stream => SERVER_RECEIVES,
            Pattern::Maerts => SERVER_SENDS,
            Pattern::Rr | Pattern::Crr => SERVER_SENDS | SERVER_RECEIVES,
            Pattern::Cc => 0,
        };
        m.put_i32(8, self.send_buffer);
        m.put_i32(12, self.send_size);
        m.put_u32(16, self.send_align[0]);
        m.put_u32(20, self.send_align[1]);
        m.put_i32(24, self.send_width);
        m.put_i32(28, self.request_size);
        m.put_i32(32, self.receive_buffer);
        m.put_i32(36, self.receive_size);
        m.put_u32(40, self.receive_align[0]);
        m.put_u32(44, self.receive_align[1]);
        m.put_i32(48, self.receive_width);
        m.put_i32(52, self.response_size);
        m.put_u32(56, flags);
        m.put_f32(60, self.cpu_rate);
        m.put_i32(64, self.length_word());
        m.put_u32(68, self.avoid_copy[0].into());
        m.put_u32(72, self.avoid_copy[1].into());
        for at in [76, 80, 84] {
            m.put_i32(at, -1);
        }
        m.put_u32(88, self.port.into());
        m.put_u32(92, self.family.into());
        m.put_u32(96, socket_type);
        m.put_u32(100, protocol);
        m.put_u32(104, direction);
        m.put_u32(108, self.client_port.into());
        m.put_u32(112, self.interval[0]);
        m.put_u32(116, self.interval[1]);
        put_address(m, 120, self.client_address);
        put_address(m, 136, self.server_address);
        m.put_i32(152, self.priority);
        m.put_i32(156, self.tos);
        m.put_text(160, 16, &self.congestion);
        m.put_text(176, 32, &self.fill_file);
    }

    /// Seconds, or a negative count.
    fn length_word(&self) -> i32 {
        match self.length {
            Length::Seconds(seconds) => i32::try_from(seconds).unwrap_or(i32::MAX),
            Length::Count(count) => i32::try_from(count).map_or(i32::MIN, |count| -count),
            Length::Unlimited => 0,
        }
    }

    fn decode_stream(layout: Layout, m: &Message) -> Self {
        let receives = layout == Layout::TcpStream;
        let pattern = if receives { Pattern::Stream } else { Pattern::Maerts };
        let (size, align) = (m.i32(16), [m.u32(20), m.u32(24)]);
        Self {
            send_buffer: m.i32(8),
            receive_buffer: m.i32(12),
            receive_size: if receives { size } else { -1 },
            send_size: if receives { -1 } else { size },
            receive_align: if receives { align } else { [8, 0] },
            send_align: if receives { [8, 0] } else { align },
            nodelay: m.u32(28) != 0,
            measure_cpu: m.u32(32) != 0,
            cpu_rate: m.f32(36),
            avoid_copy: [m.u32(44) != 0, m.u32(48) != 0],
            port: m.u32(60) as u16,
            family: m.u32(64) as u8,
            ..Self::new(layout, pattern, Transport::Tcp, length(m.i32(40)))
        }
    }

    fn encode_stream(&self, m: &mut Message) {
        let receives = self.layout == Layout::TcpStream;
        let (size, align) = if receives {
            (self.receive_size, self.receive_align)
        } else {
            (self.send_size, self.send_align)
        };
        m.put_i32(8, self.send_buffer);
        m.put_i32(12, self.receive_buffer);
        m.put_i32(16, size.max(0));
        m.put_u32(20, align[0]);
        m.put_u32(24, align[1]);
        m.put_u32(28, self.nodelay.into());
        m.put_u32(32, self.measure_cpu.into());
        m.put_f32(36, self.cpu_rate);
        // A count of bytes goes as a positive number here.
        m.put_i32(40, self.length_word().saturating_abs());
        m.put_u32(44, self.avoid_copy[0].into());
        m.put_u32(48, self.avoid_copy[1].into());
        m.put_u32(60, self.port.into());
        m.put_u32(64, self.family.into());
    }

    fn decode_udp_stream(m: &Message) -> Self {
        Self {
            receive_buffer: m.i32(8),
            receive_size: m.i32(12),
            connect_server: m.u32(16) != 0,
            receive_align: [m.u32(20), m.u32(24)],
            no_checksum: m.u32(28) != 0,
            measure_cpu: m.u32(32) != 0,
            cpu_rate: m.f32(36),
            port: m.u32(52) as u16,
            family: m.u32(56) as u8,
            ..Self::new(Layout::UdpStream, Pattern::Stream, Transport::Udp, length(m.i32(40)))
        }
    }

    fn encode_udp_stream(&self, m: &mut Message) {
        m.put_i32(8, self.receive_buffer);
        m.put_i32(12, self.receive_size);
        m.put_u32(16, self.connect_server.into());
        m.put_u32(20, self.receive_align[0]);
        m.put_u32(24, self.receive_align[1]);
        m.put_u32(28, self.no_checksum.into());
        m.put_u32(32, self.measure_cpu.into());
        m.put_f32(36, self.cpu_rate);
        m.put_i32(40, self.length_word());
        m.put_u32(52, self.port.into());
        m.put_u32(56, self.family.into());
    }

    fn decode_rr(layout: Layout, m: &Message) -> Self {
        let pattern = match layout {
            Layout::TcpCrr => Pattern::Crr,
            Layout::TcpCc => Pattern::Cc,
            _ => Pattern::Rr,
        };
        let transport = if layout == Layout::UdpRr { Transport::Udp } else { Transport::Tcp };
        Self {
            receive_buffer: m.i32(8),
            send_buffer: m.i32(12),
            receive_align: [m.u32(16), m.u32(20)],
            send_align: [m.u32(24), m.u32(28)],
            request_size: m.i32(32),
            response_size: m.i32(36),
            nodelay: m.u32(40) != 0,
            measure_cpu: m.u32(44) != 0,
            cpu_rate: m.f32(48),
            port: m.u32(64) as u16,
            family: m.u32(68) as u8,
            ..Self::new(layout, pattern, transport, length(m.i32(52)))
        }
    }

    fn encode_rr(&self, m: &mut Message) {
        m.put_i32(8, self.receive_buffer);
        m.put_i32(12, self.send_buffer);
        m.put_u32(16, self.receive_align[0]);
        m.put_u32(20, self.receive_align[1]);
        m.put_u32(24, self.send_align[0]);
        m.put_u32(28, self.send_align[1]);
        m.put_i32(32, self.request_size);
        m.put_i32(36, self.response_size);
        m.put_u32(40, self.nodelay.into());
        m.put_u32(44, self.measure_cpu.into());
        m.put_f32(48, self.cpu_rate);
        m.put_i32(52, self.length_word());
        m.put_u32(64, self.port.into());
        m.put_u32(68, self.family.into());
    }
}

fn length(word: i32) -> Length {
    match word {
        0 => Length::Unlimited,
        1.. => Length::Seconds(word.unsigned_abs()),
        _ => Length::Count(word.unsigned_abs().into()),
    }
}

/// Four words; an IPv6 address has the bytes of each reversed, as little-endian hosts send it. All zero is none.
fn address(m: &Message, at: usize, family: u8) -> Option<IpAddr> {
    if family != 6 {
        let v4 = Ipv4Addr::from(m.u32(at));
        return (!v4.is_unspecified()).then_some(v4.into());
    }
    let mut octets = [0; 16];
    for (index, word) in octets.chunks_exact_mut(4).enumerate() {
        word.copy_from_slice(&m.u32(at + 4 * index).to_le_bytes());
    }
    let v6 = Ipv6Addr::from(octets);
    (!v6.is_unspecified()).then_some(v6.into())
}

fn put_address(m: &mut Message, at: usize, address: Option<IpAddr>) {
    match address {
        None => {}
        Some(IpAddr::V4(v4)) => m.put_u32(at, v4.into()),
        Some(IpAddr::V6(v6)) => {
            for (index, word) in v6.octets().chunks_exact(4).enumerate() {
                let bytes = word.try_into().unwrap_or_default();
                m.put_u32(at + 4 * index, u32::from_le_bytes(bytes));
            }
        }
    }
}

#[cfg(test)]
mod tests;
