//! The order of trials: randomised complete blocks (Fisher, "The Design of Experiments", 1935; Montgomery, "Design and
//! Analysis of Experiments", chapter 4). Every block runs each combination once, in an order of its own, so that slow
//! drift falls on all combinations alike and a comparison within a block rests on the coin that set its order.

use serde::{Deserialize, Serialize};

use super::random::Generator;

/// One place in the plan.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Slot {
    /// The block (repeat), from 0.
    pub block: u32,
    /// The place within the block, from 0.
    pub place: usize,
    /// The combination of levels to run, an index into the caller's list.
    pub combination: usize,
}

/// The whole plan: `blocks` blocks of all `combinations`.
pub fn schedule(combinations: usize, blocks: u32, seed: u64) -> Vec<Slot> {
    (0..blocks).flat_map(|block| block_slots(combinations, block, seed)).collect()
}

/// The order of one block. It depends on nothing but its arguments, so a plan can be made longer or resumed.
pub fn block_order(combinations: usize, block: u32, seed: u64) -> Vec<usize> {
    let mut order: Vec<usize> = (0..combinations).collect();
    Generator::stream(seed, u64::from(block)).shuffle(&mut order);
    order
}

/// All combinations of factors with so many levels each, as one level index a factor; the last factor turns fastest.
/// Without factors there is one combination, the empty one; a factor without levels leaves none.
pub fn combinations(levels: &[usize]) -> Vec<Vec<usize>> {
    levels.iter().fold(vec![Vec::new()], |rows, count| {
        rows.iter()
            .flat_map(|row| (0..*count).map(move |level| [row.as_slice(), &[level]].concat()))
            .collect()
    })
}

fn block_slots(combinations: usize, block: u32, seed: u64) -> impl Iterator<Item = Slot> {
    let order = block_order(combinations, block, seed);
    order.into_iter().enumerate().map(move |(place, combination)| Slot { block, place, combination })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_block_has_each_combination_once() {
        let plan = schedule(6, 20, 42);
        assert_eq!(plan.len(), 120);
        for block in plan.chunks(6) {
            let mut seen: Vec<usize> = block.iter().map(|slot| slot.combination).collect();
            seen.sort_unstable();
            assert_eq!(seen, [0, 1, 2, 3, 4, 5]);
            assert!(
                block.iter().enumerate().all(|(i, slot)| slot.place == i && slot.block == block[0].block)
            );
        }
    }

    #[test]
    fn a_seed_gives_the_same_plan_and_a_longer_plan_begins_alike() {
        assert_eq!(schedule(4, 5, 9), schedule(4, 5, 9));
        assert_eq!(schedule(4, 9, 9)[..20], schedule(4, 5, 9)[..]);
        assert_ne!(schedule(4, 5, 9), schedule(4, 5, 10));
    }

    /// Records keep seeds: this order must never change.
    #[test]
    fn a_recorded_seed_gives_the_recorded_order() {
        let orders: Vec<Vec<usize>> = (0..3).map(|block| block_order(5, block, 2026)).collect();
        assert_eq!(orders, [[0, 4, 2, 3, 1], [2, 3, 4, 1, 0], [2, 3, 1, 4, 0]]);
    }

    #[test]
    fn which_of_two_comes_first_is_a_fair_coin() {
        let first = (0..10_000).filter(|block| block_order(2, *block, 3)[0] == 0).count();
        assert!((4_850..5_150).contains(&first), "{first}");
    }

    #[test]
    fn nothing_to_run_is_an_empty_plan() {
        assert!(schedule(0, 3, 1).is_empty());
        assert!(schedule(3, 0, 1).is_empty());
    }

    #[test]
    fn combines_levels() {
        assert_eq!(combinations(&[2, 3]), [[0, 0], [0, 1], [0, 2], [1, 0], [1, 1], [1, 2]]);
        assert_eq!(combinations(&[]), [Vec::<usize>::new()]);
        assert!(combinations(&[2, 0]).is_empty());
    }
}
