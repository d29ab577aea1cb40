//! How well links are predicted: held-out edges among pairs that are none, counted by each worker for the edges that
//! end at its own nodes, and added up.

use laconic_graph::links::{Links, NegativeScope, Negatives};
use laconic_nn::Compute;
use laconic_nn::links::{PAIRS_PER_PIECE, PairRows, PairScorer, Scoring};
use laconic_nn::metric::Metric;
use laconic_nn::ranking::{Best, Ranks, rank};
use laconic_nn::roc::{BINS, Binned, bin};
use laconic_wire::{Direction, Kind, Ledger, Rank, Tag, Transport, WireError, collectives};

use super::edges::EdgesAmong;
use super::evaluate::Scores;
use crate::error::Result;
use crate::plan::LinkPlan;

/// Splits that are judged: validation and testing.
const SPLITS: usize = 2;

/// Numbers of a split besides those of metrics: ranked edges, Σ 1 / rank, Σ loss, pairs of the loss.
const SUMS: usize = 4;

/// What frames are about. Steps below are taken by evaluations of nodes.
#[derive(Clone, Copy)]
enum Step {
    Sums = 1,
    Pools = 8,
    Bins = 9,
}

fn tag(round: u32, step: Step) -> Tag {
    Tag { kind: Kind::Evaluation, direction: Direction::Forward, layer: 0, round, step: step as u16 }
}

/// Edges that are judged, those of validation and those of testing.
pub struct Judged<'a> {
    /// What they are ranked among.
    pub plan: &'a LinkPlan,
    /// Own edges of each split.
    pub sets: [&'a Links; SPLITS],
    /// Pairs that are edges, and so none of those that they are ranked among.
    pub edges: &'a EdgesAmong,
}

/// What a worker counts of one split.
pub struct Judgement {
    ranks: Ranks,
    loss: [f64; 2],
    /// Scores of edges and of the pool: the first pair that is none of each edge.
    scores: [Vec<f32>; 2],
}

impl Judged<'_> {
    /// The targets that stand for no edge in place of an edge's. They come from all nodes whatever training draws, so
    /// that figures do not depend on the partition.
    fn targets(&self, edge: (u64, u64)) -> impl Iterator<Item = u64> {
        let LinkPlan { ranked_among, nodes, .. } = *self.plan;
        let all = Negatives { scope: NegativeScope::Global, number: ranked_among, own: &[], nodes };
        // The edge itself is none of them.
        let stands = |other: &u64| *other != edge.1 && !self.edges.has((edge.0, *other), nodes);
        let drawn = all.targets(Negatives::of_evaluation(self.plan.evaluation_seed()), edge).filter(stands);
        drawn.collect::<Vec<u64>>().into_iter()
    }

    /// Every pair that an edge is ranked among.
    pub fn pairs(&self) -> impl Iterator<Item = (u64, u64)> {
        let edges = self.sets.into_iter().flat_map(Links::iter);
        edges.flat_map(|edge| self.targets(edge).map(move |other| (edge.0, other)))
    }

    /// Every node at the end of a pair, some of them often.
    pub fn each_end(&self, mut each: impl FnMut(u64)) {
        for edge in self.sets.iter().flat_map(|links| links.iter()) {
            each(edge.0);
            self.targets(edge).for_each(&mut each);
        }
    }

    /// Scores and counts all own edges.
    pub fn judge(
        &self,
        (compute, scorer): (&mut Compute, &mut PairScorer),
        scoring: Scoring<'_>,
        row: impl Fn(u64) -> u32,
    ) -> [Judgement; SPLITS] {
        let at_once = (PAIRS_PER_PIECE / (1 + self.plan.ranked_among as usize)).max(1);
        self.sets.map(|links| {
            let mut judgement = Judgement { ranks: Ranks::new(&[]), loss: [0.0; 2], scores: Default::default() };
            for first in (0..links.len()).step_by(at_once) {
                let last = (first + at_once).min(links.len());
                let (mut pairs, mut begins) = (PairRows::default(), Vec::with_capacity(last - first + 1));
                for at in first..last {
                    let edge = (links.sources[at], links.targets[at]);
                    begins.push(pairs.len());
                    for target in std::iter::once(edge.1).chain(self.targets(edge)) {
                        pairs.sources.push(row(edge.0));
                        pairs.destinations.push(row(target));
                    }
                }
                begins.push(pairs.len());
                let mut scores = Vec::with_capacity(pairs.len());
                scorer.scores(compute, scoring, &pairs, |_, some| scores.extend_from_slice(some));
                begins.windows(2).for_each(|ends| judgement.add(&scores[ends[0]..ends[1]]));
            }
            judgement
        })
    }
}

/// ln(1 + e^x) without overflow.
fn softplus(x: f64) -> f64 {
    x.max(0.0) + (-x.abs()).exp().ln_1p()
}

impl Judgement {
    /// An edge's score, then those of its pairs that are none.
    fn add(&mut self, scores: &[f32]) {
        let Some((&edge, others)) = scores.split_first() else { return };
        self.ranks.add(rank(edge, others), &[]);
        self.scores[0].push(edge);
        self.loss[0] += softplus(-f64::from(edge));
        self.loss[1] += 1.0;
        if let Some(&other) = others.first() {
            self.scores[1].push(other);
            self.loss[0] += softplus(f64::from(other));
            self.loss[1] += 1.0;
        }
    }

    /// Figures over all workers, and the sum of `count` over them.
    ///
    /// # Errors
    /// If another worker does not answer, or sends something else.
    pub fn figures(
        all: [Judgement; SPLITS],
        transport: &mut dyn Transport,
        metrics: &[Metric],
        (round, count): (u32, u64),
    ) -> Result<(Scores, u64)> {
        let tops: Vec<usize> = metrics.iter().filter_map(|metric| metric.top()).collect();
        let hits = hits(&all, transport, &tops, round)?;
        let mut flat = Vec::with_capacity(SPLITS * (SUMS + tops.len()) + 1);
        for (judgement, hits) in all.iter().zip(&hits) {
            judgement.ranks.flatten(&mut flat);
            flat.extend(judgement.loss);
            flat.extend(hits);
        }
        flat.push(count as f64);
        collectives::all_reduce_f64(transport, tag(round, Step::Sums), &mut flat)?;
        let areas = if metrics.contains(&Metric::RocAuc) { areas(&all, transport, round)? } else { [0.0; SPLITS] };
        let count = flat.pop().unwrap_or(0.0) as u64;
        let mut scores = Scores::default();
        let splits = [&mut scores.val, &mut scores.test].into_iter().zip(flat.chunks_exact(SUMS + tops.len()));
        for ((into, flat), area) in splits.zip(areas) {
            let ranks = Ranks::unflatten(&flat[..2]);
            if ranks.edges == 0.0 {
                continue;
            }
            into.insert("loss".to_owned(), flat[2] / flat[3]);
            let mut hits = flat[SUMS..].iter();
            for metric in metrics {
                let figure = match metric {
                    Metric::Mrr => ranks.mean_reciprocal(),
                    Metric::RocAuc => area,
                    _ => hits.next().map_or(0.0, |hits| hits / ranks.edges),
                };
                into.insert(metric.name().to_owned(), figure);
            }
        }
        Ok((scores, count))
    }

    /// Enters no less than what [`Judgement::figures`] sends.
    pub fn forecast(metrics: &[Metric], (rank, size): (Rank, usize), round: u32, ledger: &mut Ledger) {
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

/// For each split and K how many own edges score above the K-th best of everybody's pool.
fn hits(
    all: &[Judgement; SPLITS],
    transport: &mut dyn Transport,
    tops: &[usize],
    round: u32,
) -> Result<[Vec<f64>; SPLITS]> {
    let Some(&most) = tops.iter().max() else { return Ok(Default::default()) };
    let mut mine = Vec::new();
    for judgement in all {
        let mut best = Best::new(most);
        best.extend(judgement.scores[1].iter().copied());
        mine.extend((best.scores().len() as u32).to_le_bytes());
        best.scores().iter().for_each(|score| mine.extend(score.to_le_bytes()));
    }
    let tag = tag(round, Step::Pools);
    let mut pools: [Vec<f32>; SPLITS] = Default::default();
    for (peer, bytes) in collectives::all_gather(transport, tag, &mine)?.iter().enumerate() {
        let mut rest = &bytes[..];
        for pool in &mut pools {
            let scores = rest.split_first_chunk::<4>().and_then(|(count, after)| {
                let count = u32::from_le_bytes(*count) as usize;
                after.split_at_checked(count.checked_mul(4)?).filter(|_| count <= most)
            });
            let Some((scores, after)) = scores else {
                let error = WireError::malformed("the best of a pool of another shape");
                return Err(error.from_peer(transport.rank(), Rank(peer as u32), tag).into());
            };
            pool.extend(scores.as_chunks().0.iter().map(|score| f32::from_le_bytes(*score)));
            rest = after;
        }
    }
    let count = |(pool, judgement): (&Vec<f32>, &Judgement)| {
        let above = |&top: &usize| {
            let mut best = Best::new(top);
            best.extend(pool.iter().copied());
            best.hits(&judgement.scores[0]) as f64
        };
        tops.iter().map(above).collect()
    };
    let mut hits: [Vec<f64>; SPLITS] = Default::default();
    pools.iter().zip(all).map(count).zip(&mut hits).for_each(|(found, into)| *into = found);
    Ok(hits)
}

/// The area under the ROC curve of edges against the pool, from counts of scores in bins.
fn areas(all: &[Judgement; SPLITS], transport: &mut dyn Transport, round: u32) -> Result<[f64; SPLITS]> {
    let mut counts = vec![0.0; SPLITS * 2 * BINS];
    for (split, judgement) in all.iter().enumerate() {
        for (is_edge, scores) in [(1, &judgement.scores[0]), (0, &judgement.scores[1])] {
            scores.iter().for_each(|&score| counts[(split * BINS + bin(score)) * 2 + is_edge] += 1.0);
        }
    }
    collectives::all_reduce_f64(transport, tag(round, Step::Bins), &mut counts)?;
    let mut areas = [0.0; SPLITS];
    for (area, counts) in areas.iter_mut().zip(counts.chunks_exact(2 * BINS)) {
        let bins = counts.as_chunks::<2>().0.iter().map(|bin| bin.map(|count| count as u64));
        *area = Binned::of(bins).area().unwrap_or(0.0);
    }
    Ok(areas)
}
