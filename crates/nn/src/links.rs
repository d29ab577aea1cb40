//! Scores of many pairs of nodes and their loss, piece by piece: gathered embeddings of all pairs at once would be
//! larger than the model by far.

use crate::decoder::{Decoder, Decoding, Pairs};
use crate::kernels::pairs::{Scatter, gather};
use crate::layer::Slot;
use crate::loss::{Targets, loss};
use crate::matrix::Matrix;
use crate::threads::Compute;

/// Pairs of one piece. Part of every result: sums over pieces are added in their order.
pub const PAIRS_PER_PIECE: usize = 1 << 15;

/// Pairs of nodes by row of the embeddings here: own rows first, then those of others.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct PairRows {
    /// The row of each source.
    pub sources: Vec<u32>,
    /// The row of each destination.
    pub destinations: Vec<u32>,
    /// The relation of each pair; empty where there is but one.
    pub relations: Vec<u32>,
}

impl PairRows {
    /// The number of pairs.
    pub fn len(&self) -> usize {
        self.sources.len()
    }

    /// Whether there are no pairs.
    pub fn is_empty(&self) -> bool {
        self.sources.is_empty()
    }

    /// Relations of some of the pairs.
    fn relations(&self, pairs: std::ops::Range<usize>) -> &[u32] {
        if self.relations.is_empty() { &[] } else { &self.relations[pairs] }
    }
}

/// What edges that are count for in the loss against those that are not: as many of each weigh the same.
pub fn positive_weight(positives: f64, negatives: f64) -> f64 {
    if positives > 0.0 && negatives > 0.0 { negatives / positives } else { 1.0 }
}

/// Buffers for pairs, used again from round to round.
#[derive(Default)]
pub struct PairScorer {
    sources: Matrix,
    destinations: Matrix,
    scores: Matrix,
    dscores: Matrix,
    dsources: Matrix,
    ddestinations: Matrix,
    scatter: Scatter,
    memory: Slot,
}

/// A decoder with its parameters, and the embeddings of own nodes and of others'.
#[derive(Clone, Copy)]
pub struct Scoring<'a> {
    /// What scores a pair.
    pub decoder: &'a dyn Decoder,
    /// The slice of its parameters.
    pub p: &'a [f32],
    /// Embeddings: own rows, then those of others.
    pub rows: [&'a Matrix; 2],
}

/// Pairs with what is true of them, and how they count in a loss.
#[derive(Clone, Copy)]
pub struct Examples<'a> {
    /// Which pairs they are.
    pub pairs: &'a PairRows,
    /// 1 for edges that are, 0 for others; one a pair.
    pub truth: &'a [u8],
    /// What those that are count for; the others count for 1.
    pub positive_weight: f32,
    /// What the sum over all pairs is multiplied by.
    pub scale: f32,
}

/// Where gradients of a loss of pairs are added.
pub struct PairGradients<'a> {
    /// Those of the decoder's parameters.
    pub parameters: &'a mut [f32],
    /// Those of embeddings: own rows, and those of others.
    pub rows: [&'a mut Matrix; 2],
}

impl PairScorer {
    /// Calls `each(first, scores)` for the pairs from number `first` on, piece by piece.
    pub fn scores(
        &mut self,
        compute: &mut Compute,
        scoring: Scoring<'_>,
        pairs: &PairRows,
        mut each: impl FnMut(usize, &[f32]),
    ) {
        for first in (0..pairs.len()).step_by(PAIRS_PER_PIECE) {
            let piece = first..(first + PAIRS_PER_PIECE).min(pairs.len());
            self.piece(compute, scoring, pairs, piece);
            each(first, self.scores.data());
        }
    }

    fn piece(&mut self, compute: &mut Compute, at: Scoring<'_>, pairs: &PairRows, piece: std::ops::Range<usize>) {
        let PairScorer { sources, destinations, scores, memory, .. } = self;
        gather(compute, sources, at.rows, &pairs.sources[piece.clone()]);
        gather(compute, destinations, at.rows, &pairs.destinations[piece.clone()]);
        let gathered = Pairs { sources, destinations, relations: pairs.relations(piece) };
        at.decoder.score(&mut Decoding { compute, p: at.p, memory }, gathered, scores);
    }

    /// The binary cross-entropy of the pairs' logits, PyTorch's `BCEWithLogitsLoss(pos_weight)` as a sum, times
    /// [`Examples::scale`]. Adds its gradients to `into`.
    ///
    /// # Panics
    ///
    /// If there is not a truth for each pair.
    pub fn loss(
        &mut self,
        compute: &mut Compute,
        at: Scoring<'_>,
        examples: Examples<'_>,
        into: PairGradients<'_>,
    ) -> f64 {
        let Examples { pairs, truth, positive_weight, scale } = examples;
        let PairGradients { parameters: g, rows: [own, others] } = into;
        assert_eq!(pairs.len(), truth.len(), "a truth for each pair");
        let (all, weights) = (vec![true; PAIRS_PER_PIECE.min(truth.len())], [positive_weight]);
        let mut sum = 0.0;
        for first in (0..pairs.len()).step_by(PAIRS_PER_PIECE) {
            let piece = first..(first + PAIRS_PER_PIECE).min(pairs.len());
            self.piece(compute, at, pairs, piece.clone());
            let PairScorer { sources, destinations, scores, dscores, dsources, ddestinations, scatter, memory } = self;
            let targets = Targets::Sets(&truth[piece.clone()]);
            sum += loss(compute, Some(dscores), scores, (targets, &weights), &all[..piece.len()], scale);
            let gathered = Pairs { sources, destinations, relations: pairs.relations(piece.clone()) };
            let decoding = &mut Decoding { compute, p: at.p, memory };
            at.decoder.score_adjoint(decoding, g, gathered, dscores, [dsources, ddestinations]);
            let rows = own.rows() + others.rows();
            for (indices, gradient) in [(&pairs.sources, dsources), (&pairs.destinations, ddestinations)] {
                scatter.sort(&indices[piece.clone()], rows);
                scatter.add(compute, [own, others], gradient);
            }
        }
        sum
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::decoder::{DecoderRegistry, DecoderSpec};
    use laconic_key::{Key, Purpose};

    fn random(rows: usize, columns: usize, stream: u64) -> Matrix {
        let key = Key::new(stream, Purpose::Test);
        Matrix::from_vec(rows, columns, (0..rows * columns).map(|i| key.with(i as u64).normal() as f32).collect())
    }

    #[test]
    fn edges_that_are_weigh_as_much_as_those_that_are_not() {
        assert_eq!(positive_weight(4.0, 3.0), 0.75);
        assert_eq!(positive_weight(4.0, 0.0), 1.0);
        // Uniform logits: 4 positives at 0.75 and 3 negatives at 1, each ln 2, over 7.
        let (own, none) = (Matrix::zeros(3, 2), Matrix::default());
        let decoder = (DecoderRegistry::default().get("dot").expect("ours").build)(&DecoderSpec::new(2));
        let at = Scoring { decoder: &*decoder, p: &[], rows: [&own, &none] };
        let pairs = PairRows { sources: vec![0; 7], destinations: vec![1; 7], relations: vec![] };
        let (mut into, mut beside) = (Matrix::zeros(3, 2), Matrix::default());
        let gradients = PairGradients { parameters: &mut [], rows: [&mut into, &mut beside] };
        let truth = &[1, 1, 1, 1, 0, 0, 0];
        let examples = Examples { pairs: &pairs, truth, positive_weight: 0.75, scale: 1.0 / 7.0 };
        let value = PairScorer::default().loss(&mut Compute::new(1), at, examples, gradients);
        assert!((value - 6.0 * 2f64.ln() / 7.0).abs() < 1e-6, "{value}");
    }

    /// Over several pieces, with rows of both kinds and every decoder: loss by its definition in double precision, and
    /// gradients by finite differences of it.
    #[test]
    fn losses_are_by_the_definition_and_gradients_agree_with_finite_differences() {
        let key = Key::new(3, Purpose::Test);
        let count = PAIRS_PER_PIECE + 700;
        let row = |pair: usize, end: u64| key.with(pair as u64).with(end).below(50) as u32;
        let pairs = PairRows {
            sources: (0..count).map(|pair| row(pair, 0)).collect(),
            destinations: (0..count).map(|pair| row(pair, 1)).collect(),
            relations: (0..count).map(|pair| row(pair, 2) % 3).collect(),
        };
        let truth: Vec<u8> = (0..count).map(|pair| (row(pair, 3) % 3 == 0).into()).collect();
        let all = random(50, 4, 1);
        let split = |all: &Matrix| {
            let (own, others) = all.data().split_at(30 * 4);
            [Matrix::from_vec(30, 4, own.to_vec()), Matrix::from_vec(20, 4, others.to_vec())]
        };
        for kind in DecoderRegistry::default().iter() {
            let decoder = (kind.build)(&DecoderSpec { width: 4, layers: 1, relations: 3 });
            let len = decoder.parameters().iter().map(crate::parameters::ParameterSpec::len).sum::<usize>();
            let p = random(1, len, 2).into_vec();
            let mut scorer = PairScorer::default();
            let by_definition = |p: &[f32], all: &Matrix| {
                let [own, others] = split(all);
                let at = Scoring { decoder: &*decoder, p, rows: [&own, &others] };
                let (mut scorer, mut sum) = (PairScorer::default(), 0.0);
                scorer.scores(&mut Compute::new(2), at, &pairs, |first, scores| {
                    for (&score, &truth) in scores.iter().zip(&truth[first..]) {
                        let p = 1.0 / (1.0 + (-f64::from(score)).exp());
                        sum -= if truth == 1 { 2.5 * p.ln() } else { (1.0 - p).max(1e-300).ln() };
                    }
                });
                sum / count as f64
            };
            let [own, others] = split(&all);
            let at = Scoring { decoder: &*decoder, p: &p, rows: [&own, &others] };
            let (mut g, mut into, mut beside) = (vec![0.0; len], Matrix::zeros(30, 4), Matrix::zeros(20, 4));
            let gradients = PairGradients { parameters: &mut g, rows: [&mut into, &mut beside] };
            let scale = 1.0 / count as f32;
            let examples = Examples { pairs: &pairs, truth: &truth, positive_weight: 2.5, scale };
            let value = scorer.loss(&mut Compute::new(2), at, examples, gradients);
            let expected = by_definition(&p, &all);
            assert!((value - expected).abs() < 1e-4 * expected, "{}: {value} against {expected}", kind.name);
            let gradient = [into.into_vec(), beside.into_vec(), g].concat();
            let base = [all.data(), &p].concat();
            for stream in [7, 8, 9] {
                let by = random(1, base.len(), stream).into_vec();
                let at = |e: f32| {
                    let moved: Vec<f32> = base.iter().zip(&by).map(|(b, d)| b + e * d).collect();
                    by_definition(&moved[200..], &Matrix::from_vec(50, 4, moved[..200].to_vec()))
                };
                let numeric = (at(1e-3) - at(-1e-3)) / 2e-3;
                let exact: f64 = gradient.iter().zip(&by).map(|(a, b)| f64::from(*a) * f64::from(*b)).sum();
                let near = (numeric - exact).abs() < 1e-2 * (1.0 + exact.abs());
                assert!(near, "{}: {numeric} against {exact}", kind.name);
            }
        }
    }
}
