//! Which rows of other workers are kept from batch to batch.
//!
//! Of what is here after a batch, the rows that are read again soonest: nobody fetches fewer with as much room (Belady,
//! A study of replacement algorithms for a virtual-storage computer, 1966). Which rows the rest of a window reads is
//! known, since draws are keyed; of those that it reads no more, the ones that most batches have read so far are kept.

use std::cmp::Reverse;

/// Not read again in this window.
const LATER: u32 = u32::MAX;

/// What a batch does to the rows that are here, by nodes.
#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct Turn {
    /// Read and not here: to be fetched before it.
    pub fetch: Vec<u32>,
    /// Not kept any longer after it.
    pub drop: Vec<u32>,
    /// Fetched for it, and kept after it.
    pub keep: Vec<u32>,
}

/// What is kept, and how often what was read.
#[derive(Debug, Clone, Default)]
pub(super) struct Keeper {
    /// How many rows may be kept.
    capacity: usize,
    /// For each node, how many batches have read it.
    counts: Vec<u32>,
    kept: Vec<u32>,
    is_kept: Vec<bool>,
    /// For each node, which batch of the window reads it next.
    next: Vec<u32>,
}

impl Keeper {
    /// Room for so many rows.
    pub fn new(capacity: usize) -> Keeper {
        Keeper { capacity, ..Keeper::default() }
    }

    /// Forgets what is kept, and not how often it was read.
    pub fn clear(&mut self) {
        self.kept.drain(..).for_each(|node| self.is_kept[node as usize] = false);
    }

    /// What the batches of a window do, one after the other; each reads these nodes, each of them once, out of `known`.
    pub fn plan(&mut self, known: usize, batches: &[Vec<u32>]) -> Vec<Turn> {
        self.counts.resize(known, 0);
        self.is_kept.resize(known, false);
        batches.iter().flatten().for_each(|&node| self.counts[node as usize] += 1);
        self.next.clear();
        self.next.resize(known, LATER);
        let mut after: Vec<Vec<u32>> = vec![Vec::new(); batches.len()];
        for (at, nodes) in batches.iter().enumerate().rev() {
            let read = |&node: &u32| std::mem::replace(&mut self.next[node as usize], at as u32);
            after[at] = nodes.iter().map(read).collect();
        }
        batches.iter().zip(after).map(|(nodes, after)| self.turn(nodes, &after)).collect()
    }

    /// One batch; `after` says for each of its nodes who reads it next.
    fn turn(&mut self, nodes: &[u32], after: &[u32]) -> Turn {
        nodes.iter().zip(after).for_each(|(&node, &next)| self.next[node as usize] = next);
        let fetch: Vec<u32> = nodes.iter().copied().filter(|&node| !self.is_kept[node as usize]).collect();
        let mut here = std::mem::take(&mut self.kept);
        let before = here.len();
        here.extend_from_slice(&fetch);
        if here.len() > self.capacity {
            let soonest = |&node: &u32| (self.next[node as usize], Reverse(self.counts[node as usize]), node);
            if self.capacity > 0 {
                here.select_nth_unstable_by_key(self.capacity - 1, soonest);
            }
        } else if before == here.len() {
            self.kept = here;
            return Turn { fetch, ..Turn::default() };
        }
        let left = here.split_off(here.len().min(self.capacity));
        let drop = left.into_iter().filter(|&node| std::mem::take(&mut self.is_kept[node as usize])).collect();
        let comes = |&node: &u32| !std::mem::replace(&mut self.is_kept[node as usize], true);
        let keep = here.iter().copied().filter(comes).collect();
        self.kept = here;
        Turn { fetch, drop, keep }
    }
}

#[cfg(test)]
mod tests {
    use laconic_key::{Key, Purpose};

    use super::{Keeper, Turn};

    /// Windows of batches that read some of a few nodes.
    fn windows(seed: u64, nodes: u32, batches: usize) -> Vec<Vec<Vec<u32>>> {
        let key = Key::new(seed, Purpose::Test);
        let reads = |window: u64, batch: usize, node: u32| {
            key.with(window).with(batch as u64).with(node.into()).below(u64::from(node) + 2) == 0
        };
        let batch = |window, batch| (0..nodes).filter(|&node| reads(window, batch, node)).collect();
        (0..3).map(|window| (0..batches).map(|at| batch(window, at)).collect()).collect()
    }

    /// The fewest rows that can be fetched, by trying everything that could be kept after each batch.
    fn fewest(batches: &[Vec<u32>], capacity: u32, nodes: u32) -> usize {
        let mut costs = vec![usize::MAX; 1 << nodes];
        costs[0] = 0;
        for read in batches {
            let read = read.iter().fold(0usize, |set, node| set | 1 << node);
            let mut after = vec![usize::MAX; 1 << nodes];
            for (kept, &cost) in costs.iter().enumerate().filter(|(_, cost)| **cost < usize::MAX) {
                let cost = cost + (read & !kept).count_ones() as usize;
                let fits = |set: &usize| set & !(kept | read) == 0 && set.count_ones() <= capacity;
                (0..1 << nodes).filter(fits).for_each(|set| after[set] = after[set].min(cost));
            }
            costs = after;
        }
        costs.into_iter().min().unwrap_or(0)
    }

    #[test]
    fn no_choice_fetches_fewer_rows_of_a_window() {
        for seed in 0..60 {
            for capacity in 0..5 {
                let batches = &windows(seed, 6, 9)[0];
                let turns = Keeper::new(capacity as usize).plan(6, batches);
                let fetched: usize = turns.iter().map(|turn| turn.fetch.len()).sum();
                assert_eq!(fetched, fewest(batches, capacity, 6), "seed {seed}, room for {capacity}");
            }
        }
    }

    #[test]
    fn every_row_that_is_read_is_here_and_no_more_than_there_is_room_for() {
        for (seed, capacity) in [(1, 0), (2, 1), (3, 4), (4, 9), (5, 100)] {
            let (mut keeper, mut here) = (Keeper::new(capacity), std::collections::BTreeSet::new());
            for (at, batches) in windows(seed, 30, 12).iter().enumerate() {
                for (read, Turn { fetch, drop, keep }) in batches.iter().zip(keeper.plan(30, batches)) {
                    assert!(fetch.iter().all(|node| read.contains(node) && !here.contains(node)));
                    assert!(read.iter().all(|node| fetch.contains(node) || here.contains(node)));
                    assert!(drop.iter().all(|node| here.remove(node)));
                    assert!(keep.iter().all(|node| fetch.contains(node) && here.insert(*node)));
                    assert!(here.len() <= capacity);
                }
                if at == 1 {
                    keeper.clear();
                    here.clear();
                }
            }
        }
    }

    #[test]
    fn what_was_read_most_is_kept_where_nothing_is_known_of_what_comes() {
        let mut keeper = Keeper::new(2);
        keeper.plan(5, &[vec![0, 1, 2, 3], vec![2, 3], vec![1, 2], vec![0, 1, 2, 3, 4]]);
        // 2 was read four times, 1 and 3 three times; of equals, the first.
        assert_eq!(keeper.plan(5, &[vec![0, 1, 2, 3, 4]])[0].fetch, [0, 3, 4]);
    }
}
