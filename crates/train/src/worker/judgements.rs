//! How well links are predicted: what each worker counts of its own held-out edges, added up over all of them.

use laconic_nn::metric::Metric;
use laconic_nn::ranking::{Best, Pool, Ranks, rank};
use laconic_nn::roc::{BINS, Binned, bin};
use laconic_wire::{Content, Direction, FramePurpose, Ledger, Rank, Tag, Transport, WireError, collectives};

use super::areas::{Area, Curve};
use super::evaluate::{Evaluated, Scores};
use super::left::{Left, SPLITS};
use super::parts::{Counted, PartCounts};
use crate::error::Result;
use crate::exchange::shapes::Shapes;
use crate::plan::{LinkPlan, RankedAmong};

/// The first of them among all splits.
const FIRST: usize = 1;

/// Numbers of a split besides those of ranks and Hits@K: Σ loss, pairs of the loss, edges, pairs of the pool.
const SUMS: usize = 4;

/// Why edges have no rank.
const NO_PAIRS: &str = "there is no pair to set them against";

/// What frames are about. Steps below are taken by evaluations of nodes.
#[derive(Clone, Copy)]
enum Step {
    Sums = 1,
    Pools = 8,
    Bins = 9,
    PoolScores = 10,
    ExactEdges = 11,
    ExactPairs = 12,
}

fn tag(round: u32, step: Step) -> Tag {
    let content = match step {
        Step::Sums => Content::Figures,
        Step::Bins => Content::ScoreBins,
        Step::Pools | Step::PoolScores | Step::ExactEdges | Step::ExactPairs => Content::LabelledScores,
    };
    let purpose = FramePurpose::Evaluation;
    Tag { content, purpose, direction: Direction::Forward, layer: 0, round, step: step as u16 }
}

/// What a worker counts of one split.
#[derive(Default)]
pub(super) struct Judgement {
    /// The rank of each edge that has one.
    ranks: Vec<usize>,
    loss: [f64; 2],
    /// Scores of edges and of the pool: the given one, all pairs that are given for single edges, or of those that are
    /// drawn the first of each edge.
    scores: [Vec<f32>; 2],
    /// Those that Hits@K count against, where these are not all of the pool.
    thinned: Option<Vec<f32>>,
}

impl Judgement {
    /// An edge's score, then those of its pairs that are none: all of them belong to the pool where they are given, and
    /// the first where they are drawn. An edge without any is ranked in a pool, or has no rank. Hits@K count against
    /// the pairs of edges that are pooled.
    pub fn add(&mut self, scores: &[f32], is_given: bool, is_pooled: bool) {
        let Some((&edge, others)) = scores.split_first() else { return };
        if !others.is_empty() {
            self.ranks.push(rank(edge, others));
        }
        self.scores[0].push(edge);
        self.loss[0] += softplus(-f64::from(edge));
        self.loss[1] += 1.0;
        let first = &others[..others.len().min(1)];
        if !is_given && !is_pooled {
            // Only now is it known that some are not.
            self.thinned.get_or_insert_with(|| self.scores[1].clone());
        } else if let Some(thinned) = &mut self.thinned {
            thinned.extend(first);
        }
        self.add_to_pool(if is_given { others } else { first });
    }

    /// Scores of the pool.
    pub fn add_to_pool(&mut self, scores: &[f32]) {
        self.scores[1].extend(scores);
        self.loss[0] = scores.iter().fold(self.loss[0], |sum, &score| sum + softplus(f64::from(score)));
        self.loss[1] += scores.len() as f64;
    }

    /// What Hits@K count against.
    fn pool(&self) -> &Vec<f32> {
        self.thinned.as_ref().unwrap_or(&self.scores[1])
    }

    /// Adds how many own pairs, and edges, are in each bin of the score.
    fn bins(&self, into: &mut [f64]) {
        for (is_edge, scores) in [(1, &self.scores[0]), (0, &self.scores[1])] {
            scores.iter().for_each(|&score| into[bin(score) * 2 + is_edge] += 1.0);
        }
    }

    /// The areas of own edges against own pairs: from counts in bins, and exact.
    fn areas(&self, metrics: &[Metric]) -> [Area; 2] {
        let mut areas: [Area; 2] = Default::default();
        if metrics.contains(&Metric::RocAuc) {
            let mut counts = vec![0.0; 2 * BINS];
            self.bins(&mut counts);
            areas[0] = binned(&counts);
        }
        if metrics.contains(&Metric::RocAucExact) {
            let of = |which: usize| self.scores[which].iter().map(move |&score| (score, which == 0));
            let mut scored: Vec<(f32, bool)> = of(0).chain(of(1)).collect();
            areas[1] = Area::of(&[Curve::exact(&mut scored)], |_| NO_PAIRS.to_owned());
        }
        areas
    }

    /// Edges that have a rank, among the best of these.
    fn ranks(&self, tops: &[usize]) -> Ranks {
        let mut ranks = Ranks::new(tops);
        self.ranks.iter().for_each(|&rank| ranks.add(rank, tops));
        ranks
    }
}

/// ln(1 + e^x) without overflow.
fn softplus(x: f64) -> f64 {
    x.max(0.0) + (-x.abs()).exp().ln_1p()
}

/// What metrics look for among the best.
struct Tops {
    /// Of Hits@K.
    hits: Vec<usize>,
    /// Of recall and nDCG.
    ranks: Vec<usize>,
}

impl Tops {
    fn of(metrics: &[Metric]) -> Tops {
        let hits = metrics.iter().filter_map(|metric| metric.top()).collect();
        let of_ranks = |metric: &Metric| metric.recall_top().or(metric.gain_top());
        let mut ranks: Vec<usize> = metrics.iter().filter_map(of_ranks).collect();
        ranks.sort_unstable();
        ranks.dedup();
        Tops { hits, ranks }
    }

    /// The numbers of a split that are added up.
    fn numbers(&self) -> usize {
        Ranks::flat_len(self.ranks.len()) + SUMS + self.hits.len()
    }
}

/// What a worker counts of all splits.
pub struct Judgements {
    of: [Judgement; SPLITS],
    /// The same of each part, where several are here.
    parts: Vec<[Judgement; SPLITS]>,
    /// Which splits have a given pool, in which everybody's edges have their ranks.
    pools: [bool; SPLITS],
}

/// The sums of one split over all workers.
struct Sums<'a> {
    ranks: Ranks,
    loss: Option<f64>,
    edges: f64,
    pool: f64,
    hits: &'a [f64],
}

impl<'a> Sums<'a> {
    fn of(flat: &'a [f64], tops: &Tops) -> Option<Sums<'a>> {
        let (ranks, rest) = flat.split_at_checked(Ranks::flat_len(tops.ranks.len()))?;
        let (&[loss, pairs, edges, pool], hits) = rest.split_first_chunk::<SUMS>()?;
        let loss = (pairs > 0.0).then(|| loss / pairs);
        Some(Sums { ranks: Ranks::unflatten(ranks), loss, edges, pool, hits })
    }

    /// A figure that follows from ranks.
    fn of_ranks(&self, metric: Metric, tops: &Tops) -> Option<f64> {
        let place = |top: Option<usize>| tops.ranks.iter().position(|&other| Some(other) == top);
        match (place(metric.recall_top()), place(metric.gain_top())) {
            (Some(index), _) => self.ranks.recall(index),
            (_, Some(index)) => self.ranks.gain(index),
            (None, None) => self.ranks.mean_reciprocal(),
        }
    }

    /// A figure with what is to be said of it, behind its name and split.
    fn figure(&self, metric: Metric, tops: &Tops, areas: [&Area; 2]) -> (Option<f64>, Option<String>) {
        let (edges, not_defined) = (self.edges, Some(format!("is not defined: {NO_PAIRS}")));
        if let Some(top) = metric.top() {
            let at = tops.hits.iter().position(|&other| other == top);
            let hits = at.and_then(|at| self.hits.get(at));
            return match self.pool {
                0.0 => (None, not_defined),
                pool if pool < top as f64 => {
                    (None, Some(format!("is not defined: its pool has {pool} pairs, and {top} are needed")))
                }
                _ => (hits.map(|hits| hits / edges), None),
            };
        }
        match metric {
            Metric::RocAuc => (areas[0].mean, areas[0].said.clone()),
            Metric::RocAucExact => (areas[1].mean, areas[1].said.clone()),
            _ => {
                let (figure, unranked) = (self.of_ranks(metric, tops), edges - self.ranks.edges);
                let some = || format!("is over {} of {edges} edges: for the others {NO_PAIRS}", self.ranks.edges);
                let said = if figure.is_none() { not_defined } else { (unranked > 0.0).then(some) };
                (figure, said)
            }
        }
    }
}

/// What is measured of links.
#[derive(Clone, Copy)]
pub struct Measured<'a> {
    /// How links are learned and judged.
    pub links: &'a LinkPlan,
    /// The figures that are asked for.
    pub metrics: &'a [Metric],
}

impl Judgements {
    pub(super) fn new(
        (of, parts): ([Judgement; SPLITS], Vec<[Judgement; SPLITS]>),
        pools: [bool; SPLITS],
    ) -> Judgements {
        Judgements { of, parts, pools }
    }

    /// What the edges of a part come to, in ranks among their own pairs and hits above everybody's pools, which have so
    /// many.
    fn counted(
        of: &[Judgement; SPLITS],
        own: &[f64],
        tops: &Tops,
        (metrics, pools): (&[Metric], [f64; SPLITS]),
    ) -> PartCounts {
        let mut parts = PartCounts::default();
        for (at, flat) in own.chunks_exact(tops.numbers()).enumerate().take(SPLITS) {
            let Some(sums) = Sums::of(flat, tops).filter(|sums| sums.edges > 0.0) else { continue };
            let sums = Sums { pool: pools[at], ..sums };
            let areas = of[at].areas(metrics);
            let each = metrics.iter().map(|metric| sums.figure(*metric, tops, [&areas[0], &areas[1]]).0);
            let figures = std::iter::once(sums.loss).chain(each).collect();
            parts[at] = Counted { count: sums.edges as u64, figures, decisions: Vec::new() };
        }
        parts
    }

    /// Figures over all workers, the sum of `count` over them, and if it `tells` them those of each part that is here;
    /// `left` are edges with few pairs.
    ///
    /// # Errors
    /// If another worker does not answer, or sends something else.
    pub fn figures(
        mut self,
        transport: &mut dyn Transport,
        measured: Measured<'_>,
        left: [Left; SPLITS],
        round: u32,
        count: u64,
        tells: bool,
    ) -> Result<Evaluated> {
        let Measured { links, metrics } = measured;
        let tops = Tops::of(metrics);
        self.rank_in_pools(transport, metrics, round)?;
        let all = &self.of;
        let several: Vec<&[Judgement; SPLITS]> = std::iter::once(all).chain(&self.parts).collect();
        let hits = hits(&several, transport, &tops.hits, round)?;
        let flats: Vec<Vec<f64>> = several.iter().zip(&hits).map(|(of, hits)| flat(of, hits, &tops)).collect();
        let mut flat = flats[0].clone();
        flat.push(count as f64);
        collectives::all_reduce_f64(transport, tag(round, Step::Sums), &mut flat)?;
        let binned = if metrics.contains(&Metric::RocAuc) { areas(all, transport, round)? } else { Default::default() };
        let exact = metrics.contains(&Metric::RocAucExact);
        let exact = if exact { exact_areas(all, transport, round)? } else { Default::default() };
        let bytes = flat.pop().unwrap_or(0.0) as u64;
        let (mut scores, mut pools) = (Scores::default(), [0.0; SPLITS]);
        for (at, flat) in flat.chunks_exact(tops.numbers()).enumerate() {
            let split = at + FIRST;
            let Some(sums) = Sums::of(flat, &tops).filter(|sums| sums.edges > 0.0) else { continue };
            pools[at] = sums.pool;
            scores.enter(split, "loss", sums.loss, None);
            for metric in metrics {
                let (figure, said) = sums.figure(*metric, &tops, [&binned[at], &exact[at]]);
                scores.enter(split, metric.name(), figure, said.as_deref());
            }
            if !tops.hits.is_empty() {
                scores.enter_pool(split, sums.pool as u64);
            }
            if let RankedAmong::Drawn(number) = links.ranked_among {
                scores.notes.extend(left[at].said(number, split, sums.edges));
            }
        }
        // One part alone is all that is here.
        let parts = several.iter().zip(&flats).skip(usize::from(several.len() > 1)).filter(|_| tells);
        let parts = parts.map(|(of, own)| Judgements::counted(of, own, &tops, (metrics, pools))).collect();
        Ok(Evaluated { scores, bytes, parts })
    }

    /// Ranks own edges among the pairs that are given for all, whose scores every worker then has.
    fn rank_in_pools(&mut self, transport: &mut dyn Transport, metrics: &[Metric], round: u32) -> Result<()> {
        if !metrics.iter().any(|metric| metric.is_of_ranks()) || !self.pools.contains(&true) {
            return Ok(());
        }
        let own = |split: usize| if self.pools[split] { self.of[split].scores[1].clone() } else { Vec::new() };
        let pools = everybodys(&[0, 1].map(own), usize::MAX, transport, tag(round, Step::PoolScores))?;
        for (split, (pool, is_ranked)) in pools.into_iter().zip(self.pools).enumerate() {
            if is_ranked && !pool.is_empty() {
                let pool = Pool::new(pool);
                for of in std::iter::once(&mut self.of).chain(&mut self.parts) {
                    let Judgement { ranks, scores: [edges, _], .. } = &mut of[split];
                    ranks.extend(edges.iter().map(|&edge| pool.rank(edge)));
                }
            }
        }
        Ok(())
    }

    /// Enters the sums that [`Judgements::figures`] sends.
    pub fn forecast(metrics: &[Metric], shapes: &Shapes, round: u32, ledger: &mut Ledger) {
        let sums = SPLITS * Tops::of(metrics).numbers() + 1;
        let (rank, size) = (Rank(shapes.rank), shapes.workers());
        collectives::forecast_all_reduce_f64(ledger, tag(round, Step::Sums), size, rank, sums);
    }

    /// Enters the counts of scores in bins that it sends.
    pub fn forecast_bins(metrics: &[Metric], shapes: &Shapes, round: u32, ledger: &mut Ledger) {
        let (rank, size) = (Rank(shapes.rank), shapes.workers());
        if metrics.contains(&Metric::RocAuc) {
            collectives::forecast_all_reduce_f64(ledger, tag(round, Step::Bins), size, rank, SPLITS * 2 * BINS);
        }
    }

    /// Enters no less than what it sends of single scores: of pairs, to rank edges among, and for exact areas of both.
    pub fn forecast_scores(measured: Measured<'_>, shapes: &Shapes, round: u32, ledger: &mut Ledger) {
        let Measured { links, metrics } = measured;
        let has_ranks = metrics.iter().any(|metric| metric.is_of_ranks());
        if let (RankedAmong::Given(all), true) = (links.ranked_among, has_ranks) {
            let pools = all.iter().zip(shapes.given_pairs).filter(|(all, _)| all.each == 0);
            if let Some(scores) = pools.map(|(_, own)| own).reduce(usize::saturating_add) {
                forecast_gathered(shapes, tag(round, Step::PoolScores), scores, ledger);
            }
        }
        if let Some(most) = Tops::of(metrics).hits.iter().max() {
            forecast_gathered(shapes, tag(round, Step::Pools), SPLITS * most, ledger);
        }
        if metrics.contains(&Metric::RocAucExact) {
            let [_, val, test] = shapes.split_rows;
            let pairs = usize::try_from(links.pool_pairs(shapes.split_rows, shapes.given_pairs)).unwrap_or(usize::MAX);
            forecast_gathered(shapes, tag(round, Step::ExactEdges), val + test, ledger);
            forecast_gathered(shapes, tag(round, Step::ExactPairs), pairs, ledger);
        }
    }
}

/// Enters so many scores of both splits, from everybody for everybody.
fn forecast_gathered(shapes: &Shapes, tag: Tag, scores: usize, ledger: &mut Ledger) {
    let bytes = scores.saturating_add(SPLITS).saturating_mul(4);
    collectives::forecast_all_gather(ledger, tag, shapes.workers(), Rank(shapes.rank), bytes);
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

/// The numbers of both splits that are added up.
fn flat(of: &[Judgement; SPLITS], hits: &[Vec<f64>; SPLITS], tops: &Tops) -> Vec<f64> {
    let mut flat = Vec::with_capacity(SPLITS * tops.numbers() + 1);
    for (judgement, hits) in of.iter().zip(hits) {
        judgement.ranks(&tops.ranks).flatten(&mut flat);
        flat.extend(judgement.loss);
        flat.extend([judgement.scores[0].len(), judgement.pool().len()].map(|count| count as f64));
        flat.extend(hits);
    }
    flat
}

/// For each split and K how many edges score above the K-th best of everybody's pool; 0 where it has fewer. Of all own
/// edges, which come first, and of each part of them.
fn hits(
    several: &[&[Judgement; SPLITS]],
    transport: &mut dyn Transport,
    tops: &[usize],
    round: u32,
) -> Result<Vec<[Vec<f64>; SPLITS]>> {
    let mut hits: Vec<[Vec<f64>; SPLITS]> = several.iter().map(|_| Default::default()).collect();
    let (Some(&most), Some(all)) = (tops.iter().max(), several.first()) else { return Ok(hits) };
    let own = |judgement: &Judgement| {
        let mut best = Best::new(most);
        best.extend(judgement.pool().iter().copied());
        best.scores().to_vec()
    };
    let pools = everybodys(&all.each_ref().map(own), most, transport, tag(round, Step::Pools))?;
    for (split, pool) in pools.iter().enumerate() {
        for &top in tops {
            let mut best = Best::new(top);
            best.extend(pool.iter().copied());
            let above = several.iter().map(|of| best.hits(&of[split].scores[0]).unwrap_or(0) as f64);
            above.zip(&mut hits).for_each(|(above, into)| into[split].push(above));
        }
    }
    Ok(hits)
}

/// The area of counts in bins.
fn binned(counts: &[f64]) -> Area {
    let bins = counts.as_chunks::<2>().0.iter().map(|bin| bin.map(|count| count as u64));
    Area::of(&[Curve::binned(&Binned::of(bins))], |_| NO_PAIRS.to_owned())
}

/// The area under the ROC curve of edges against the pool, from counts of scores in bins.
fn areas(all: &[Judgement; SPLITS], transport: &mut dyn Transport, round: u32) -> Result<[Area; SPLITS]> {
    let mut counts = vec![0.0; SPLITS * 2 * BINS];
    all.iter().zip(counts.chunks_exact_mut(2 * BINS)).for_each(|(judgement, counts)| judgement.bins(counts));
    collectives::all_reduce_f64(transport, tag(round, Step::Bins), &mut counts)?;
    let mut areas: [Area; SPLITS] = Default::default();
    for (area, counts) in areas.iter_mut().zip(counts.chunks_exact(2 * BINS)) {
        *area = binned(counts);
    }
    Ok(areas)
}

/// The same from everybody's scores.
fn exact_areas(all: &[Judgement; SPLITS], transport: &mut dyn Transport, round: u32) -> Result<[Area; SPLITS]> {
    let own = |which: usize| all.each_ref().map(|judgement| judgement.scores[which].clone());
    let edges = everybodys(&own(0), usize::MAX, transport, tag(round, Step::ExactEdges))?;
    let pairs = everybodys(&own(1), usize::MAX, transport, tag(round, Step::ExactPairs))?;
    let mut areas: [Area; SPLITS] = Default::default();
    for ((area, edges), pairs) in areas.iter_mut().zip(edges).zip(pairs) {
        let with = |scores: Vec<f32>, truth: bool| scores.into_iter().map(move |score| (score, truth));
        let mut scored: Vec<(f32, bool)> = with(edges, true).chain(with(pairs, false)).collect();
        *area = Area::of(&[Curve::exact(&mut scored)], |_| NO_PAIRS.to_owned());
    }
    Ok(areas)
}
