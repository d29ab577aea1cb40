//! How well links are predicted: held-out edges among pairs that are none, counted by each worker for the edges that
//! end at its own nodes, and added up.

use std::ops::Range;

use laconic_graph::given::GivenPairs;
use laconic_graph::links::{NegativeScope, Negatives, Pair};
use laconic_key::Key;
use laconic_nn::Compute;
use laconic_nn::links::{PAIRS_PER_PIECE, PairRows, PairScorer, Scoring};
use laconic_nn::metric::Metric;
use laconic_nn::ranking::{Best, Pool, Ranks, rank};
use laconic_nn::roc::{BINS, Binned, bin};
use laconic_wire::{Direction, Kind, Ledger, Rank, Tag, Transport, WireError, collectives};

use super::areas::{Area, Curve};
use super::edges::EdgesAmong;
use super::evaluate::Scores;
use crate::error::Result;
use crate::exchange::shapes::Shapes;
use crate::plan::{LinkPlan, LinkSets, RankedAmong};

/// Splits that are judged: validation and testing.
const SPLITS: usize = 2;

/// Numbers of a split besides those of metrics: ranked edges, Σ 1 / rank, Σ loss, pairs of the loss, edges.
const SUMS: usize = 5;

/// The first of them among all splits.
const FIRST: usize = 1;

/// Why edges have no rank.
const NO_PAIRS: &str = "there is no pair to set them against";

/// What frames are about. Steps below are taken by evaluations of nodes.
#[derive(Clone, Copy)]
enum Step {
    Sums = 1,
    Pools = 8,
    Bins = 9,
    PoolScores = 10,
}

fn tag(round: u32, step: Step) -> Tag {
    Tag { kind: Kind::Evaluation, direction: Direction::Forward, layer: 0, round, step: step as u16 }
}

/// Edges that are judged, those of validation and those of testing.
pub struct Judged<'a> {
    /// What they are ranked among.
    pub plan: &'a LinkPlan,
    /// Own edges of each split, and pairs that are given.
    pub sets: &'a LinkSets,
    /// Pairs that are edges, and so none of those that are drawn to rank among.
    pub edges: &'a EdgesAmong,
}

/// What a worker counts of one split.
struct Judgement {
    ranks: Ranks,
    loss: [f64; 2],
    /// Scores of edges and of the pool: the given one, all pairs that are given for single edges, or of those that are
    /// drawn the first of each edge.
    scores: [Vec<f32>; 2],
}

/// What a worker counts of all splits.
pub struct Judgements {
    of: [Judgement; SPLITS],
    /// Which splits have a given pool, in which everybody's edges have their ranks.
    pools: [bool; SPLITS],
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

    /// Scores and counts all own edges.
    pub fn judge(
        &self,
        (compute, scorer): (&mut Compute, &mut PairScorer),
        scoring: Scoring<'_>,
        row: impl Fn(u64) -> u32,
    ) -> Judgements {
        let of = std::array::from_fn(|split| {
            let given = self.sets.judged(split).given;
            let others = match self.plan.ranked_among {
                RankedAmong::Drawn(number) => number as usize,
                RankedAmong::Given(_) => given.map_or(0, |given| given.each),
            };
            let at_once = (PAIRS_PER_PIECE / (1 + others)).max(1);
            let mut judgement = Judgement { ranks: Ranks::new(&[]), loss: [0.0; 2], scores: Default::default() };
            let count = self.count(split);
            for first in (0..count).step_by(at_once) {
                let (mut pairs, mut begins) = (PairRows::default(), vec![0]);
                self.each_edge(split, first..(first + at_once).min(count), |edge, others| {
                    for &target in std::iter::once(&edge.target).chain(others) {
                        pairs.sources.push(row(edge.source));
                        pairs.destinations.push(row(target));
                        pairs.relations.extend(edge.relation.map(u32::from));
                    }
                    begins.push(pairs.len());
                });
                let mut scores = Vec::with_capacity(pairs.len());
                scorer.scores(compute, scoring, &pairs, |_, some| scores.extend_from_slice(some));
                begins.windows(2).for_each(|ends| judgement.add(&scores[ends[0]..ends[1]], given.is_some()));
            }
            if let Some(pool) = self.pool(split) {
                self.score_pool(pool, (compute, scorer), scoring, &row, |some| judgement.add_to_pool(some));
            }
            judgement
        });
        Judgements { of, pools: [0, 1].map(|split| self.pool(split).is_some()) }
    }

    /// Calls `each` with scores of the pairs of a pool.
    fn score_pool(
        &self,
        pool: &GivenPairs<u64>,
        (compute, scorer): (&mut Compute, &mut PairScorer),
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

/// ln(1 + e^x) without overflow.
fn softplus(x: f64) -> f64 {
    x.max(0.0) + (-x.abs()).exp().ln_1p()
}

impl Judgement {
    /// An edge's score, then those of its pairs that are none: all of them belong to the pool where they are given,
    /// and the first where they are drawn. An edge without any is ranked in a pool, or has no rank.
    fn add(&mut self, scores: &[f32], is_given: bool) {
        let Some((&edge, others)) = scores.split_first() else { return };
        if !others.is_empty() {
            self.ranks.add(rank(edge, others), &[]);
        }
        self.scores[0].push(edge);
        self.loss[0] += softplus(-f64::from(edge));
        self.loss[1] += 1.0;
        self.add_to_pool(if is_given { others } else { &others[..others.len().min(1)] });
    }

    fn add_to_pool(&mut self, scores: &[f32]) {
        self.scores[1].extend(scores);
        self.loss[0] = scores.iter().fold(self.loss[0], |sum, &score| sum + softplus(f64::from(score)));
        self.loss[1] += scores.len() as f64;
    }
}

impl Judgements {
    /// Figures over all workers, and the sum of `count` over them.
    ///
    /// # Errors
    /// If another worker does not answer, or sends something else.
    pub fn figures(
        mut self,
        transport: &mut dyn Transport,
        metrics: &[Metric],
        (round, count): (u32, u64),
    ) -> Result<(Scores, u64)> {
        let tops: Vec<usize> = metrics.iter().filter_map(|metric| metric.top()).collect();
        self.rank_in_pools(transport, metrics, round)?;
        let all = &self.of;
        let hits = hits(all, transport, &tops, round)?;
        let mut flat = Vec::with_capacity(SPLITS * (SUMS + tops.len()) + 1);
        for (judgement, hits) in all.iter().zip(&hits) {
            judgement.ranks.flatten(&mut flat);
            flat.extend(judgement.loss);
            flat.push(judgement.scores[0].len() as f64);
            flat.extend(hits.iter().map(|hits| hits.unwrap_or_default()));
        }
        flat.push(count as f64);
        collectives::all_reduce_f64(transport, tag(round, Step::Sums), &mut flat)?;
        let areas = if metrics.contains(&Metric::RocAuc) { areas(all, transport, round)? } else { Default::default() };
        let count = flat.pop().unwrap_or(0.0) as u64;
        let mut scores = Scores::default();
        let splits = flat.chunks_exact(SUMS + tops.len()).zip(areas).zip(&hits).enumerate();
        for (split, ((flat, area), own_hits)) in splits {
            let (split, ranks, edges) = (split + FIRST, Ranks::unflatten(&flat[..2]), flat[4]);
            if edges == 0.0 {
                continue;
            }
            scores.enter(split, "loss", Some(flat[2] / flat[3]), None);
            let mut hits = flat[SUMS..].iter().zip(own_hits);
            for metric in metrics {
                let figure = match metric {
                    Metric::Mrr => ranks.mean_reciprocal(),
                    Metric::RocAuc => area.mean,
                    _ => hits.next().and_then(|(hits, own)| own.map(|_| hits / edges)),
                };
                let unranked = (edges - ranks.edges) as u64;
                let said = match metric {
                    Metric::RocAuc => area.said.clone(),
                    _ if figure.is_none() => Some(format!("is not defined: {NO_PAIRS}")),
                    Metric::Mrr if unranked > 0 => {
                        Some(format!("is over {} of {edges} edges: for the others {NO_PAIRS}", ranks.edges))
                    }
                    _ => None,
                };
                scores.enter(split, metric.name(), figure, said.as_deref());
            }
        }
        Ok((scores, count))
    }

    /// Ranks own edges among the pairs that are given for all, whose scores every worker then has.
    fn rank_in_pools(&mut self, transport: &mut dyn Transport, metrics: &[Metric], round: u32) -> Result<()> {
        let own = |judgement: &Judgement, is_pool: bool| if is_pool { judgement.scores[1].clone() } else { Vec::new() };
        let (mut pools, mut ranked) = ([0, 1].map(|split| own(&self.of[split], self.pools[split])), self.pools);
        if !metrics.contains(&Metric::Mrr) {
            ranked = [false; SPLITS];
        } else if self.pools.contains(&true) {
            pools = everybodys(&pools, usize::MAX, transport, tag(round, Step::PoolScores))?;
        }
        for ((judgement, pool), is_ranked) in self.of.iter_mut().zip(pools).zip(ranked) {
            let is_empty = pool.is_empty();
            let pool = Pool::new(pool);
            if is_ranked && !is_empty {
                let Judgement { ranks, scores: [edges, _], .. } = judgement;
                edges.iter().for_each(|&edge| ranks.add(pool.rank(edge), &[]));
            }
        }
        Ok(())
    }

    /// Enters no less than what [`Judgements::figures`] sends.
    pub fn forecast((links, metrics): (&LinkPlan, &[Metric]), shapes: &Shapes, round: u32, ledger: &mut Ledger) {
        let (rank, size) = (Rank(shapes.rank), shapes.workers());
        if let (RankedAmong::Given(all), true) = (links.ranked_among, metrics.contains(&Metric::Mrr)) {
            let pools = all.iter().zip(shapes.given_pairs).filter(|(all, _)| all.each == 0);
            if let Some(scores) = pools.map(|(_, own)| own).reduce(usize::saturating_add) {
                let bytes = scores.saturating_add(SPLITS).saturating_mul(4);
                collectives::forecast_all_gather(ledger, tag(round, Step::PoolScores), size, rank, bytes);
            }
        }
        let tops: Vec<usize> = metrics.iter().filter_map(|metric| metric.top()).collect();
        if let Some(most) = tops.iter().max() {
            let bytes = SPLITS * (4 + 4 * most);
            collectives::forecast_all_gather(ledger, tag(round, Step::Pools), size, rank, bytes);
        }
        let sums = SPLITS * (SUMS + tops.len()) + 1;
        collectives::forecast_all_reduce_f64(ledger, tag(round, Step::Sums), size, rank, sums);
        if metrics.contains(&Metric::RocAuc) {
            collectives::forecast_all_reduce_f64(ledger, tag(round, Step::Bins), size, rank, SPLITS * 2 * BINS);
        }
    }
}

/// Some scores of each split from everybody, at most so many of each, with everybody's own.
fn everybodys(
    own: &[Vec<f32>; SPLITS],
    most: usize,
    transport: &mut dyn Transport,
    tag: Tag,
) -> Result<[Vec<f32>; SPLITS]> {
    let mut mine = Vec::new();
    for scores in own {
        mine.extend((scores.len() as u32).to_le_bytes());
        scores.iter().for_each(|score| mine.extend(score.to_le_bytes()));
    }
    let mut pools: [Vec<f32>; SPLITS] = Default::default();
    for (peer, bytes) in collectives::all_gather(transport, tag, &mine)?.iter().enumerate() {
        let mut rest = &bytes[..];
        for pool in &mut pools {
            let scores = rest.split_first_chunk::<4>().and_then(|(count, after)| {
                let count = u32::from_le_bytes(*count) as usize;
                after.split_at_checked(count.checked_mul(4)?).filter(|_| count <= most)
            });
            let Some((scores, after)) = scores else {
                let error = WireError::malformed("scores of a pool of another shape");
                return Err(error.from_peer(transport.rank(), Rank(peer as u32), tag).into());
            };
            pool.extend(scores.as_chunks().0.iter().map(|score| f32::from_le_bytes(*score)));
            rest = after;
        }
    }
    Ok(pools)
}

/// For each split and K how many own edges score above the K-th best of everybody's pool; `None` where it is empty.
fn hits(
    all: &[Judgement; SPLITS],
    transport: &mut dyn Transport,
    tops: &[usize],
    round: u32,
) -> Result<[Vec<Option<f64>>; SPLITS]> {
    let Some(&most) = tops.iter().max() else { return Ok(Default::default()) };
    let own = |judgement: &Judgement| {
        let mut best = Best::new(most);
        best.extend(judgement.scores[1].iter().copied());
        best.scores().to_vec()
    };
    let pools = everybodys(&all.each_ref().map(own), most, transport, tag(round, Step::Pools))?;
    let count = |(pool, judgement): (&Vec<f32>, &Judgement)| {
        let above = |&top: &usize| {
            let mut best = Best::new(top);
            best.extend(pool.iter().copied());
            (!pool.is_empty()).then(|| best.hits(&judgement.scores[0]) as f64)
        };
        tops.iter().map(above).collect()
    };
    let mut hits: [Vec<Option<f64>>; SPLITS] = Default::default();
    pools.iter().zip(all).map(count).zip(&mut hits).for_each(|(found, into)| *into = found);
    Ok(hits)
}

/// The area under the ROC curve of edges against the pool, from counts of scores in bins.
fn areas(all: &[Judgement; SPLITS], transport: &mut dyn Transport, round: u32) -> Result<[Area; SPLITS]> {
    let mut counts = vec![0.0; SPLITS * 2 * BINS];
    for (split, judgement) in all.iter().enumerate() {
        for (is_edge, scores) in [(1, &judgement.scores[0]), (0, &judgement.scores[1])] {
            scores.iter().for_each(|&score| counts[(split * BINS + bin(score)) * 2 + is_edge] += 1.0);
        }
    }
    collectives::all_reduce_f64(transport, tag(round, Step::Bins), &mut counts)?;
    let mut areas: [Area; SPLITS] = Default::default();
    for (area, counts) in areas.iter_mut().zip(counts.chunks_exact(2 * BINS)) {
        let bins = counts.as_chunks::<2>().0.iter().map(|bin| bin.map(|count| count as u64));
        *area = Area::of(&[Curve::binned(&Binned::of(bins))], |_| NO_PAIRS.to_owned());
    }
    Ok(areas)
}
