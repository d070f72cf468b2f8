//! Frames as a packet socket sends and captures them (packet(7), `linux/if_packet.h`, `linux/virtio_net.h`).

use serde::{Deserialize, Serialize};

use super::bytes::Bytes;

/// A hardware address.
pub type MacAddress = [u8; 6];

/// How to open a packet socket on a link.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct PortOptions {
    /// The link.
    pub link: String,
    /// Captures only this EtherType, which stands behind a stripped tag, if there is one; 0 captures all.
    pub ether_type: u16,
    /// Puts the link in promiscuous mode as long as the port is open (`PACKET_MR_PROMISC`).
    pub promiscuous: bool,
    /// Takes all multicast frames as long as the port is open (`PACKET_MR_ALLMULTI`).
    pub all_multicast: bool,
    /// Multicast groups to join as long as the port is open (`PACKET_MR_MULTICAST`).
    pub groups: Vec<MacAddress>,
    /// Unicast addresses to receive as well (`PACKET_MR_UNICAST`).
    pub unicast: Vec<MacAddress>,
    /// Frames carry the virtio-net header both ways (`PACKET_VNET_HDR`).
    pub offload: bool,
    /// Captures what the link sends as well, but for what this port sends itself; otherwise `PACKET_IGNORE_OUTGOING`.
    pub see_outgoing: bool,
    /// Sends without the link's queueing discipline (`PACKET_QDISC_BYPASS`).
    pub bypass_qdisc: bool,
    /// Frames carry their own FCS as the last four bytes (`SO_NOFCS`).
    pub own_fcs: bool,
    /// Only sends; captures nothing.
    pub send_only: bool,
    /// Longest frame to capture, bytes; 0 is 2048. With 65536 and more, frames that GRO or TSO merged fit.
    pub largest_bytes: u32,
    /// Frames that the ring has room for, at most 256 MiB of them; 0 is 4096, or as many as fit in 32 MiB.
    pub slots: u32,
}

/// A frame to send.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct FrameOut {
    /// From destination address on, without FCS unless the port has `own_fcs`.
    pub bytes: Bytes,
    /// What the NIC shall do to it; only on a port with `offload`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub offload: Option<Offload>,
}

/// What is left for the NIC to do (`struct virtio_net_hdr`).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Offload {
    /// A checksum to fill in.
    pub checksum: Option<PartialChecksum>,
    /// Segments to make.
    pub segmentation: Option<Segmentation>,
    /// Bytes of headers before the payload (`hdr_len`).
    pub header_bytes: u16,
    /// The checksum of a captured frame is known good (`VIRTIO_NET_HDR_F_DATA_VALID`).
    pub checksum_valid: bool,
}

/// Where a checksum goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct PartialChecksum {
    /// Where summing begins, bytes from the start of the frame; the kernel refuses less than 20.
    pub start: u16,
    /// Where the sum goes, bytes from `start`.
    pub offset: u16,
}

/// How to cut a frame in segments.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Segmentation {
    /// By which protocol.
    pub kind: SegmentationKind,
    /// Payload bytes of a segment.
    pub size_bytes: u16,
    /// CWR is set, and belongs on the first segment alone (`VIRTIO_NET_HDR_GSO_ECN`).
    pub ecn: bool,
}

/// By which protocol a frame is cut.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum SegmentationKind {
    /// TCP over IPv4.
    Tcp4,
    /// TCP over IPv6.
    Tcp6,
    /// UDP, each segment a datagram (USO, `VIRTIO_NET_HDR_GSO_UDP_L4`).
    Udp,
}

/// A captured frame.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct FrameIn {
    /// What was captured, from the destination address on; a tag that the driver stripped is not in it.
    pub bytes: Bytes,
    /// Length on arrival, bytes; more than `bytes` has where the port's `largest_bytes` was too small.
    pub length_bytes: u32,
    /// When, `CLOCK_REALTIME`, nanoseconds.
    pub time_ns: u64,
    /// The tag that the driver stripped.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tag: Option<Tag>,
    /// What the driver says of the checksum.
    pub checksum: ChecksumWord,
    /// To whom it was addressed, as the kernel sees it.
    pub addressed: Addressed,
    /// What is left to do or was merged; only on a port with `offload`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub offload: Option<Offload>,
}

/// A VLAN tag.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Tag {
    /// TPID: 0x8100 or 0x88a8.
    pub protocol: u16,
    /// TCI: priority (3 bits), DEI (1 bit), id (12 bits).
    pub control: u16,
}

/// What a driver says of a frame's checksum (`tp_status`).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ChecksumWord {
    /// Nothing: nobody looked, or the driver gave a sum that the stack is to compare.
    None,
    /// It is good (`TP_STATUS_CSUM_VALID`).
    Valid,
    /// It is not filled in yet: the frame never saw a wire (`TP_STATUS_CSUMNOTREADY`).
    NotReady,
}

/// To whom a frame was addressed (`sll_pkttype`).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Addressed {
    /// To this host.
    Host,
    /// To all.
    Broadcast,
    /// To a group.
    Multicast,
    /// To another host: only promiscuous mode let it in.
    OtherHost,
    /// Sent by this host.
    Outgoing,
}

/// What came of sending.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct SendReport {
    /// Frames or datagrams that the kernel took.
    pub sent: u64,
    /// Those that it refused: index in the request and the kernel's reason.
    pub refused: Vec<SendRefusal>,
}

/// A frame that the kernel did not take.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SendRefusal {
    /// Its index in the request.
    pub index: u32,
    /// The kernel's error number (errno(3)).
    pub errno: i32,
    /// The same in words.
    pub reason: String,
}
