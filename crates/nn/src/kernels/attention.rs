//! Edge softmax and weighted sums of graph attention (Veličković et al., 2018, equations 1 to 4), block after block.
//!
//! A destination's softmax runs over the edges of several blocks. Each fold keeps a running maximum, and rescales what
//! it has when a larger score comes (the online softmax of Milakov and Gimelshein, 2018), so blocks are folded one at a
//! time and the halo may arrive while the local block is being folded. Scores are recomputed in the backward pass
//! rather than stored.

use std::ops::Range;
use std::sync::atomic::{AtomicU32, Ordering};

use super::dispatch::{per_processor, prefetch};
use super::elementwise::dot;
use crate::block::Block;
use crate::matrix::Matrix;
use crate::threads::{Compute, ROWS_PER_PIECE};

/// The slope of LeakyReLU for negative scores.
pub const SLOPE: f32 = 0.2;

/// The running state of the softmax over the edges into each destination row.
#[derive(Debug, Clone, Default)]
pub struct Softmax {
    /// The largest score so far; destinations × heads.
    pub maximum: Matrix,
    /// The sum of exp(score − maximum) so far; destinations × heads.
    pub denominator: Matrix,
}

impl Softmax {
    /// Forgets everything: no edges seen.
    pub fn reset(&mut self, destinations: usize, heads: usize) {
        self.maximum.reshape(destinations, heads);
        self.maximum.data_mut().fill(f32::NEG_INFINITY);
        self.denominator.reshape(destinations, heads);
        self.denominator.data_mut().fill(0.0);
    }
}

/// What the softmax of one block reads.
#[derive(Clone, Copy)]
pub struct Scores<'a> {
    /// The edges of this block.
    pub block: &'a Block,
    /// Transformed rows q of the block's sources; sources × (heads · width).
    pub messages: &'a Matrix,
    /// The sources' halves of the scores, a_src · q; sources × heads.
    pub source: &'a Matrix,
    /// The destinations' halves of the scores, a_dst · q; destinations × heads.
    pub destination: &'a Matrix,
    /// How often each source counts in sums and denominators, 0 for one that is absent; empty if each counts once. A
    /// sampled source stands for several like it.
    pub weight: &'a [f32],
}

impl Scores<'_> {
    #[inline(always)]
    fn weight_of(&self, source: usize) -> f32 {
        self.weight.get(source).copied().unwrap_or(1.0)
    }
}

/// `out[v][h] = vector[h] · q[v][h]` for these rows of the messages: one half of the scores. `vector` has heads × width
/// values.
pub fn score_halves(
    compute: &Compute,
    out: &mut Matrix,
    (messages, rows): (&Matrix, Range<usize>),
    vector: &[f32],
    heads: usize,
) {
    let width = messages.columns() / heads;
    out.reshape(rows.len(), heads);
    compute.rows(out.rows_mut(), |node, out| {
        let row = messages.row(rows.start + node);
        for (head, out) in out.iter_mut().enumerate() {
            let span = head * width..(head + 1) * width;
            *out = dot(&row[span.clone()], &vector[span]);
        }
    });
}

/// Folds one block into the running sums: afterwards `sums[v] = Σ exp(score − maximum) · q` over all edges seen.
/// `sums` is destinations × (heads · width).
///
/// # Panics
///
/// If there are more than 64 heads.
pub fn attention_fold(compute: &Compute, sums: &mut Matrix, softmax: &mut Softmax, scores: Scores<'_>) {
    let heads = softmax.maximum.columns();
    let (size, head_size) = (ROWS_PER_PIECE * sums.columns(), ROWS_PER_PIECE * heads);
    // The two halves of the state are interleaved by piece: maxima travel with the sums, denominators are derived
    // after.
    let mut state = std::mem::take(&mut softmax.denominator);
    compute.chunks2((sums.data_mut(), size), (state.data_mut(), head_size), |piece, sums, denominator| {
        fold_piece(sums, denominator, softmax.maximum.data(), piece * ROWS_PER_PIECE, heads, &scores);
    });
    compute.rows(softmax.maximum.rows_mut(), |row, maximum| {
        raise(maximum, row, &scores);
    });
    softmax.denominator = state;
}

/// Raises `maximum` to the largest score of the edges into row `row`.
#[inline(always)]
fn raise(maximum: &mut [f32], row: usize, scores: &Scores<'_>) {
    let csr = scores.block.forward();
    let destination = scores.destination.row(row);
    for &source in &csr.columns[csr.offsets[row]..csr.offsets[row + 1]] {
        if scores.weight_of(source as usize) == 0.0 {
            continue;
        }
        for ((best, s), d) in maximum.iter_mut().zip(scores.source.row(source as usize)).zip(destination) {
            *best = best.max(leaky(s + d));
        }
    }
}

per_processor! {
    fn fold_piece(
        sums: &mut [f32], denominator: &mut [f32], maximum: &[f32], first: usize, heads: usize, scores: &Scores<'_>,
    ) {
        let width = scores.messages.columns() / heads;
        let csr = scores.block.forward();
        let columns = heads * width;
        let mut raised = [0.0f32; 64];
        let mut alpha = [0.0f32; 64];
        assert!(heads <= 64, "at most 64 heads");
        for (line, (sums, denominator)) in
            sums.chunks_exact_mut(columns).zip(denominator.chunks_exact_mut(heads)).enumerate()
        {
            let row = first + line;
            let edges = csr.offsets[row]..csr.offsets[row + 1];
            if edges.is_empty() {
                continue;
            }
            let before = &maximum[row * heads..(row + 1) * heads];
            let raised = &mut raised[..heads];
            raised.copy_from_slice(before);
            raise(raised, row, scores);
            for head in 0..heads {
                if denominator[head] == 0.0 {
                    sums[head * width..(head + 1) * width].fill(0.0);
                } else if raised[head] > before[head] {
                    let factor = exp(before[head] - raised[head]);
                    denominator[head] *= factor;
                    sums[head * width..(head + 1) * width].iter_mut().for_each(|s| *s *= factor);
                }
            }
            let destination = scores.destination.row(row);
            for edge in edges {
                if let Some(&coming) = csr.columns.get(edge + 4) {
                    for line in (0..columns).step_by(16) {
                        prefetch(scores.messages.data(), coming as usize * columns + line);
                    }
                }
                let source = csr.columns[edge] as usize;
                let weight = scores.weight_of(source);
                if weight == 0.0 {
                    continue;
                }
                let halves = scores.source.row(source);
                for head in 0..heads {
                    alpha[head] = weight * exp(leaky(halves[head] + destination[head]) - raised[head]);
                    denominator[head] += alpha[head];
                }
                let message = scores.messages.row(source);
                let of_heads = sums.chunks_exact_mut(width).zip(message.chunks_exact(width));
                for ((sums, message), alpha) in of_heads.zip(&alpha) {
                    for (sum, value) in sums.iter_mut().zip(message) {
                        *sum += alpha * value;
                    }
                }
            }
        }
    }
}

/// Divides the sums by the denominators: afterwards `sums[v] = Σ α · q`. Rows without edges become 0.
pub fn attention_close(compute: &Compute, sums: &mut Matrix, softmax: &Softmax) {
    let heads = softmax.maximum.columns();
    let width = sums.columns() / heads;
    compute.rows(sums.rows_mut(), |row, sums| {
        let denominator = softmax.denominator.row(row);
        for (head, sums) in sums.chunks_mut(width).enumerate() {
            if denominator[head] == 0.0 {
                sums.fill(0.0);
            } else {
                let reciprocal = 1.0 / denominator[head];
                sums.iter_mut().for_each(|s| *s *= reciprocal);
            }
        }
    });
}

/// Buffers of the backward pass through one block.
#[derive(Default)]
pub struct ScoreGradients {
    /// The gradients of the sources' halves of the scores; sources × heads.
    pub source: Matrix,
    /// The gradient of each score before LeakyReLU, in the block's forward order, as the bits of an `f32`. The pass
    /// runs by source and writes these in the order of destinations; relaxed atomic stores make that safe, and cost
    /// what plain ones do.
    edges: Vec<AtomicU32>,
}

/// The adjoint of fold and close together, by source: sets `out` (sources × heads · width) to the gradient of the
/// messages through the weighted sum alone, and `gradients.source` to the gradients of the sources' score halves.
///
/// `gradient` is the gradient of the closed sums; `inner[v][h]` is its inner product with the closed sums themselves.
pub fn attention_adjoint(
    compute: &Compute,
    out: &mut Matrix,
    gradients: &mut ScoreGradients,
    scores: Scores<'_>,
    softmax: &Softmax,
    gradient: &Matrix,
    inner: &Matrix,
) {
    let heads = inner.columns();
    let edges = scores.block.edges() * heads;
    gradients.edges.resize_with(edges.max(gradients.edges.len()), AtomicU32::default);
    gradients.source.reshape(scores.block.sources(), heads);
    out.reshape(scores.block.sources(), scores.messages.columns());
    let out = (out.data_mut(), ROWS_PER_PIECE * scores.messages.columns());
    let halves = (gradients.source.data_mut(), ROWS_PER_PIECE * heads);
    let edges = &gradients.edges;
    compute.chunks2(out, halves, |piece, out, halves| {
        let at = Piece { first: piece * ROWS_PER_PIECE, edges };
        adjoint_piece(out, halves, at, &scores, softmax, gradient, inner);
    });
}

/// Which sources a piece has, and where the gradients of scores go. What is only read are arguments of their own:
/// behind a struct the compiler could not know that the stores to `edges` leave them alone.
#[derive(Clone, Copy)]
struct Piece<'a> {
    first: usize,
    edges: &'a [AtomicU32],
}

per_processor! {
    fn adjoint_piece(
        out: &mut [f32], halves: &mut [f32], piece: Piece<'_>, scores: &Scores<'_>, softmax: &Softmax,
        gradient: &Matrix, inner: &Matrix,
    ) {
        let Piece { first, edges } = piece;
        let heads = inner.columns();
        let columns = gradient.columns();
        let width = columns / heads;
        let csr = scores.block.reverse();
        let positions = scores.block.positions();
        for (line, (out, halves)) in out.chunks_exact_mut(columns).zip(halves.chunks_exact_mut(heads)).enumerate() {
            let source = first + line;
            out.fill(0.0);
            halves.fill(0.0);
            let message = scores.messages.row(source);
            let mine = scores.source.row(source);
            let entries = csr.offsets[source]..csr.offsets[source + 1];
            let weight = scores.weight_of(source);
            if weight == 0.0 {
                for &position in &positions[entries] {
                    let heads = &edges[position as usize * heads..][..heads];
                    heads.iter().for_each(|edge| edge.store(0, Ordering::Relaxed));
                }
                continue;
            }
            for (entry, &position) in entries.clone().zip(&positions[entries]) {
                if let Some(&coming) = csr.columns.get(entry + 4) {
                    for line in (0..columns).step_by(16) {
                        prefetch(gradient.data(), coming as usize * columns + line);
                    }
                }
                let destination = csr.columns[entry] as usize;
                let position = position as usize * heads;
                let incoming = gradient.row(destination);
                let (maximum, denominator) = (softmax.maximum.row(destination), softmax.denominator.row(destination));
                let (theirs, inner) = (scores.destination.row(destination), inner.row(destination));
                for head in 0..heads {
                    let span = head * width..(head + 1) * width;
                    let score = mine[head] + theirs[head];
                    let alpha = weight * exp(leaky(score) - maximum[head]) / denominator[head];
                    let along = dot(&incoming[span.clone()], &message[span.clone()]);
                    let slope = if score > 0.0 { 1.0 } else { SLOPE };
                    let of_score = alpha * (along - inner[head]) * slope;
                    halves[head] += of_score;
                    edges[position + head].store(of_score.to_bits(), Ordering::Relaxed);
                    for (out, value) in out[span.clone()].iter_mut().zip(&incoming[span]) {
                        *out += alpha * value;
                    }
                }
            }
        }
    }
}

/// Adds the gradients of the scores to those of the destinations' halves; run after [`attention_adjoint`] on the same
/// block.
pub fn add_destination_gradient(compute: &Compute, out: &mut Matrix, gradients: &ScoreGradients, block: &Block) {
    let heads = out.columns();
    let csr = block.forward();
    compute.rows(out.rows_mut(), |row, out| {
        for edge in csr.offsets[row]..csr.offsets[row + 1] {
            for (head, out) in out.iter_mut().enumerate() {
                *out += f32::from_bits(gradients.edges[edge * heads + head].load(Ordering::Relaxed));
            }
        }
    });
}

/// `out[v][h·width + d] += halves[v][h] · vector[h·width + d]` for the first rows, of which there are halves: how score
/// gradients reach the messages.
pub fn add_score_gradient(compute: &Compute, out: &mut Matrix, halves: &Matrix, vector: &[f32]) {
    let (columns, heads) = (out.columns(), halves.columns());
    let width = columns / heads;
    compute.rows(out.rows_mut(), |row, out| {
        if row >= halves.rows() {
            return;
        }
        let halves = halves.row(row);
        for (head, out) in out.chunks_mut(width).enumerate() {
            for (out, value) in out.iter_mut().zip(&vector[head * width..]) {
                *out += halves[head] * value;
            }
        }
    });
}

/// `gradient[h·width + d] += Σ_v halves[v][h] · q[v][h·width + d]` over the first rows, of which there are halves: the
/// gradient of an attention vector.
pub fn add_vector_gradient(compute: &mut Compute, gradient: &mut [f32], halves: &Matrix, messages: &Matrix) {
    let (rows, columns, heads) = (halves.rows(), messages.columns(), halves.columns());
    let width = columns / heads;
    let pieces = crate::threads::row_pieces(rows);
    let size = rows.div_ceil(pieces).max(1);
    compute.reduce(gradient, pieces, |piece, partial| {
        for row in piece * size..((piece + 1) * size).min(rows) {
            for (head, partial) in partial.chunks_mut(width).enumerate() {
                let factor = halves.row(row)[head];
                for (sum, value) in partial.iter_mut().zip(&messages.row(row)[head * width..]) {
                    *sum += factor * value;
                }
            }
        }
    });
}

#[inline(always)]
fn leaky(score: f32) -> f32 {
    if score > 0.0 { score } else { SLOPE * score }
}

/// e^x for x ≤ 0 to two units in the last place: reduction to |r| ≤ ln 2 / 2 and a polynomial of degree 6 (Cephes'
/// coefficients). Branch-free, so that it vectorises, and without the system's mathematics library, so that every
/// machine gets the same bits.
#[inline(always)]
fn exp(x: f32) -> f32 {
    let x = x.clamp(-87.0, 87.0);
    let n = (x * std::f32::consts::LOG2_E + 0.5).floor();
    let r = x - n * 0.693_359_4 + n * 2.121_944_4e-4;
    let mut p = 1.987_569_1e-4;
    p = p * r + 1.398_199_9e-3;
    p = p * r + 8.333_452e-3;
    p = p * r + 4.166_579_6e-2;
    p = p * r + 1.666_666_5e-1;
    p = p * r + 5.000_000_3e-1;
    let value = p * r * r + r + 1.0;
    value * f32::from_bits(((n as i32 + 127) << 23) as u32)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn exponential_is_accurate_to_a_few_units_in_the_last_place() {
        for i in 0..100_000 {
            let x = -87.0 * i as f32 / 100_000.0;
            let (ours, exact) = (f64::from(exp(x)), f64::from(x).exp());
            assert!((ours - exact).abs() <= 3e-7 * exact, "exp({x}) = {ours}, not {exact}");
        }
    }
}
