//! The wire: what becomes of frames between the two cards. Each change is a function of one frame and what went before.

use std::time::Duration;

use super::packet;

/// Which way a frame goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Way {
    /// The dut sent it.
    ToPeer,
    /// The dut receives it.
    ToDut,
}

/// What the wire remembers of one way.
#[derive(Debug, Default)]
pub(super) struct Memory {
    /// Frames so far.
    pub(super) count: u64,
    /// A frame that waits for the next one.
    pub(super) held: Option<Vec<u8>>,
    /// The frame before.
    pub(super) before: Vec<u8>,
}

/// A change: one frame in, what is left of it out.
pub(super) type Change = fn(Vec<u8>, &mut Memory) -> Vec<Vec<u8>>;

/// How long frames are kept back by `delay`.
pub(super) const DELAY: Duration = Duration::from_millis(400);

/// First byte behind the addresses, tags and EtherType.
fn payload_at(frame: &[u8]) -> usize {
    14 + packet::tag_bytes(frame)
}

pub(super) fn drop_frame(_: Vec<u8>, _: &mut Memory) -> Vec<Vec<u8>> {
    Vec::new()
}

pub(super) fn duplicate(frame: Vec<u8>, _: &mut Memory) -> Vec<Vec<u8>> {
    vec![frame.clone(), frame]
}

/// Goes out behind the frame that follows it.
pub(super) fn reorder(frame: Vec<u8>, memory: &mut Memory) -> Vec<Vec<u8>> {
    memory.held.replace(frame).into_iter().collect()
}

/// Loses its last four bytes, as a driver does that takes off an FCS that is not there.
pub(super) fn truncate(mut frame: Vec<u8>, _: &mut Memory) -> Vec<Vec<u8>> {
    frame.truncate((frame.len() - frame.len().min(4)).max(14));
    vec![frame]
}

/// Gets four bytes more, as a driver does that leaves the FCS on.
pub(super) fn lengthen(mut frame: Vec<u8>, _: &mut Memory) -> Vec<Vec<u8>> {
    frame.extend([0xde, 0xad, 0xbe, 0xef]);
    vec![frame]
}

pub(super) fn flip_bit(mut frame: Vec<u8>, _: &mut Memory) -> Vec<Vec<u8>> {
    let end = packet::places(&frame).map_or(frame.len(), |at| at.end);
    if let Some(byte) = frame.get_mut(end.saturating_sub(3)) {
        *byte ^= 0x04;
    }
    vec![frame]
}

pub(super) fn flip_bit_mended(frame: Vec<u8>, memory: &mut Memory) -> Vec<Vec<u8>> {
    let mut frames = flip_bit(frame, memory);
    frames.iter_mut().for_each(|frame| packet::mend(frame));
    frames
}

/// Two 16-bit words change places: no internet checksum shows it.
pub(super) fn swap_words(mut frame: Vec<u8>, _: &mut Memory) -> Vec<Vec<u8>> {
    let end = packet::places(&frame).map_or(frame.len(), |at| at.end);
    let from = end.saturating_sub(8).next_multiple_of(2);
    if from > payload_at(&frame) && from + 4 <= end {
        frame.swap(from, from + 2);
        frame.swap(from + 1, from + 3);
    }
    vec![frame]
}

/// Its last bytes are those of the frame before, at the same place.
pub(super) fn stale_bytes(mut frame: Vec<u8>, memory: &mut Memory) -> Vec<Vec<u8>> {
    let from = frame.len().saturating_sub(16).max(payload_at(&frame)).min(frame.len());
    let to = frame.len().min(memory.before.len());
    if let Some(stale) = memory.before.get(from..to) {
        frame[from..to].copy_from_slice(stale);
        packet::mend(&mut frame);
    }
    vec![frame]
}

/// Lengths that a card with a bad descriptor loses.
pub(super) fn drop_lengths(frame: Vec<u8>, _: &mut Memory) -> Vec<Vec<u8>> {
    if (257..=260).contains(&frame.len()) { Vec::new() } else { vec![frame] }
}

/// Full-size frames do not pass.
pub(super) fn drop_long(frame: Vec<u8>, _: &mut Memory) -> Vec<Vec<u8>> {
    if frame.len() > 1500 { Vec::new() } else { vec![frame] }
}

pub(super) fn mangle_tag(mut frame: Vec<u8>, _: &mut Memory) -> Vec<Vec<u8>> {
    if packet::tag_bytes(&frame) > 0 {
        frame[15] ^= 1;
    }
    vec![frame]
}

/// Priority and DEI are lost.
pub(super) fn lose_priority(mut frame: Vec<u8>, _: &mut Memory) -> Vec<Vec<u8>> {
    if packet::tag_bytes(&frame) > 0 {
        frame[14] &= 0x0f;
    }
    vec![frame]
}

pub(super) fn lose_tag(mut frame: Vec<u8>, _: &mut Memory) -> Vec<Vec<u8>> {
    if packet::tag_bytes(&frame) > 0 {
        frame.drain(12..16);
        frame.resize(frame.len().max(60), 0);
    }
    vec![frame]
}

pub(super) fn double_tag(mut frame: Vec<u8>, _: &mut Memory) -> Vec<Vec<u8>> {
    if packet::tag_bytes(&frame) > 0 {
        let tag: Vec<u8> = frame[12..16].to_vec();
        frame.splice(12..12, tag);
    }
    vec![frame]
}

/// Zeros of padding become something.
pub(super) fn dirty_pad(mut frame: Vec<u8>, _: &mut Memory) -> Vec<Vec<u8>> {
    if frame.len() == 60 {
        frame[58] = 0x5a;
    }
    vec![frame]
}

/// Fragments do not pass.
pub(super) fn drop_fragments(frame: Vec<u8>, _: &mut Memory) -> Vec<Vec<u8>> {
    if packet::places(&frame).is_some_and(|at| at.is_fragment) { Vec::new() } else { vec![frame] }
}

/// IPv6 does not pass.
pub(super) fn drop_v6(frame: Vec<u8>, _: &mut Memory) -> Vec<Vec<u8>> {
    if packet::places(&frame).is_some_and(|at| at.is_v6) { Vec::new() } else { vec![frame] }
}

/// Frames that are no probes of the suite's own EtherType, IP or ARP do not pass.
pub(super) fn drop_odd(frame: Vec<u8>, _: &mut Memory) -> Vec<Vec<u8>> {
    let kind = packet::word(&frame, 12 + packet::tag_bytes(&frame)).unwrap_or(0);
    if matches!(kind, 0x0800 | 0x0806 | 0x86dd | 0x88b5) { vec![frame] } else { Vec::new() }
}
