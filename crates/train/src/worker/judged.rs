//! Held-out edges among pairs that are none, scored by each worker for the edges that end at its own nodes.

use std::ops::Range;

use laconic_graph::given::GivenPairs;
use laconic_graph::links::{NegativeScope, Negatives, Pair};
use laconic_key::Key;
use laconic_nn::Compute;
use laconic_nn::links::{PAIRS_PER_PIECE, PairRows, PairScorer, Scoring};

use super::edges::EdgesAmong;
use super::judgements::{Judgement, Judgements};
use super::left::{Left, SPLITS};
use super::local::Local;
use crate::plan::{LinkPlan, LinkSets, RankedAmong};

/// Edges that are judged, those of validation and those of testing.
pub struct Judged<'a> {
    /// What they are ranked among.
    pub plan: &'a LinkPlan,
    /// Own edges of each split, and pairs that are given.
    pub sets: &'a LinkSets,
    /// Pairs that are edges, and so none of those that are drawn to rank among.
    pub edges: &'a EdgesAmong,
}

impl Judged<'_> {
    /// The targets that stand for no edge in place of an edge's. Drawn ones come from all nodes whatever training
    /// draws, so that figures do not depend on the partition.
    fn drawn(&self, edge: Pair) -> Vec<u64> {
        let RankedAmong::Drawn(number) = self.plan.ranked_among else { return Vec::new() };
        self.negatives(number).filled(self.key(), edge, |target| self.stands(edge, target))
    }

    fn negatives(&self, number: u32) -> Negatives<'_> {
        let (scope, nodes) = (NegativeScope::Global, self.plan.nodes);
        Negatives { scope, number, own: &[], nodes, types: self.plan.types() }
    }

    fn key(&self) -> Key {
        Negatives::of_evaluation(self.plan.evaluation_seed())
    }

    /// Whether a target stands for no edge, as far as is known. The edge itself is none.
    fn stands(&self, edge: Pair, target: u64) -> bool {
        target != edge.target && !self.edges.has(Pair { target, ..edge }, self.plan)
    }

    /// The pairs to ask about for some of [`laconic_graph::links::TRIES`].
    pub fn candidates(&self, tries: &Range<u32>) -> Vec<Pair> {
        let RankedAmong::Drawn(number) = self.plan.ranked_among else { return Vec::new() };
        let (negatives, key) = (self.negatives(number), self.key());
        let of_edge = |edge: Pair| {
            let drawn = negatives.candidates(key, edge, tries, |target| self.stands(edge, target));
            drawn.into_iter().map(move |target| Pair { target, ..edge })
        };
        let of_split = |split: usize| {
            let judged = self.sets.judged(split);
            (0..judged.len()).map(move |at| judged.edge(at))
        };
        (0..SPLITS).flat_map(of_split).flat_map(of_edge).collect()
    }

    /// For how many edges of each split fewer pairs were drawn that stand for no edge than were asked for.
    pub fn left(&self) -> [Left; SPLITS] {
        let mut left = [Left::default(); SPLITS];
        let RankedAmong::Drawn(number) = self.plan.ranked_among else { return left };
        let (negatives, key) = (self.negatives(number), self.key());
        for (split, left) in left.iter_mut().enumerate() {
            let judged = self.sets.judged(split);
            let edges = (0..judged.len()).map(|at| judged.edge(at));
            let of_edges = edges.filter_map(|edge| negatives.left(key, edge, |target| self.stands(edge, target)));
            of_edges.for_each(|fewest| *left = left.and(Left { edges: 1, fewest }));
        }
        left
    }

    /// Calls `each` with every edge of a split that is judged and the targets that it alone is ranked among.
    fn each_edge(&self, split: usize, edges: Range<usize>, mut each: impl FnMut(Pair, &[u64])) {
        let judged = self.sets.judged(split);
        for at in edges {
            let edge = judged.edge(at);
            match judged.given {
                None => each(edge, &self.drawn(edge)),
                Some(given) => each(edge, given.others_of(at)),
            }
        }
    }

    /// How many edges of a split are judged.
    fn count(&self, split: usize) -> usize {
        self.sets.judged(split).len()
    }

    /// The pairs that are given for all edges of a split.
    fn pool(&self, split: usize) -> Option<&GivenPairs<u64>> {
        self.sets.judged(split).given.filter(|given| given.each == 0)
    }

    /// Every node at the end of a pair, some of them often.
    pub fn each_end(&self, mut each: impl FnMut(u64)) {
        for split in 0..SPLITS {
            self.each_edge(split, 0..self.count(split), |edge, others| {
                each(edge.source);
                others.iter().copied().for_each(&mut each);
            });
            self.pool(split).into_iter().flat_map(|pool| &pool.sources).copied().for_each(&mut each);
        }
    }

    /// Scores and counts all own edges. Where the rows of several parts are here and these are to be told apart, those
    /// of each as well: an edge, and a pair of a pool, is of its target's part, as where parts have a worker each.
    pub fn judge(
        &self,
        compute: &mut Compute,
        scorer: &mut PairScorer,
        scoring: Scoring<'_>,
        row: impl Fn(u64) -> u32,
        local: &Local,
        tells: bool,
    ) -> Judgements {
        let owners = if tells { local.owners() } else { &[] };
        let owner = |target: u64| match owners {
            [] => None,
            of_rows => of_rows.get(row(target) as usize).map(|&part| part as usize),
        };
        let parts = if owners.is_empty() { 0 } else { local.parts() };
        let mut parts: Vec<[Judgement; SPLITS]> = (0..parts).map(|_| Default::default()).collect();
        let of = std::array::from_fn(|split| {
            let given = self.sets.judged(split).given;
            let others = match self.plan.ranked_among {
                RankedAmong::Drawn(number) => number as usize,
                RankedAmong::Given(_) => given.map_or(0, |given| given.each),
            };
            let at_once = (PAIRS_PER_PIECE / (1 + others)).max(1);
            let (mut judgement, share) = (Judgement::default(), self.plan.pool_share(split));
            let (count, key) = (self.count(split), self.key());
            for first in (0..count).step_by(at_once) {
                let (mut pairs, mut begins, mut pooled) = (PairRows::default(), vec![0], Vec::new());
                self.each_edge(split, first..(first + at_once).min(count), |edge, others| {
                    for &target in std::iter::once(&edge.target).chain(others) {
                        pairs.sources.push(row(edge.source));
                        pairs.destinations.push(row(target));
                        pairs.relations.extend(edge.relation.map(u32::from));
                    }
                    begins.push(pairs.len());
                    pooled.push((share >= 1.0 || Negatives::is_among(key, edge, share), owner(edge.target)));
                });
                let mut scores = Vec::with_capacity(pairs.len());
                scorer.scores(compute, scoring, &pairs, |_, some| scores.extend_from_slice(some));
                for (ends, (is_pooled, owner)) in begins.windows(2).zip(pooled) {
                    let (scores, is_given) = (&scores[ends[0]..ends[1]], given.is_some());
                    judgement.add(scores, is_given, is_pooled);
                    owner.into_iter().for_each(|part| parts[part][split].add(scores, is_given, is_pooled));
                }
            }
            if let Some(pool) = self.pool(split) {
                let mut targets = pool.targets.iter();
                self.score_pool(pool, compute, scorer, scoring, &row, |some| {
                    judgement.add_to_pool(some);
                    for (score, part) in some.iter().zip(targets.by_ref().map(|&target| owner(target))) {
                        part.into_iter().for_each(|part| parts[part][split].add_to_pool(&[*score]));
                    }
                });
            }
            judgement
        });
        Judgements::new((of, parts), [0, 1].map(|split| self.pool(split).is_some()))
    }

    /// Calls `each` with scores of the pairs of a pool.
    fn score_pool(
        &self,
        pool: &GivenPairs<u64>,
        compute: &mut Compute,
        scorer: &mut PairScorer,
        scoring: Scoring<'_>,
        row: impl Fn(u64) -> u32,
        mut each: impl FnMut(&[f32]),
    ) {
        let pieces = pool.sources.chunks(PAIRS_PER_PIECE).zip(pool.targets.chunks(PAIRS_PER_PIECE));
        for (sources, targets) in pieces {
            let rows = |ids: &[u64]| ids.iter().map(|&id| row(id)).collect::<Vec<u32>>();
            let (sources, destinations) = (rows(sources), rows(targets));
            let pairs = PairRows { sources, destinations, relations: Vec::new() };
            scorer.scores(compute, scoring, &pairs, |_, some| each(some));
        }
    }
}
