//! Frames as a pcapng file (draft-ietf-opsawg-pcapng): both ends' links in one file, time in nanoseconds, direction known.

use linerate_model::bench::FrameIn;

/// Which way a frame went, seen from its interface.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Direction {
    /// It was received.
    In,
    /// It was sent.
    Out,
}

/// A frame for the file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PacketIn {
    /// Index of its interface.
    pub interface: u32,
    /// `CLOCK_REALTIME`, nanoseconds.
    pub time_ns: u64,
    /// Which way it went.
    pub direction: Direction,
    /// From the destination address on, tag included.
    pub bytes: Vec<u8>,
    /// Its length on the wire, bytes: more than `bytes` has where it was cut.
    pub length_bytes: u32,
    /// What is to be said of it.
    pub comment: Option<String>,
}

/// A captured frame with the tag back where it was on the wire.
pub fn captured_bytes(frame: &FrameIn) -> Vec<u8> {
    const ADDRESSES: usize = 12;
    let mut bytes = frame.bytes.0.clone();
    if let (Some(tag), true) = (frame.tag, bytes.len() >= ADDRESSES) {
        let [a, b] = tag.protocol.to_be_bytes();
        let [c, d] = tag.control.to_be_bytes();
        bytes.splice(ADDRESSES..ADDRESSES, [a, b, c, d]);
    }
    bytes
}

/// A file of frames, little endian. `interfaces` are names such as `dut.eth1`; `comment` stands in the file's head.
/// Frames are written in the order given.
pub fn pcapng(interfaces: &[String], packets: &[PacketIn], comment: &str) -> Vec<u8> {
    let mut file = Vec::new();
    section(comment, &mut file);
    for name in interfaces {
        interface(name, &mut file);
    }
    for packet in packets {
        enhanced(packet, &mut file);
    }
    file
}

const SECTION_HEADER: u32 = 0x0a0d_0d0a;
const INTERFACE_DESCRIPTION: u32 = 1;
const ENHANCED_PACKET: u32 = 6;
const LINKTYPE_ETHERNET: u16 = 1;

fn section(comment: &str, file: &mut Vec<u8>) {
    let mut body = Vec::new();
    body.extend(0x1a2b_3c4d_u32.to_le_bytes());
    body.extend([1, 0, 0, 0]);
    // Length of the section: not told.
    body.extend(u64::MAX.to_le_bytes());
    option(1, comment.as_bytes(), &mut body);
    option(4, b"linerate", &mut body);
    option(0, &[], &mut body);
    block(SECTION_HEADER, &body, file);
}

fn interface(name: &str, file: &mut Vec<u8>) {
    let mut body = Vec::new();
    body.extend(LINKTYPE_ETHERNET.to_le_bytes());
    body.extend([0; 2]);
    // Frames are cut at no length.
    body.extend(0_u32.to_le_bytes());
    option(2, name.as_bytes(), &mut body);
    // Time in units of 10^-9 s.
    option(9, &[9], &mut body);
    option(0, &[], &mut body);
    block(INTERFACE_DESCRIPTION, &body, file);
}

fn enhanced(packet: &PacketIn, file: &mut Vec<u8>) {
    let mut body = Vec::new();
    let [t0, t1, t2, t3, t4, t5, t6, t7] = packet.time_ns.to_le_bytes();
    body.extend(packet.interface.to_le_bytes());
    body.extend([t4, t5, t6, t7, t0, t1, t2, t3]);
    let captured = u32::try_from(packet.bytes.len()).unwrap_or(u32::MAX);
    body.extend(captured.to_le_bytes());
    body.extend(packet.length_bytes.max(captured).to_le_bytes());
    padded(&packet.bytes, &mut body);
    let direction: u32 = match packet.direction {
        Direction::In => 1,
        Direction::Out => 2,
    };
    option(2, &direction.to_le_bytes(), &mut body);
    if let Some(comment) = &packet.comment {
        option(1, comment.as_bytes(), &mut body);
    }
    option(0, &[], &mut body);
    block(ENHANCED_PACKET, &body, file);
}

fn block(kind: u32, body: &[u8], file: &mut Vec<u8>) {
    let length = u32::try_from(body.len() + 12).unwrap_or(u32::MAX).to_le_bytes();
    file.extend(kind.to_le_bytes());
    file.extend(length);
    file.extend(body);
    file.extend(length);
}

fn option(code: u16, value: &[u8], body: &mut Vec<u8>) {
    let value = &value[..value.len().min(usize::from(u16::MAX))];
    body.extend(code.to_le_bytes());
    body.extend((value.len() as u16).to_le_bytes());
    padded(value, body);
}

fn padded(bytes: &[u8], body: &mut Vec<u8>) {
    body.extend(bytes);
    body.extend(std::iter::repeat_n(0, bytes.len().next_multiple_of(4) - bytes.len()));
}
