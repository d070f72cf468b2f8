//! Random choices of a case, all from the run's seed (ground rule G11).

use linerate_model::bench::probe::mix;

/// SplitMix64 (Steele, Lea, Flood 2014).
#[derive(Debug, Clone)]
pub struct Rng(u64);

impl Rng {
    /// A generator of its own for a seed and a text, so that a case draws the same numbers whichever cases run before it.
    pub fn new(seed: u64, text: &str) -> Self {
        Self(text.bytes().fold(mix(seed), |state, byte| mix(state ^ u64::from(byte))))
    }

    /// The next 64 bits.
    pub fn draw(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        mix(self.0)
    }

    /// A number below `bound`; 0 for a bound of 0.
    pub fn below(&mut self, bound: u64) -> u64 {
        ((u128::from(self.draw()) * u128::from(bound)) >> 64) as u64
    }

    /// A number from `low` to `high`, both included.
    pub fn between(&mut self, low: u64, high: u64) -> u64 {
        low + self.below((high.saturating_sub(low)).saturating_add(1))
    }

    /// So many bytes.
    pub fn bytes(&mut self, count: usize) -> Vec<u8> {
        (0..count).map(|_| self.draw() as u8).collect()
    }

    /// One of these.
    pub fn pick<'a, T>(&mut self, from: &'a [T]) -> Option<&'a T> {
        from.get(self.below(from.len() as u64) as usize)
    }

    /// Puts them in a random order.
    pub fn shuffle<T>(&mut self, items: &mut [T]) {
        for last in (1..items.len()).rev() {
            items.swap(last, self.below(last as u64 + 1) as usize);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_seed_and_a_text_give_the_same_numbers_within_bounds() {
        let draw = |text| {
            let mut rng = Rng::new(7, text);
            (0..100).map(|_| rng.between(3, 9)).collect::<Vec<_>>()
        };
        assert_eq!(draw("TX-01"), draw("TX-01"));
        assert_ne!(draw("TX-01"), draw("TX-02"));
        assert!(draw("x").iter().all(|n| (3..=9).contains(n)));
    }
}
