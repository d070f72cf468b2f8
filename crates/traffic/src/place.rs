//! Bytes that depend on their place: each eight of them are a mix of a key and where they stand, so that shifted,
//! swapped, repeated and stale data show, and any stretch can be made or compared without what is before it.

use linerate_model::bench::probe::mix;

const WORD: u64 = 8;
/// The increment of SplitMix64.
const STEP: u64 = 0x9e37_79b9_7f4a_7c15;

/// What stretches of bytes are told apart by.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Key(u64);

impl Key {
    /// A key of numbers: seed, connection, direction ...
    pub(crate) fn of(numbers: &[u64]) -> Self {
        Self(numbers.iter().fold(0, |key, number| mix(key ^ number.wrapping_add(STEP)).wrapping_add(*number)))
    }

    fn word(self, index: u64) -> [u8; 8] {
        mix(self.0.wrapping_add(index.wrapping_mul(STEP))).to_le_bytes()
    }

    /// The byte at a place.
    pub(crate) fn byte(self, offset: u64) -> u8 {
        self.word(offset / WORD)[(offset % WORD) as usize]
    }

    /// Writes the bytes from `offset` on.
    pub(crate) fn fill(self, offset: u64, bytes: &mut [u8]) {
        let (head, body) = bytes.split_at_mut(head_length(offset, bytes.len()));
        for (place, byte) in (offset..).zip(head) {
            *byte = self.byte(place);
        }
        let first = offset.div_ceil(WORD);
        let mut words = body.chunks_exact_mut(WORD as usize);
        let mut index = first;
        for word in words.by_ref() {
            word.copy_from_slice(&self.word(index));
            index = index.wrapping_add(1);
        }
        let rest = words.into_remainder();
        let last = self.word(index);
        rest.copy_from_slice(&last[..rest.len()]);
    }

    /// Compares bytes that stand at `offset`.
    pub(crate) fn compare(self, offset: u64, bytes: &[u8]) -> Option<Difference> {
        if self.is_same(offset, bytes) {
            return None;
        }
        let places = offset..;
        let mut wrong = places.zip(bytes).filter(|(place, byte)| self.byte(*place) != **byte);
        let (place, got) = wrong.next()?;
        let expected = self.byte(place);
        Some(Difference { offset: place, expected, got: *got, count: 1 + wrong.count() as u64 })
    }

    fn is_same(self, offset: u64, bytes: &[u8]) -> bool {
        let (head, body) = bytes.split_at(head_length(offset, bytes.len()));
        if (offset..).zip(head).any(|(place, byte)| self.byte(place) != *byte) {
            return false;
        }
        let first = offset.div_ceil(WORD);
        let (words, rest) = body.as_chunks::<8>();
        // Differences are gathered, not looked at one by one: that is what makes it fast.
        let (mut differs, mut index) = (0, first);
        for word in words {
            differs |= u64::from_le_bytes(*word) ^ u64::from_le_bytes(self.word(index));
            index = index.wrapping_add(1);
        }
        differs == 0 && self.word(index)[..rest.len()] == *rest
    }
}

/// Bytes that were not those of their place.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Difference {
    /// Place of the first.
    pub(crate) offset: u64,
    pub(crate) expected: u8,
    pub(crate) got: u8,
    /// How many.
    pub(crate) count: u64,
}

fn head_length(offset: u64, length: usize) -> usize {
    let to_word = (WORD - offset % WORD) % WORD;
    length.min(to_word as usize)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn any_stretch_is_the_same_as_part_of_the_whole() {
        let key = Key::of(&[1, 2, 3]);
        let mut whole = vec![0; 200];
        key.fill(0, &mut whole);
        for from in 0..40 {
            for to in from..=200 {
                let mut part = vec![0; to - from];
                key.fill(from as u64, &mut part);
                assert_eq!(part, whole[from..to]);
                assert_eq!(key.compare(from as u64, &part), None);
            }
        }
    }

    #[test]
    fn changed_shifted_and_foreign_bytes_show() {
        let key = Key::of(&[7, 0]);
        let mut bytes = vec![0; 1000];
        key.fill(5, &mut bytes);
        for place in 0..bytes.len() {
            bytes[place] ^= 0x40;
            let found = key.compare(5, &bytes).unwrap();
            assert_eq!((found.offset, found.count), (5 + place as u64, 1));
            bytes[place] ^= 0x40;
        }
        for shift in 1..64 {
            assert!(key.compare(5 + shift, &bytes).unwrap().count > 900);
        }
        assert!(
            Key::of(&[7, 1]).compare(5, &bytes).is_some() && Key::of(&[8, 0]).compare(5, &bytes).is_some()
        );
    }

    #[test]
    fn a_stream_far_on_does_not_overflow() {
        let key = Key::of(&[u64::MAX]);
        let mut bytes = [0; 9];
        key.fill(u64::MAX - 20, &mut bytes);
        assert_eq!(key.compare(u64::MAX - 20, &bytes), None);
    }
}
