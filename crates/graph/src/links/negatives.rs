//! Pairs of nodes that stand for edges that are not: an edge's source and relation stay, its target is replaced.

use std::ops::Range;

use laconic_key::{Key, Purpose};

use super::Pair;
use crate::type_runs::{ByType, TypeRuns};

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
    /// Nodes of several types: a drawn target is of the type of the target whose place it takes.
    pub types: Option<Types<'a>>,
}

/// Nodes of several types.
#[derive(Debug, Clone, Copy)]
pub struct Types<'a> {
    /// Which node is of which.
    pub runs: &'a TypeRuns,
    /// Those of each type by global id, or by place among own nodes where these are drawn from.
    pub of: &'a ByType,
}

/// Which tries at a target are made together: where a pair turns out to be an edge two more, and where these are, too,
/// four more. Who asks others which pairs are edges asks once for each of these.
pub const TRIES: [Range<u32>; 3] = [0..1, 1..3, 3..7];

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
        let edge = edge.into();
        let key = of_edge(key, edge);
        (0..self.number).map(move |slot| self.draw(key, edge, slot, 0)).filter(move |&drawn| drawn != edge.source)
    }

    /// The same, but each is drawn again where it is the source or `stands` says no, so often as [`TRIES`] say.
    pub fn standing(&self, key: Key, edge: impl Into<Pair>, stands: impl Fn(u64) -> bool) -> Vec<u64> {
        let edge = edge.into();
        let key = of_edge(key, edge);
        (0..self.number).filter_map(|slot| self.first(key, edge, slot, TRIES[2].end, &stands)).collect()
    }

    /// As many as [`Negatives::number`] says, as long as there is any: places that are still empty after all tries
    /// take one of the others, drawn.
    pub fn filled(&self, key: Key, edge: impl Into<Pair>, stands: impl Fn(u64) -> bool) -> Vec<u64> {
        let edge = edge.into();
        let key = of_edge(key, edge);
        let found = |slot| self.first(key, edge, slot, TRIES[2].end, &stands);
        let found: Vec<Option<u64>> = (0..self.number).map(found).collect();
        let others: Vec<u64> = found.iter().flatten().copied().collect();
        let one = |slot: u64| others[key.with(slot).with(u64::from(TRIES[2].end)).below(others.len() as u64) as usize];
        match others.len() {
            0 => others,
            _ => (0..).zip(found).map(|(slot, found)| found.unwrap_or_else(|| one(slot))).collect(),
        }
    }

    /// How many different ones stand, where some place is empty after all tries; `None` where all are taken.
    pub fn left(&self, key: Key, edge: impl Into<Pair>, stands: impl Fn(u64) -> bool) -> Option<u64> {
        let mut found = self.standing(key, edge, stands);
        let is_short = found.len() < self.number as usize;
        found.sort_unstable();
        found.dedup();
        is_short.then_some(found.len() as u64)
    }

    /// Whether an edge is among this share of all, drawn by the same key.
    pub fn is_among(key: Key, edge: impl Into<Pair>, share: f64) -> bool {
        of_edge(key, edge.into()).with(u64::MAX).unit() < share
    }

    /// What has to be asked about for some of [`TRIES`], where no try before them stands.
    pub fn candidates(
        &self,
        key: Key,
        edge: impl Into<Pair>,
        tries: &Range<u32>,
        stands: impl Fn(u64) -> bool,
    ) -> Vec<u64> {
        let edge = edge.into();
        let key = of_edge(key, edge);
        let open = (0..self.number).filter(|&slot| self.first(key, edge, slot, tries.start, &stands).is_none());
        let all = open.flat_map(|slot| tries.clone().map(move |again| self.draw(key, edge, slot, again)));
        all.filter(|&drawn| drawn != edge.source).collect()
    }

    /// The first try that stands, of so many.
    fn first(&self, key: Key, edge: Pair, slot: u32, tries: u32, stands: impl Fn(u64) -> bool) -> Option<u64> {
        let mut drawn = (0..tries).map(|again| self.draw(key, edge, slot, again));
        drawn.find(|&drawn| drawn != edge.source && stands(drawn))
    }

    /// The source where there is nothing to draw from.
    fn draw(&self, key: Key, edge: Pair, slot: u32, again: u32) -> u64 {
        let key = key.with(u64::from(slot));
        let key = if again == 0 { key } else { key.with(u64::from(again)) };
        let place = match self.types {
            None => {
                let all = if self.scope == NegativeScope::Global { self.nodes } else { self.own.len() as u64 };
                Some(key.below(all.max(1)))
            }
            Some(Types { runs, of }) => {
                let kind = runs.kind(edge.target);
                of.place(kind, key.below(of.count(kind).max(1)))
            }
        };
        match self.scope {
            NegativeScope::Global => place.unwrap_or(edge.source),
            NegativeScope::Local => place.and_then(|at| self.own.get(at as usize).copied()).unwrap_or(edge.source),
        }
    }
}

/// What an edge draws from.
fn of_edge(key: Key, Pair { source, target, relation }: Pair) -> Key {
    let key = key.with(source).with(target);
    relation.map_or(key, |relation| key.with(relation.into()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn targets_are_uniform_over_their_scope_and_never_the_source() {
        let own: Vec<u64> = (0..40).filter(|id| id % 4 == 1).collect();
        for (scope, from) in
            [(NegativeScope::Global, (0..40).collect::<Vec<u64>>()), (NegativeScope::Local, own.clone())]
        {
            let negatives = Negatives { scope, number: 8000, own: &own, nodes: 40, types: None };
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
        let none = Negatives { scope: NegativeScope::Local, number: 3, own: &[], nodes: 9, types: None };
        assert_eq!(none.targets(Negatives::of_evaluation(1), (5, 9)).count(), 0);
    }

    #[test]
    fn global_targets_do_not_depend_on_the_partition_and_rounds_draw_anew() {
        let drawn = |own: &[u64], key: Key, edge: (u64, u64)| {
            let negatives = Negatives { scope: NegativeScope::Global, number: 20, own, nodes: 1000, types: None };
            negatives.targets(key, edge).collect::<Vec<u64>>()
        };
        let first = drawn(&[1, 2, 3], Negatives::of_round(7, 1), (2, 3));
        assert_eq!(first, drawn(&[3, 900], Negatives::of_round(7, 1), (2, 3)));
        assert_ne!(first, drawn(&[3], Negatives::of_round(7, 2), (2, 3)));
        assert_ne!(first, drawn(&[3], Negatives::of_evaluation(7), (2, 3)));
        assert_ne!(first, drawn(&[3], Negatives::of_round(7, 1), (3, 2)));
        let of = |relation| {
            let all = Negatives { scope: NegativeScope::Global, number: 20, own: &[], nodes: 1000, types: None };
            all.targets(Negatives::of_round(7, 1), Pair { source: 2, target: 3, relation }).collect::<Vec<u64>>()
        };
        assert_eq!(of(None), first);
        assert!(
            of(Some(0)) != first && of(Some(1)) != first && of(Some(0)) != of(Some(1)),
            "parallel edges draw apart"
        );
    }

    #[test]
    fn targets_are_of_the_type_of_the_target_whose_place_they_take() {
        let kinds: Vec<u16> = (0..60).map(|id| [0, 0, 1, 2, 1][id % 5]).collect();
        let (runs, own) = (TypeRuns::of(kinds.iter().copied()), (0..60).filter(|id| id % 3 > 0).collect::<Vec<u64>>());
        for (scope, of) in [(NegativeScope::Global, runs.all(60)), (NegativeScope::Local, runs.among(&own))] {
            let types = Some(Types { runs: &runs, of: &of });
            let negatives = Negatives { scope, number: 3000, own: &own, nodes: 60, types };
            for edge in [(0, 2), (7, 5), (2, 13)] {
                let drawn: BTreeSet<u64> = negatives.targets(Negatives::of_round(3, 1), edge).collect();
                let is_one = |id: &u64| {
                    let here = scope == NegativeScope::Global || own.contains(id);
                    here && kinds[*id as usize] == kinds[edge.1 as usize] && *id != edge.0
                };
                assert_eq!(drawn, (0..60).filter(is_one).collect(), "{scope:?} {edge:?}");
            }
        }
    }

    #[test]
    fn a_pair_that_stands_for_none_is_drawn_again_until_there_are_as_many_as_asked_for() {
        let negatives = Negatives { scope: NegativeScope::Global, number: 100, own: &[], nodes: 40, types: None };
        let key = Negatives::of_evaluation(5);
        for (share, standing) in [(10, 100..101), (5, 100..101), (2, 60..95), (0, 0..1)] {
            let stands = |id: u64| id % 10 < share;
            let (found, filled) = (negatives.standing(key, (3, 4), stands), negatives.filled(key, (3, 4), stands));
            assert!(standing.contains(&found.len()) || share == 5 && found.len() > 95, "{share}: {}", found.len());
            assert_eq!(filled.len(), if share == 0 { 0 } else { 100 });
            assert!(filled.iter().all(|&id| stands(id) && id != 3), "{share}");
            let different = filled.iter().collect::<BTreeSet<_>>().len() as u64;
            assert_eq!(negatives.left(key, (3, 4), stands), (found.len() < 100).then_some(different), "{share}");
            // What is asked about, a few tries at a time, is all that has to be known.
            let mut asked = BTreeSet::new();
            for tries in &TRIES {
                let known = asked.clone();
                asked.extend(negatives.candidates(key, (3, 4), tries, |id| known.contains(&id) && stands(id)));
            }
            assert_eq!(negatives.filled(key, (3, 4), |id| asked.contains(&id) && stands(id)), filled, "{share}");
        }
        // Who is not turned down is drawn as ever.
        let first: Vec<u64> = negatives.targets(key, (3, 4)).collect();
        assert!(
            first.len() < 100
                && negatives.standing(key, (3, 4), |_| true).iter().filter(|id| first.contains(id)).count()
                    >= first.len()
        );
    }
}
