//! Payload bytes: what a sender sends, and how a receiver checks every byte of it without computing it again.
//!
//! The payload of a trial is one block of pseudo-random bytes whose length is a prime, repeated for ever. A prime
//! length keeps calls of any usual size from meeting the block at the same place each time, so a byte that went to the
//! wrong offset shows. The block is stored once more behind itself for the length of one call, so that the bytes
//! at any offset are one slice.

use std::sync::Arc;

use linerate_model::reading::VerifyReading;

/// Length of the block: the largest prime below 1 MiB.
const PERIOD: usize = 1_048_573;

/// Start of a buffer, so that the kernel copies from the start of a page.
const PAGE: usize = 4096;

/// Which way payload flows; each way has bytes of its own.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Way {
    ToPeer,
    ToDut,
}

/// The repeated block.
#[derive(Debug)]
pub(crate) struct Pattern {
    bytes: AlignedBytes,
}

impl Pattern {
    /// The block for one trial and way, with slices of up to `longest` bytes.
    pub(crate) fn new(seed: u64, way: Way, longest: usize) -> Self {
        let mut bytes = AlignedBytes::zeroed(PERIOD + longest);
        let mut generator = SplitMix64(seed ^ if way == Way::ToPeer { 0 } else { 0x5bf0_3635_dcd1_e867 });
        let filled = bytes.as_mut();
        for chunk in filled[..PERIOD].chunks_mut(8) {
            chunk.copy_from_slice(&generator.next().to_le_bytes()[..chunk.len()]);
        }
        for start in (PERIOD..filled.len()).step_by(PERIOD) {
            let length = PERIOD.min(filled.len() - start);
            filled.copy_within(..length, start);
        }
        Self { bytes }
    }

    /// `length` bytes of the endless payload from `position` (already reduced by [`reduce`]).
    fn slice(&self, position: usize, length: usize) -> &[u8] {
        &self.bytes.as_ref()[position..position + length]
    }
}

/// Where an endless payload's `offset` lies in the block, for the given stream. Streams begin at different places.
fn reduce(stream: u32, offset: u64) -> usize {
    const STRIDE: u64 = 7919;
    ((u64::from(stream) * STRIDE + offset % PERIOD as u64) % PERIOD as u64) as usize
}

/// The payload of one sender: with `--verify` the next slice of the pattern, else the same bytes again and again.
#[derive(Debug)]
pub(crate) struct Payload {
    pattern: Arc<Pattern>,
    stream: u32,
    position: usize,
    moves: bool,
}

impl Payload {
    /// `verified`: whether the receiver checks, so that the offset matters.
    pub(crate) fn new(pattern: Arc<Pattern>, stream: u32, verified: bool) -> Self {
        let position = if verified { reduce(stream, 0) } else { 0 };
        Self { pattern, stream, position, moves: verified }
    }

    /// The next `length` bytes, without moving on.
    pub(crate) fn peek(&self, length: usize) -> &[u8] {
        self.pattern.slice(self.position, length)
    }

    /// Where the next bytes lie in the pattern's file (see [`Payload::file_content`]).
    pub(crate) fn position(&self) -> usize {
        self.position
    }

    /// The whole block, for a memory file.
    pub(crate) fn file_content(&self) -> &[u8] {
        self.pattern.bytes.as_ref()
    }

    /// Moves on by `length` bytes that were sent.
    pub(crate) fn advance(&mut self, length: usize) {
        if self.moves {
            self.position = (self.position + length) % PERIOD;
        }
    }

    /// Goes to the payload's `offset`, for messages that may be lost.
    pub(crate) fn seek(&mut self, offset: u64) {
        if self.moves {
            self.position = reduce(self.stream, offset);
        }
    }
}

/// Compares received bytes with the pattern.
#[derive(Debug)]
pub(crate) struct Checker {
    payload: Payload,
    offset: u64,
    found: VerifyReading,
}

impl Checker {
    pub(crate) fn new(pattern: Arc<Pattern>, stream: u32) -> Self {
        Self { payload: Payload::new(pattern, stream, true), offset: 0, found: VerifyReading::default() }
    }

    /// Checks the next bytes of a byte stream.
    pub(crate) fn check(&mut self, bytes: &[u8]) {
        self.compare(bytes);
        self.payload.advance(bytes.len());
        self.offset += bytes.len() as u64;
    }

    /// Checks a message whose payload begins at `offset`.
    pub(crate) fn check_at(&mut self, offset: u64, bytes: &[u8]) {
        self.offset = offset;
        self.payload.seek(offset);
        self.compare(bytes);
    }

    /// What was found so far.
    pub(crate) fn found(&self) -> VerifyReading {
        self.found
    }

    fn compare(&mut self, bytes: &[u8]) {
        let expected = self.payload.peek(bytes.len());
        self.found.checked_bytes += bytes.len() as u64;
        if bytes == expected {
            return;
        }
        let mut wrong = bytes.iter().zip(expected).enumerate().filter(|(_, (a, b))| a != b).map(|(at, _)| at);
        let first = wrong.next().unwrap_or_default() as u64;
        self.found.bad_bytes += 1 + wrong.count() as u64;
        self.found.first_bad_offset.get_or_insert(self.offset + first);
    }
}

/// Bytes that begin on a page.
#[derive(Debug)]
pub(crate) struct AlignedBytes {
    storage: Vec<u8>,
    start: usize,
}

impl AlignedBytes {
    pub(crate) fn zeroed(length: usize) -> Self {
        let mut storage = vec![0u8; length + PAGE];
        let start = storage.as_ptr().align_offset(PAGE).min(PAGE);
        storage.truncate(start + length);
        Self { storage, start }
    }
}

impl AsRef<[u8]> for AlignedBytes {
    fn as_ref(&self) -> &[u8] {
        &self.storage[self.start..]
    }
}

impl AsMut<[u8]> for AlignedBytes {
    fn as_mut(&mut self) -> &mut [u8] {
        &mut self.storage[self.start..]
    }
}

/// Steele, Lea, Flood: Fast splittable pseudorandom number generators (OOPSLA 2014). Stable across versions, which
/// both ends rely on.
struct SplitMix64(u64);

impl SplitMix64 {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pattern(longest: usize) -> Arc<Pattern> {
        Arc::new(Pattern::new(7, Way::ToPeer, longest))
    }

    #[test]
    fn what_is_sent_passes_whatever_the_call_sizes() {
        let pattern = pattern(100_000);
        let mut payload = Payload::new(pattern.clone(), 3, true);
        let mut checker = Checker::new(pattern, 3);
        let mut stream = Vec::new();
        for call in (1..200).map(|i| i * 499) {
            stream.extend_from_slice(payload.peek(call));
            payload.advance(call);
        }
        assert!(stream.len() > 3 * PERIOD);
        for part in stream.chunks(1777) {
            checker.check(part);
        }
        assert_eq!(
            checker.found(),
            VerifyReading { checked_bytes: stream.len() as u64, ..Default::default() }
        );
    }

    #[test]
    fn bad_bytes_are_counted_and_the_first_is_located() {
        let pattern = pattern(5000);
        let mut payload = Payload::new(pattern.clone(), 0, true);
        let mut bytes = payload.peek(5000).to_vec();
        payload.advance(5000);
        bytes[4321] ^= 1;
        bytes[4999] ^= 128;
        let mut checker = Checker::new(pattern, 0);
        checker.check(&bytes[..4000]);
        checker.check(&bytes[4000..]);
        checker.check(payload.peek(10));
        let found = checker.found();
        assert_eq!((found.checked_bytes, found.bad_bytes, found.first_bad_offset), (5010, 2, Some(4321)));
    }

    #[test]
    fn bytes_at_the_wrong_offset_stream_or_way_fail() {
        let pattern = pattern(4096);
        let other_way = Arc::new(Pattern::new(7, Way::ToDut, 4096));
        let payload = Payload::new(pattern.clone(), 0, true);
        for mut checker in [Checker::new(pattern.clone(), 1), Checker::new(other_way, 0)] {
            checker.check(payload.peek(4096));
            assert!(checker.found().bad_bytes > 4000);
        }
        let mut checker = Checker::new(pattern, 0);
        checker.check_at(0, payload.peek(100));
        assert_eq!(checker.found().bad_bytes, 0);
        checker.check_at(4096, payload.peek(100));
        assert!(checker.found().first_bad_offset >= Some(4096));
    }

    #[test]
    fn calls_longer_than_the_block_are_one_slice() {
        let pattern = pattern(3 * PERIOD);
        let mut payload = Payload::new(pattern, 1, true);
        payload.seek(PERIOD as u64 * 10 + 5);
        let long = payload.peek(3 * PERIOD);
        assert_eq!(long[..100], long[PERIOD..PERIOD + 100]);
        assert_eq!(long[..100], long[2 * PERIOD..2 * PERIOD + 100]);
    }

    #[test]
    fn buffers_begin_on_a_page() {
        let mut bytes = AlignedBytes::zeroed(10_000);
        assert_eq!(bytes.as_ref().len(), 10_000);
        assert_eq!(bytes.as_mut().as_ptr() as usize % PAGE, 0);
    }
}
