//! The card: fills checksums, cuts segments, pads; filters by address. Each [`Quirk`] is one thing that it does wrongly.

use linerate_link::receive_filter::ReceiveFilter;

use super::packet::{self, TCP, UDP, put, word};
use super::vnet::{self, Header};

/// Shortest frame on a wire, without FCS.
const SHORTEST: usize = 60;

const FIN_PSH: u8 = 0x01 | 0x08;
const CWR: u8 = 0x80;

/// One thing that a card does wrongly.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Quirk {
    /// Checksums that it fills are wrong.
    WrongChecksum,
    /// Checksums of short frames are summed over padding that then goes out as zeros.
    ChecksumOverPadding,
    /// Checksums are left as the stack hands them over.
    NoChecksum,
    /// A sum of 0 goes out as 0 for UDP.
    ZeroUdpChecksum,
    /// Segments are one byte shorter than asked for.
    WrongSegmentSize,
    /// The last segment is lost.
    LostLastSegment,
    /// FIN and PSH are lost in segmentation.
    LostFinPush,
    /// FIN and PSH are on each segment.
    FinPushOnAll,
    /// CWR is on each segment.
    CwrOnAll,
    /// The IPv4 identification does not count on.
    ConstantId,
    /// Sequence numbers do not count on.
    ConstantSequence,
    /// Padding has bytes of the frame before.
    DirtyPad,
    /// Short frames are not delivered where their padding is not zero: it is summed.
    ReceiveSumOverPadding,
    /// Each checksum is called good, a wrong one too: the stack has no reason to doubt it.
    CallsAllGood,
    /// Foreign unicast frames are delivered.
    LeaksForeignUnicast,
    /// Multicast that nobody joined is delivered.
    LeaksMulticast,
    /// One multicast group of eight is not received.
    MissesSomeGroups,
    /// All multicast is not received when asked for.
    IgnoresAllMulticast,
    /// Foreign frames are not received in promiscuous mode.
    IgnoresPromiscuous,
    /// Once promiscuous, always promiscuous.
    StaysPromiscuous,
    /// A new address is not received, but the one that it had first.
    IgnoresNewMac,
    /// After down and up, groups are forgotten.
    ForgetsGroups,
    /// After down and up, its own address is forgotten.
    ForgetsMac,
    /// After down and up, it receives nothing.
    DeafAfterDown,
    /// After a frame above the MTU, it receives nothing.
    DeafAfterGiant,
    /// Giants are delivered cut.
    CutsGiants,
    /// After 64 frames it sends nothing more.
    StuckTx,
    /// Segments received one after the other are merged, whatever they are.
    MergesWrongly,
    /// Each eighth frame is counted twice.
    CountsTwice,
    /// The carrier goes away for a moment each half second.
    FlapsCarrier,
}

/// The card's state.
#[derive(Debug, Default)]
pub(super) struct Nic {
    quirks: Vec<Quirk>,
    sent: u64,
    received: u64,
    before: Vec<u8>,
    first_mac: Option<[u8; 6]>,
    was_promiscuous: bool,
    was_down: bool,
    is_deaf: bool,
}

impl Nic {
    pub(super) fn new() -> Self {
        Self::default()
    }

    /// Faults on, or off and forgotten.
    pub(super) fn set_quirks(&mut self, quirks: &[Quirk]) {
        self.quirks = quirks.to_vec();
        (self.sent, self.received) = (0, 0);
        (self.was_down, self.is_deaf, self.was_promiscuous) = (false, false, false);
    }

    pub(super) fn has(&self, quirk: Quirk) -> bool {
        self.quirks.contains(&quirk)
    }

    pub(super) fn saw_down(&mut self) {
        self.was_down = true;
    }

    pub(super) fn saw_filter(&mut self, filter: &ReceiveFilter) {
        self.first_mac.get_or_insert(filter.mac);
        self.was_promiscuous |= filter.promiscuous;
        self.was_down |= !filter.up;
    }

    /// Frames for the wire, made of what the stack hands over.
    pub(super) fn transmit(&mut self, header: Header, frame: &[u8]) -> Vec<Vec<u8>> {
        self.sent += 1;
        if self.has(Quirk::StuckTx) && self.sent > 64 {
            return Vec::new();
        }
        let mut frames = match header.segmentation() {
            0 => vec![self.filled(header, frame)],
            _ => self.segments(header, frame).unwrap_or_default(),
        };
        for frame in &mut frames {
            self.pad(frame);
        }
        frames
    }

    fn filled(&self, header: Header, frame: &[u8]) -> Vec<u8> {
        let mut frame = frame.to_vec();
        let (start, offset) = (usize::from(header.sum_start), usize::from(header.sum_offset));
        let field = start + offset;
        if header.flags & vnet::NEEDS_CHECKSUM == 0 || field + 2 > frame.len() || self.has(Quirk::NoChecksum)
        {
            return frame;
        }
        let mut value = !packet::sum(&frame[start..], 0);
        if self.has(Quirk::WrongChecksum) {
            value ^= 0x0100;
        }
        if self.has(Quirk::ChecksumOverPadding) && frame.len() < SHORTEST {
            value ^= 0x5a5a;
        }
        let is_udp = offset == 6;
        put(
            &mut frame,
            field,
            if value == 0 && is_udp && !self.has(Quirk::ZeroUdpChecksum) { 0xffff } else { value },
        );
        frame
    }

    fn segments(&self, header: Header, frame: &[u8]) -> Option<Vec<Vec<u8>>> {
        let at = packet::places(frame).or_else(|| places_of_giant(frame, header))?;
        let transport = at.transport;
        let head = match at.protocol {
            TCP => transport + usize::from(frame.get(transport + 12)? >> 4) * 4,
            UDP => transport + 8,
            _ => return None,
        };
        let payload = frame.get(head..)?;
        let mut size = usize::from(header.segment_bytes).max(1);
        if self.has(Quirk::WrongSegmentSize) && size > 1 {
            size -= 1;
        }
        let count = payload.len().div_ceil(size).max(1);
        let mut segments: Vec<Vec<u8>> = Vec::with_capacity(count);
        for index in 0..count {
            let from = index * size;
            let to = (from + size).min(payload.len());
            let mut segment = frame[..head].to_vec();
            segment.extend(&payload[from..to]);
            let is_last = index + 1 == count;
            self.fix_network(&mut segment, at, index);
            match at.protocol {
                TCP => self.fix_tcp(&mut segment, transport, from, index == 0, is_last),
                _ => put(&mut segment, transport + 4, (8 + to - from) as u16),
            }
            packet::mend(&mut segment);
            if self.has(Quirk::WrongChecksum) {
                let field = transport + if at.protocol == TCP { 16 } else { 6 };
                let value = word(&segment, field)? ^ 0x0100;
                put(&mut segment, field, value);
            }
            segments.push(segment);
        }
        if self.has(Quirk::LostLastSegment) {
            segments.pop();
        }
        Some(segments)
    }

    fn fix_network(&self, segment: &mut [u8], at: packet::Places, index: usize) {
        let length = segment.len() - at.ip;
        if at.is_v6 {
            put(segment, at.ip + 4, (length - 40) as u16);
            return;
        }
        put(segment, at.ip + 2, length as u16);
        let id = word(segment, at.ip + 4).unwrap_or(0);
        if !self.has(Quirk::ConstantId) {
            put(segment, at.ip + 4, id.wrapping_add(index as u16));
        }
    }

    fn fix_tcp(&self, segment: &mut [u8], at: usize, from: usize, is_first: bool, is_last: bool) {
        let number = |segment: &[u8]| segment.get(at + 4..at + 8)?.try_into().ok().map(u32::from_be_bytes);
        if let (Some(first), false) = (number(segment), self.has(Quirk::ConstantSequence)) {
            segment[at + 4..at + 8].copy_from_slice(&first.wrapping_add(from as u32).to_be_bytes());
        }
        let Some(flags) = segment.get_mut(at + 13) else { return };
        let on_all = self.has(Quirk::FinPushOnAll);
        if (!is_last && !on_all) || self.has(Quirk::LostFinPush) {
            *flags &= !FIN_PSH;
        }
        if !is_first && !self.has(Quirk::CwrOnAll) {
            *flags &= !CWR;
        }
    }

    fn pad(&mut self, frame: &mut Vec<u8>) {
        let length = frame.len();
        if length < SHORTEST {
            frame.resize(SHORTEST, 0);
            if self.has(Quirk::DirtyPad) {
                let stale = self.before.get(length..SHORTEST).unwrap_or_else(|| &[0x5a; SHORTEST][length..]);
                frame[length..].copy_from_slice(stale);
            }
        }
        self.before.clone_from(frame);
    }

    /// Whether the card takes a frame from the wire, under this filter.
    pub(super) fn accepts(&self, frame: &[u8], filter: &ReceiveFilter) -> bool {
        let Some(to) = frame.first_chunk::<6>() else { return false };
        let is_promiscuous = (filter.promiscuous && !self.has(Quirk::IgnoresPromiscuous))
            || (self.has(Quirk::StaysPromiscuous) && self.was_promiscuous);
        let after_down = |quirk| self.has(quirk) && self.was_down;
        if is_promiscuous || *to == [0xff; 6] {
            return true;
        }
        if to[0] & 1 == 1 {
            let all = filter.all_multicast && !self.has(Quirk::IgnoresAllMulticast);
            let missed = self.has(Quirk::MissesSomeGroups) && to[5] & 7 == 5;
            let joined = filter.groups.contains(to) && !missed && !after_down(Quirk::ForgetsGroups);
            return all || joined || self.has(Quirk::LeaksMulticast);
        }
        let own = match self.first_mac {
            Some(first) if self.has(Quirk::IgnoresNewMac) => first,
            _ => filter.mac,
        };
        (*to == own && !after_down(Quirk::ForgetsMac)) || self.has(Quirk::LeaksForeignUnicast)
    }

    /// What the stack gets of a frame that was accepted: frames with their headers.
    pub(super) fn receive(&mut self, mut frame: Vec<u8>) -> Vec<(Header, Vec<u8>)> {
        self.received += 1;
        let is_giant = frame.len() > 1518 + packet::tag_bytes(&frame);
        self.is_deaf |= is_giant && self.has(Quirk::DeafAfterGiant);
        self.is_deaf |= self.was_down && self.has(Quirk::DeafAfterDown);
        if self.is_deaf || (self.has(Quirk::ReceiveSumOverPadding) && has_dirty_pad(&frame)) {
            return Vec::new();
        }
        if is_giant && self.has(Quirk::CutsGiants) {
            frame.truncate(1514);
        }
        let mut header = Header::default();
        if self.has(Quirk::CallsAllGood) {
            header.flags = vnet::DATA_VALID;
        }
        let mut all = vec![(header, frame)];
        if self.has(Quirk::CountsTwice) && self.received.is_multiple_of(8) {
            // Nobody takes this frame, but the link counts it.
            let mut nobody = vec![0; SHORTEST];
            nobody[..14].copy_from_slice(&[2, 0xee, 0xee, 0xee, 0xee, 0xee, 2, 0, 0, 0, 0, 1, 0x88, 0xb6]);
            all.push((header, nobody));
        }
        all
    }

    /// Merges neighbouring TCP segments of one flow, without a look at their sequence numbers, flags or options.
    pub(super) fn merged(&self, frames: Vec<(Header, Vec<u8>)>) -> Vec<(Header, Vec<u8>)> {
        if !self.has(Quirk::MergesWrongly) {
            return frames;
        }
        let mut merged: Vec<(Header, Vec<u8>)> = Vec::new();
        for (header, frame) in frames {
            let joined = merged.last().and_then(|(_, last)| join(last, &frame));
            match (joined, merged.last_mut()) {
                (Some((header, both)), Some(last)) => *last = (header, both),
                _ => merged.push((header, frame)),
            }
        }
        merged
    }
}

/// A packet of 64 KiB may have a length field that says something else (IPv6 jumbo, or IPv4 with 0).
fn places_of_giant(frame: &[u8], header: Header) -> Option<packet::Places> {
    let ip = 14 + packet::tag_bytes(frame);
    let is_v6 = frame.get(ip)? >> 4 == 6;
    let protocol = if header.segmentation() == vnet::UDP_SEGMENTS { UDP } else { TCP };
    let transport = usize::from(header.sum_start);
    Some(packet::Places { ip, is_v6, transport, protocol, end: frame.len(), is_fragment: false })
}

fn has_dirty_pad(frame: &[u8]) -> bool {
    packet::places(frame).is_some_and(|at| frame[at.end..].iter().any(|byte| *byte != 0))
}

/// Both as one packet to be cut again: two TCP segments of the same addresses and ports, with payload.
fn join(first: &[u8], second: &[u8]) -> Option<(Header, Vec<u8>)> {
    let (a, b) = (packet::places(first)?, packet::places(second)?);
    let is_tcp = a.protocol == TCP && b.protocol == TCP && !a.is_fragment && !b.is_fragment;
    let addresses = if a.is_v6 { 8..40 } else { 12..20 };
    let same = a.ip == b.ip
        && first[a.ip..].get(addresses.clone()) == second[b.ip..].get(addresses)
        && first.get(a.transport..a.transport + 4) == second.get(b.transport..b.transport + 4);
    if !is_tcp || !same {
        return None;
    }
    let head = |frame: &[u8], at: usize| Some(at + usize::from(frame.get(at + 12)? >> 4) * 4);
    let (head_a, head_b) = (head(first, a.transport)?, head(second, b.transport)?);
    let (payload_a, payload_b) = (first.get(head_a..a.end)?, second.get(head_b..b.end)?);
    if payload_a.is_empty() || payload_b.is_empty() || payload_a.len() + payload_b.len() > 40_000 {
        return None;
    }
    let mut both = first[..a.end].to_vec();
    both.extend(payload_b);
    let length = both.len() - a.ip;
    put(
        &mut both,
        if a.is_v6 { a.ip + 4 } else { a.ip + 2 },
        (if a.is_v6 { length - 40 } else { length }) as u16,
    );
    packet::mend(&mut both);
    let header = Header {
        flags: vnet::DATA_VALID,
        kind: if a.is_v6 { vnet::TCP_V6 } else { vnet::TCP_V4 },
        header_bytes: head_a as u16,
        segment_bytes: payload_a.len() as u16,
        ..Header::default()
    };
    Some((header, both))
}
