//! Pairs of nodes that stand for edges that are not: an edge's source and relation stay, its target is replaced.

use laconic_key::{Key, Purpose};

use super::Pair;

/// Where replaced targets come from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NegativeScope {
    /// The nodes of whoever owns the edge's target. What is drawn depends on the partition.
    Local,
    /// All nodes. What is drawn is the same on any partition.
    Global,
}

/// A way to draw pairs.
#[derive(Debug, Clone, Copy)]
pub struct Negatives<'a> {
    /// Where targets come from.
    pub scope: NegativeScope,
    /// How many are drawn for each edge.
    pub number: u32,
    /// The global ids of own nodes, ascending.
    pub own: &'a [u64],
    /// How many nodes all owners have together; their global ids lie below it.
    pub nodes: u64,
}

impl Negatives<'_> {
    /// The key of pairs to learn from in a round.
    pub fn of_round(seed: u64, round: u32) -> Key {
        Key::new(seed, Purpose::Negatives).with(1 + u64::from(round))
    }

    /// The key of pairs to be judged by, the same in every round.
    pub fn of_evaluation(seed: u64) -> Key {
        Key::new(seed, Purpose::Negatives).with(0)
    }

    /// The targets that take the place of an edge's, each drawn uniformly. One that is the source itself is dropped,
    /// so that there may be fewer than [`Negatives::number`]. Edges of several relations between the same two nodes
    /// draw each their own.
    pub fn targets(&self, key: Key, edge: impl Into<Pair>) -> impl Iterator<Item = u64> {
        let Pair { source, target, relation } = edge.into();
        let key = key.with(source).with(target);
        let key = relation.map_or(key, |relation| key.with(relation.into()));
        let one = move |number: u32| {
            let key = key.with(u64::from(number));
            match self.scope {
                NegativeScope::Global => key.below(self.nodes.max(1)),
                NegativeScope::Local => {
                    self.own.get(key.below(self.own.len().max(1) as u64) as usize).copied().unwrap_or(source)
                }
            }
        };
        (0..self.number).map(one).filter(move |&drawn| drawn != source)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn targets_are_uniform_over_their_scope_and_never_the_source() {
        let own: Vec<u64> = (0..40).filter(|id| id % 4 == 1).collect();
        for (scope, from) in
            [(NegativeScope::Global, (0..40).collect::<Vec<u64>>()), (NegativeScope::Local, own.clone())]
        {
            let negatives = Negatives { scope, number: 8000, own: &own, nodes: 40 };
            let mut counts = [0u32; 40];
            negatives.targets(Negatives::of_round(3, 1), (5, 9)).for_each(|target| counts[target as usize] += 1);
            let expected = 8000.0 / from.len() as f64;
            for id in 0..40u64 {
                let count = f64::from(counts[id as usize]);
                if from.contains(&id) && id != 5 {
                    assert!((count - expected).abs() < 5.0 * expected.sqrt(), "{scope:?} {id}: {count}");
                } else {
                    assert_eq!(count, 0.0, "{scope:?} {id}");
                }
            }
        }
        let none = Negatives { scope: NegativeScope::Local, number: 3, own: &[], nodes: 9 };
        assert_eq!(none.targets(Negatives::of_evaluation(1), (5, 9)).count(), 0);
    }

    #[test]
    fn global_targets_do_not_depend_on_the_partition_and_rounds_draw_anew() {
        let drawn = |own: &[u64], key: Key, edge: (u64, u64)| {
            let negatives = Negatives { scope: NegativeScope::Global, number: 20, own, nodes: 1000 };
            negatives.targets(key, edge).collect::<Vec<u64>>()
        };
        let first = drawn(&[1, 2, 3], Negatives::of_round(7, 1), (2, 3));
        assert_eq!(first, drawn(&[3, 900], Negatives::of_round(7, 1), (2, 3)));
        assert_ne!(first, drawn(&[3], Negatives::of_round(7, 2), (2, 3)));
        assert_ne!(first, drawn(&[3], Negatives::of_evaluation(7), (2, 3)));
        assert_ne!(first, drawn(&[3], Negatives::of_round(7, 1), (3, 2)));
        let of = |relation| {
            let all = Negatives { scope: NegativeScope::Global, number: 20, own: &[], nodes: 1000 };
            all.targets(Negatives::of_round(7, 1), Pair { source: 2, target: 3, relation }).collect::<Vec<u64>>()
        };
        assert_eq!(of(None), first);
        assert!(
            of(Some(0)) != first && of(Some(1)) != first && of(Some(0)) != of(Some(1)),
            "parallel edges draw apart"
        );
    }
}
