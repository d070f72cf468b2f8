//! Which sequence numbers of a stream have arrived: exactly, in a bit each, however many there are.

use std::collections::BTreeMap;

const WORDS: usize = 1024;
const CHUNK: u64 = WORDS as u64 * 64;
/// Chunks with holes at a time: 32 MiB of bits.
const MOST_OPEN: usize = 4096;

/// What a sequence number turned out to be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Arrival {
    /// The highest so far.
    Next,
    /// New, behind one with a higher number.
    Late,
    /// It was there already.
    Again,
}

/// The numbers that have arrived.
#[derive(Debug, Default)]
pub(super) struct Sequences {
    /// By number divided by [`CHUNK`]; one that is complete keeps no bits.
    chunks: BTreeMap<u64, Chunk>,
    open: usize,
    arrived: u64,
    highest: Option<u64>,
}

#[derive(Debug)]
enum Chunk {
    Complete,
    Open { bits: Box<[u64; WORDS]>, left: u64 },
}

impl Sequences {
    /// Notes a number; `None` where the holes are more than there is room to note.
    pub(super) fn note(&mut self, number: u64) -> Option<Arrival> {
        let (key, at) = (number / CHUNK, number % CHUNK);
        if !self.chunks.contains_key(&key) {
            if self.open >= MOST_OPEN {
                return None;
            }
            self.open += 1;
        }
        let fresh = || Chunk::Open { bits: Box::new([0; WORDS]), left: CHUNK };
        let chunk = self.chunks.entry(key).or_insert_with(fresh);
        let Chunk::Open { bits, left } = chunk else { return Some(Arrival::Again) };
        let (word, bit) = (&mut bits[(at / 64) as usize], 1 << (at % 64));
        if *word & bit != 0 {
            return Some(Arrival::Again);
        }
        *word |= bit;
        *left -= 1;
        if *left == 0 {
            *chunk = Chunk::Complete;
            self.open -= 1;
        }
        self.arrived += 1;
        if self.highest.is_some_and(|highest| number < highest) {
            return Some(Arrival::Late);
        }
        self.highest = Some(number);
        Some(Arrival::Next)
    }

    pub(super) fn highest(&self) -> Option<u64> {
        self.highest
    }

    /// How many below the highest did not arrive.
    pub(super) fn missing_count(&self) -> u64 {
        self.highest.map_or(0, |highest| highest - (self.arrived - 1))
    }

    /// The first few that did not arrive, below the highest.
    pub(super) fn missing(&self, most: usize) -> Vec<u64> {
        let mut missing = Vec::new();
        let end = self.highest.unwrap_or(0);
        let mut number = 0;
        while number < end && missing.len() < most {
            match self.chunks.get(&(number / CHUNK)) {
                Some(Chunk::Complete) => number = (number / CHUNK + 1) * CHUNK,
                Some(Chunk::Open { bits, .. }) => {
                    let at = number % CHUNK;
                    let holes = !bits[(at / 64) as usize] >> (at % 64);
                    if holes == 0 {
                        number = (number / 64 + 1) * 64;
                        continue;
                    }
                    number += u64::from(holes.trailing_zeros());
                    if number < end {
                        missing.push(number);
                    }
                    number += 1;
                }
                None => {
                    missing.push(number);
                    number += 1;
                }
            }
        }
        missing
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_complete_chunk_keeps_no_bits() {
        let mut sequences = Sequences::default();
        for number in 0..CHUNK + 10 {
            assert_eq!(sequences.note(number), Some(Arrival::Next));
        }
        assert_eq!((sequences.open, sequences.missing_count()), (1, 0));
        assert_eq!(sequences.note(5), Some(Arrival::Again));
        sequences.note(CHUNK + 12);
        assert_eq!(sequences.missing(9), [CHUNK + 10, CHUNK + 11]);
    }

    #[test]
    fn holes_without_end_are_refused_not_forgotten() {
        let mut sequences = Sequences::default();
        for chunk in 0..MOST_OPEN as u64 {
            assert!(sequences.note(chunk * CHUNK).is_some());
        }
        assert_eq!(sequences.note(u64::MAX), None);
        assert_eq!(sequences.note(CHUNK), Some(Arrival::Again));
    }

    proptest! {
        #[test]
        fn it_counts_as_a_set_does(
            numbers in proptest::collection::vec(prop_oneof![0u64..200, CHUNK - 70..CHUNK + 70, 0..3 * CHUNK], 1..300),
        ) {
            let mut sequences = Sequences::default();
            let mut model = BTreeSet::new();
            for number in numbers {
                let highest = model.last().copied();
                let wanted = match (model.insert(number), highest) {
                    (false, _) => Arrival::Again,
                    (true, Some(highest)) if number < highest => Arrival::Late,
                    _ => Arrival::Next,
                };
                prop_assert_eq!(sequences.note(number), Some(wanted));
            }
            let highest = *model.last().expect("one at least");
            let missing: Vec<u64> = (0..highest).filter(|number| !model.contains(number)).collect();
            prop_assert_eq!(sequences.missing_count(), missing.len() as u64);
            prop_assert_eq!(sequences.missing(20), missing.into_iter().take(20).collect::<Vec<_>>());
        }
    }
}
