//! What a qualification asks of a node, as plain data: frames out and in, integrity flows, sockets, echoes, counters,
//! the kernel's log, and acts upon the link and its device.
//!
//! A request goes to the node's agent, which carries it out and answers; what must come of it is judged elsewhere.

pub mod act;
pub mod bytes;
pub mod echo;
pub mod flow;
pub mod frame;
pub mod generate;
pub mod probe;
pub mod snapshot;
pub mod socket;
pub mod xdp;

use serde::{Deserialize, Serialize};

pub use act::{DeviceAct, LinkAct};
pub use bytes::Bytes;
pub use echo::{EchoReport, EchoSpec};
pub use flow::{FlowReport, FlowSpec};
pub use frame::{FrameIn, FrameOut, PortOptions, SendReport};
pub use generate::{GenerateReport, GenerateSpec, Tally, TallySpec};
pub use snapshot::{LogLine, Snapshot};
pub use socket::{Received, SocketOptions};
pub use xdp::{XdpAction, XdpCount, XdpMode, XdpSpec};

/// Number of something opened on a node: a port, a flow, a socket. Unique within a session, from 1.
pub type Handle = u32;

/// What is asked of a node.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "bench", content = "with", rename_all = "kebab-case")]
pub enum BenchRequest {
    /// Opens a packet socket on a link. Answered by [`BenchReply::Opened`].
    OpenPort(PortOptions),
    /// Sends frames, in order. Answered by [`BenchReply::Sent`].
    Send {
        /// The port.
        port: Handle,
        /// What to send.
        frames: Vec<FrameOut>,
        /// Pause between two frames, nanoseconds; 0 is none.
        gap_ns: u64,
    },
    /// Takes what the port has captured since the last call, in order of arrival; waits until `most` frames are there,
    /// until nothing came for `idle_ns`, or until `limit_ns` is over. Answered by [`BenchReply::Frames`].
    Receive {
        /// The port.
        port: Handle,
        /// At most so many frames.
        most: u32,
        /// Ends once nothing came for so long, nanoseconds.
        idle_ns: u64,
        /// Ends at the latest after so long, nanoseconds.
        limit_ns: u64,
    },
    /// Starts to send generated probe frames in the background. Answered by [`BenchReply::Opened`].
    Generate(GenerateSpec),
    /// Ends a generator, or waits for the end that it has by its count. Answered by [`BenchReply::Generated`].
    FinishGenerate {
        /// The generator.
        generator: Handle,
        /// Waits so long for its own end, then stops it; nanoseconds.
        wait_ns: u64,
    },
    /// Starts to count and check probe frames in the background. Answered by [`BenchReply::Opened`].
    Tally(TallySpec),
    /// Ends a tally once nothing came for `idle_ns`. Answered by [`BenchReply::Tallied`].
    FinishTally {
        /// The tally.
        tally: Handle,
        /// Ends once nothing came for so long, nanoseconds.
        idle_ns: u64,
        /// Ends at the latest after so long, nanoseconds.
        limit_ns: u64,
    },
    /// Starts one side of an integrity flow in the background; the listening side first. Answered by
    /// [`BenchReply::FlowOpened`].
    StartFlow(Box<FlowSpec>),
    /// How a flow stands; it goes on. Answered by [`BenchReply::Flow`].
    LookAtFlow {
        /// The flow.
        flow: Handle,
    },
    /// Tells a flow to come to its end, and does not wait for it: so both sides can, where both send. Answered by
    /// [`BenchReply::Done`].
    StopFlow {
        /// The flow.
        flow: Handle,
    },
    /// Ends a flow: the sender stops, the receiver reads to the end. Answered by [`BenchReply::Flow`].
    FinishFlow {
        /// The flow.
        flow: Handle,
        /// Waits at most so long for its end, nanoseconds.
        limit_ns: u64,
    },
    /// Opens a socket. Answered by [`BenchReply::FlowOpened`] with its port, 0 where it has none.
    OpenSocket(Box<SocketOptions>),
    /// Sends one datagram, or bytes of a stream. Answered by [`BenchReply::Sent`].
    SendSocket {
        /// The socket.
        socket: Handle,
        /// Payload.
        bytes: Bytes,
        /// Destination, for a datagram of a socket that is not connected.
        to: Option<std::net::SocketAddr>,
    },
    /// Takes what a socket received; ends as [`BenchRequest::Receive`] does. Answered by [`BenchReply::Received`].
    ReceiveSocket {
        /// The socket.
        socket: Handle,
        /// At most so many datagrams, or reads of a stream.
        most: u32,
        /// Ends once nothing came for so long, nanoseconds.
        idle_ns: u64,
        /// Ends at the latest after so long, nanoseconds.
        limit_ns: u64,
    },
    /// Sends ICMP echo requests and judges the replies, for at most 600 s. Answered by [`BenchReply::Echoes`].
    Echo(EchoSpec),
    /// Attaches an XDP program, until it is closed. Answered by [`BenchReply::Opened`].
    AttachXdp(XdpSpec),
    /// What an XDP program has seen so far. Answered by [`BenchReply::XdpCounted`].
    CountXdp {
        /// The program.
        program: Handle,
    },
    /// Closes ports, generators, tallies, flows, sockets and XDP programs.
    Close {
        /// Which.
        handle: Handle,
    },
    /// Reads every counter that has to do with the link. Answered by [`BenchReply::Snapshot`].
    Snapshot {
        /// The link.
        link: String,
    },
    /// Kernel log lines from a position on. Answered by [`BenchReply::Log`].
    Log {
        /// Sequence number of the first line wanted; 0 is all that the kernel still has, `u64::MAX` is none, which tells
        /// only the next position.
        from: u64,
    },
    /// Changes a setting on top of what is in force; `Restore` puts it back. Answered by [`BenchReply::Done`].
    Set {
        /// The link.
        link: String,
        /// The setting's key.
        key: String,
        /// Its value.
        value: String,
    },
    /// Changes links of the node; what was made is removed, and what was changed put back, when the session ends.
    Link(LinkAct),
    /// Does something with the device behind a link.
    Device(DeviceAct),
    /// What is known of the device and driver behind a link. Answered by [`BenchReply::Facts`].
    Identity {
        /// The link.
        link: String,
    },
    /// Reads a small file of /proc or /sys. Answered by [`BenchReply::Text`].
    ReadFile {
        /// Its path, below `/proc`, `/sys` or `/etc/os-release`.
        path: String,
    },
    /// Writes such a file; not journalled, so only where the old value is put back by the same case.
    WriteFile {
        /// Its path, below `/proc` or `/sys`.
        path: String,
        /// What to write.
        text: String,
    },
    /// Ends every port, generator, tally, flow, socket and XDP program. Answered by [`BenchReply::Done`].
    CloseAll,
    /// The same, and puts back all that the session changed. Answered by
    /// [`BenchReply::Done`].
    Reset,
}

/// What a node answers.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "bench", content = "with", rename_all = "kebab-case")]
pub enum BenchReply {
    /// It is open.
    Opened(Handle),
    /// It is open, and listens on or is bound to a port.
    FlowOpened {
        /// Its handle.
        handle: Handle,
        /// TCP or UDP port; 0 where there is none.
        port: u16,
    },
    /// Frames or datagrams were handed to the kernel.
    Sent(SendReport),
    /// What was captured.
    Frames {
        /// In order of arrival.
        frames: Vec<FrameIn>,
        /// Frames that the socket had no room for since the last call (`PACKET_STATISTICS`).
        dropped: u64,
    },
    /// A generator is over.
    Generated(GenerateReport),
    /// A tally is over.
    Tallied(Box<Tally>),
    /// How a flow stands, or stood.
    Flow(Box<FlowReport>),
    /// What a socket received.
    Received(Vec<Received>),
    /// What came of echoes.
    Echoes(EchoReport),
    /// Every counter.
    Snapshot(Box<Snapshot>),
    /// Kernel log.
    Log {
        /// Lines in order.
        lines: Vec<LogLine>,
        /// Position from which to read on.
        next: u64,
        /// Lines that the kernel had overwritten before they were read.
        lost: u64,
    },
    /// What an XDP program has seen.
    XdpCounted(XdpCount),
    /// What a driver's self-test found: named numbers, nonzero is failed, and its own verdict.
    SelfTested {
        /// The driver says that it passed.
        passed: bool,
        /// Results by name.
        results: Vec<(String, u64)>,
    },
    /// A file's content.
    Text(String),
    /// What is known, by name.
    Facts(std::collections::BTreeMap<String, String>),
    /// It is done.
    Done,
}
