//! Profiles in uperf's sense: groups of strands, their transactions, and the flowops in these.

use serde::{Deserialize, Serialize};

/// A data protocol, with its number on the wire.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
#[repr(u32)]
pub enum Protocol {
    /// A flowop that opens no connection has none.
    #[default]
    None = 0,
    /// TCP.
    Tcp = 1,
    /// UDP.
    Udp = 3,
    /// Reliable datagram sockets.
    Rds = 4,
    /// TLS over TCP.
    Ssl = 5,
    /// SCTP.
    Sctp = 6,
    /// Sockets between virtual machine and host.
    Vsock = 7,
}

/// Numbers of protocols, and so ports of a strand, on the wire.
pub const PROTOCOLS: usize = 8;

impl Protocol {
    /// All with a name.
    pub const ALL: [Self; 6] = [Self::Tcp, Self::Udp, Self::Rds, Self::Ssl, Self::Sctp, Self::Vsock];

    /// The name in profiles.
    pub fn name(self) -> &'static str {
        match self {
            Self::None => "none",
            Self::Tcp => "tcp",
            Self::Udp => "udp",
            Self::Rds => "rds",
            Self::Ssl => "ssl",
            Self::Sctp => "sctp",
            Self::Vsock => "vsock",
        }
    }

    /// The name in a slave's messages.
    pub fn title(self) -> &'static str {
        match self {
            Self::None | Self::Rds => "Unknown",
            Self::Tcp => "TCP",
            Self::Udp => "UDP",
            Self::Ssl => "SSL",
            Self::Sctp => "SCTP",
            Self::Vsock => "VSOCK",
        }
    }

    /// The protocol of a number.
    pub fn from_number(number: u32) -> Option<Self> {
        [Self::None].into_iter().chain(Self::ALL).find(|p| *p as u32 == number)
    }

    /// Whether this program can open it.
    pub fn is_offered(self) -> bool {
        matches!(self, Self::Tcp | Self::Udp)
    }
}

/// What a flowop does, with its number on the wire.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
#[repr(u32)]
pub enum Kind {
    /// Receives `size` bytes.
    Read = 1,
    /// Sends `size` bytes.
    Write = 2,
    /// Opens a connection.
    Connect = 3,
    /// Closes one.
    Disconnect = 4,
    /// Takes one.
    Accept = 5,
    /// Does nothing.
    #[default]
    Nop = 6,
    /// Waits, asleep or busy.
    Think = 7,
    /// As write, TCP only.
    Send = 8,
    /// As read, TCP only.
    Recv = 9,
    /// Sends several files in one call; no Linux has it.
    Sendfilev = 10,
    /// Sends a file.
    Sendfile = 11,
}

impl Kind {
    const ALL: [Self; 11] = [
        Self::Read,
        Self::Write,
        Self::Connect,
        Self::Disconnect,
        Self::Accept,
        Self::Nop,
        Self::Think,
        Self::Send,
        Self::Recv,
        Self::Sendfilev,
        Self::Sendfile,
    ];

    /// The name in profiles and tables.
    pub fn name(self) -> &'static str {
        match self {
            Self::Read => "read",
            Self::Write => "write",
            Self::Connect => "connect",
            Self::Disconnect => "disconnect",
            Self::Accept => "accept",
            Self::Nop => "nop",
            Self::Think => "think",
            Self::Send => "send",
            Self::Recv => "recv",
            Self::Sendfilev => "sendfilev",
            Self::Sendfile => "sendfile",
        }
    }

    /// The kind of a name.
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| kind.name() == name)
    }

    /// The kind of a number.
    pub fn from_number(number: u32) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| *kind as u32 == number)
    }

    /// Whether it opens a connection.
    pub fn opens(self) -> bool {
        matches!(self, Self::Connect | Self::Accept)
    }

    /// Whether it takes bytes in.
    pub fn receives(self) -> bool {
        matches!(self, Self::Read | Self::Recv)
    }

    /// Whether it gives bytes out.
    pub fn sends(self) -> bool {
        matches!(self, Self::Write | Self::Send | Self::Sendfile | Self::Sendfilev)
    }
}

/// Bits of a flowop's flags, as they are on the wire.
pub mod flag {
    /// TCP_NODELAY.
    pub const TCP_NODELAY: u32 = 0x02;
    /// A failure of this flowop is ignored.
    pub const CAN_FAIL: u32 = 0x04;
    /// O_NONBLOCK.
    pub const NON_BLOCKING: u32 = 0x08;
    /// Think asleep.
    pub const IDLE: u32 = 0x10;
    /// Think busy.
    pub const BUSY: u32 = 0x20;
    /// Sizes are drawn between two bounds.
    pub const RANDOM_SIZE: u32 = 0x40;
    /// SCTP: messages may overtake each other.
    pub const SCTP_UNORDERED: u32 = 0x80;
    /// SCTP_NODELAY.
    pub const SCTP_NODELAY: u32 = 0x100;
}

/// SCTP's options: carried, since a peer may want them, and not used here.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default)]
pub struct Sctp {
    /// rto_min, rto_max, rto_initial, sack_delay, sack_frequency, max_burst_size, max_fragment_size, hb_interval,
    /// path_mtu, in the order of the wire.
    pub words: [u32; 9],
    /// Outgoing streams, incoming streams, stream id.
    pub streams: [u16; 3],
    /// Value of the partial reliability policy.
    pub pr_value: u32,
    /// Its name.
    pub pr_policy: String,
}

/// One step of a transaction. Sizes are bytes, times nanoseconds.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default)]
pub struct Flowop {
    /// What it does.
    pub kind: Kind,
    /// Bytes of a transfer.
    #[serde(skip_serializing_if = "is_default")]
    pub size: u32,
    /// Bounds of a random size.
    #[serde(skip_serializing_if = "is_default")]
    pub random: (u32, u32),
    /// The far side's size where it is larger.
    #[serde(skip_serializing_if = "is_default")]
    pub rsize: u32,
    /// Of connect and accept.
    #[serde(skip_serializing_if = "is_default")]
    pub protocol: Protocol,
    /// Fixed port of the accepting side; 0 is any.
    #[serde(skip_serializing_if = "is_default")]
    pub port: u32,
    /// Bits: 0x02 `TCP_NODELAY`, 0x04 a failure is ignored, 0x08 `O_NONBLOCK`, 0x10 think asleep, 0x20 think busy,
    /// 0x40 random size, 0x80 SCTP unordered, 0x100 `SCTP_NODELAY`.
    #[serde(skip_serializing_if = "is_default")]
    pub flags: u32,
    /// Files a sendfilev.
    #[serde(skip_serializing_if = "is_default")]
    pub files: u32,
    /// UDP port of SCTP or TCP in UDP.
    #[serde(skip_serializing_if = "is_default")]
    pub encapsulation_port: u32,
    /// Of think.
    #[serde(skip_serializing_if = "is_default")]
    pub duration_ns: u64,
    /// Socket buffers; 0 leaves them.
    #[serde(skip_serializing_if = "is_default")]
    pub window: u64,
    /// Times in a row.
    #[serde(skip_serializing_if = "is_one")]
    pub count: u64,
    /// Times within one operation (UDP, SCTP).
    #[serde(skip_serializing_if = "is_one")]
    pub repeat: u64,
    /// Messages a system call (SCTP).
    #[serde(skip_serializing_if = "is_one")]
    pub batch: u64,
    /// Longest wait of a transfer; 0 is without end.
    #[serde(skip_serializing_if = "is_default")]
    pub timeout_ns: u64,
    /// FreeBSD's TCP log.
    #[serde(skip_serializing_if = "is_default")]
    pub bblog: u32,
    /// SCTP's options.
    #[serde(skip_serializing_if = "is_default")]
    pub sctp: Sctp,
    /// Congestion control.
    #[serde(skip_serializing_if = "is_default")]
    pub congestion: String,
    /// FreeBSD's TCP stack.
    #[serde(skip_serializing_if = "is_default")]
    pub stack: String,
    /// Folder of the files to send.
    #[serde(skip_serializing_if = "is_default")]
    pub folder: String,
    /// The other end, of connect and accept; of others which slave does it.
    #[serde(skip_serializing_if = "is_default")]
    pub remote_host: String,
    /// Local address of RDS.
    #[serde(skip_serializing_if = "is_default")]
    pub local_host: String,
    /// Of SSL.
    #[serde(skip_serializing_if = "is_default")]
    pub engine: String,
    /// Of SSL.
    #[serde(skip_serializing_if = "is_default")]
    pub cipher: String,
    /// Of SSL.
    #[serde(skip_serializing_if = "is_default")]
    pub method: String,
    /// Name of the connection within its strand; 0 is the nameless one.
    #[serde(skip_serializing_if = "is_default")]
    pub connection: u32,
}

fn is_default<T: Default + PartialEq>(value: &T) -> bool {
    *value == T::default()
}

fn is_one(value: &u64) -> bool {
    *value == 1
}

impl Default for Flowop {
    fn default() -> Self {
        Self {
            kind: Kind::Nop,
            size: 0,
            random: (0, 0),
            rsize: 0,
            protocol: Protocol::None,
            port: 0,
            flags: 0,
            files: 0,
            encapsulation_port: 0,
            duration_ns: 0,
            window: 0,
            count: 1,
            repeat: 1,
            batch: 1,
            timeout_ns: 0,
            bblog: 0,
            sctp: Sctp::default(),
            congestion: String::new(),
            stack: String::new(),
            folder: String::new(),
            remote_host: String::new(),
            local_host: String::new(),
            engine: String::new(),
            cipher: String::new(),
            method: String::new(),
            connection: 0,
        }
    }
}

impl Flowop {
    /// Whether a flag of [`flag`] is set.
    pub fn has(&self, flag: u32) -> bool {
        self.flags & flag != 0
    }

    /// Most bytes that one transfer of it moves.
    pub fn largest(&self) -> u32 {
        if self.has(flag::RANDOM_SIZE) { self.random.0.max(self.random.1) } else { self.size }
    }
}

/// Flowops that run in order, again and again.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default)]
pub struct Transaction {
    /// How often, where there is no duration.
    pub iterations: u64,
    /// How long, nanoseconds; 0 is by iterations.
    pub duration_ns: u64,
    /// Transactions a second of each strand; 0 is as fast as can be. Only with a duration.
    pub rate: u32,
    /// The rate as it was written.
    pub rate_text: String,
    /// The steps.
    pub flowops: Vec<Flowop>,
}

impl Transaction {
    /// Whether an iteration of it moves payload; else it only sets up, waits or takes down.
    pub fn moves_payload(&self) -> bool {
        self.flowops.iter().any(|f| f.kind.receives() || f.kind.sends())
    }
}

/// Strands that do the same.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default)]
pub struct Group {
    /// Its label.
    pub name: Option<String>,
    /// Number of strands.
    pub strands: u32,
    /// On the master: strands are processes rather than threads.
    pub processes: bool,
    /// What each strand does, in order.
    pub transactions: Vec<Transaction>,
}

impl Group {
    /// All flowops, in order.
    pub fn flowops(&self) -> impl Iterator<Item = &Flowop> {
        self.transactions.iter().flat_map(|t| &t.flowops)
    }

    /// Whether its strands accept connections.
    pub fn accepts(&self) -> bool {
        self.flowops().any(|f| f.kind == Kind::Accept)
    }

    /// The protocols of its connections, each once.
    pub fn protocols(&self) -> Vec<Protocol> {
        let mut all: Vec<_> = self.flowops().filter(|f| f.kind.opens()).map(|f| f.protocol).collect();
        all.sort_unstable();
        all.dedup();
        all
    }

    /// The hosts of its connections, each once, in order of appearance.
    pub fn hosts(&self) -> Vec<String> {
        let mut hosts: Vec<String> = Vec::new();
        for flowop in self.flowops().filter(|f| f.kind.opens()) {
            if !hosts.iter().any(|h| h.eq_ignore_ascii_case(&flowop.remote_host)) {
                hosts.push(flowop.remote_host.clone());
            }
        }
        hosts
    }
}

/// A profile.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default)]
pub struct Profile {
    /// Its name.
    pub name: String,
    /// Its groups.
    pub groups: Vec<Group>,
}

impl Profile {
    /// Strands of all groups.
    pub fn strands(&self) -> u32 {
        self.groups.iter().fold(0, |sum, group| sum.saturating_add(group.strands))
    }

    /// Its name with eight hex digits that differ where the content does: `netperf#5d41402a`.
    pub fn label(&self) -> String {
        // FNV-1a over the text of what is done: enough to tell profiles apart, and the same on every machine.
        let text = format!("{:?}", self.groups);
        let hash = text.bytes().fold(0x811c_9dc5_u32, |h, b| (h ^ u32::from(b)).wrapping_mul(0x0100_0193));
        format!("{}#{hash:08x}", self.name)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn profiles_round_trip_and_leave_defaults_out() {
        let write = Flowop { kind: Kind::Write, size: 8192, ..Flowop::default() };
        let transaction = Transaction { iterations: 1, flowops: vec![write], ..Transaction::default() };
        let group = Group { strands: 2, transactions: vec![transaction], ..Group::default() };
        let profile = Profile { name: "p".to_owned(), groups: vec![group] };
        let json = serde_json::to_string(&profile).unwrap();
        assert!(json.contains(r#"{"kind":"write","size":8192}"#), "{json}");
        assert_eq!(serde_json::from_str::<Profile>(&json).unwrap(), profile);
        assert_eq!(profile.strands(), 2);
    }

    #[test]
    fn labels_differ_where_the_content_does() {
        let profile =
            |strands| Profile { name: "p".to_owned(), groups: vec![Group { strands, ..Group::default() }] };
        assert_eq!(profile(1).label(), profile(1).label());
        assert_ne!(profile(1).label(), profile(2).label());
        assert!(profile(1).label().starts_with("p#"));
    }
}
