//! Edge softmax and weighted sums of graph attention (Veličković et al., 2018, equations 1 to 4), block after block.
//!
//! A destination's softmax runs over the edges of several blocks. Each fold keeps a running maximum, and rescales what
//! it has when a larger score comes (the online softmax of Milakov and Gimelshein, 2018), so blocks are folded one at a
//! time and the halo may arrive while the local block is being folded. Scores are recomputed in the backward pass
//! rather than stored.

use std::ops::Range;
use std::sync::atomic::{AtomicU32, Ordering};

use super::dispatch::{per_processor, prefetch, prefetch_for_writing};
use super::elementwise::dot;
use super::stored::{Access, pieces2, read, rows};
use crate::block::Block;
use crate::matrix::{Matrix, Value, each_value};
use crate::threads::Compute;

/// The slope of LeakyReLU for negative scores.
pub const SLOPE: f32 = 0.2;

/// What is known of the softmax over the edges into each destination row, in one row of four numbers a head, so that
/// whoever needs one destination's reads one place of memory.
#[derive(Debug, Clone, Default)]
pub struct Softmax {
    /// Destinations × (4 · heads): the destination's half of the scores, a_dst · q; the largest score so far; the sum
    /// of exp(score − maximum) so far, and of closed sums its reciprocal, 0 without edges; ⟨gradient, closed sum⟩.
    state: Matrix,
}

/// The quarters of a row of the state.
fn quarters(state: &[f32], heads: usize) -> [&[f32]; 4] {
    let [halves, maximum, denominator, inner] = [0, 1, 2, 3].map(|of| &state[of * heads..(of + 1) * heads]);
    [halves, maximum, denominator, inner]
}

impl Softmax {
    /// Begins with no edges seen. The destinations' halves of the scores are those of these rows of the messages, by a
    /// vector of heads × width values.
    pub fn reset(
        &mut self,
        compute: &Compute,
        (messages, rows): (&Matrix, Range<usize>),
        vector: &[f32],
        heads: usize,
    ) {
        let width = messages.columns() / heads;
        self.state.reshape(rows.len(), 4 * heads);
        let rooms = compute.rooms();
        compute.rows(self.state.rows_mut(), |node, state| {
            let (halves, others) = state.split_at_mut(heads);
            let row = rows.start + node;
            read(&rooms, messages.all(), row..row + 1, |message| products_of_heads(halves, message, vector, width));
            others.fill(0.0);
            others[..heads].fill(f32::NEG_INFINITY);
        });
    }

    /// How many heads there are.
    pub fn heads(&self) -> usize {
        self.state.columns() / 4
    }

    /// Takes up the gradient of the closed sums, which the adjoint reads beside them; both are destinations × (heads ·
    /// width). The sums may have been closed with a shift, which is no part of them.
    ///
    /// # Panics
    ///
    /// If there are more than 64 heads.
    pub fn take_up(&mut self, compute: &Compute, gradient: &Matrix, (closed, shift): (&Matrix, Option<&[f32]>)) {
        let heads = self.heads();
        assert!(heads <= HEADS_MAX, "at most 64 heads");
        let width = closed.columns() / heads;
        let rooms = compute.rooms();
        compute.rows(self.state.rows_mut(), |row, state| {
            let rows = row..row + 1;
            let inner = &mut state[3 * heads..];
            read(&rooms, gradient.all(), rows.clone(), |gradient| {
                read(&rooms, closed.all(), rows, |closed| products_of_heads(inner, gradient, closed, width));
                if let Some(shift) = shift {
                    let mut of_shift = [0.0; HEADS_MAX];
                    products_of_heads(&mut of_shift[..heads], gradient, shift, width);
                    inner.iter_mut().zip(of_shift).for_each(|(inner, of_shift)| *inner -= of_shift);
                }
            });
        });
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

per_processor! {
    /// `out[h] = ⟨a[h], b[h]⟩` over the columns of each head.
    fn products_of_heads(out: &mut [f32], a: &[f32], b: &[f32], width: usize) {
        for (out, (a, b)) in out.iter_mut().zip(a.chunks_exact(width).zip(b.chunks_exact(width))) {
            *out = dot(a, b);
        }
    }
}

/// `out[v][h] = vector[h] · q[v][h]`: the sources' halves of the scores. `vector` has heads × width values.
pub fn score_halves(compute: &Compute, out: &mut Matrix, messages: &Matrix, vector: &[f32], heads: usize) {
    let width = messages.columns() / heads;
    out.reshape(messages.rows(), heads);
    let rooms = compute.rooms();
    compute.rows(out.rows_mut(), |node, out| {
        read(&rooms, messages.all(), node..node + 1, |message| products_of_heads(out, message, vector, width));
    });
}

/// More heads are not taken.
const HEADS_MAX: usize = 64;

/// Edges that are looked ahead for, and halves of scores.
const AHEAD: usize = 4;
const HALVES_AHEAD: usize = 16;

/// Folds one block into the running sums: afterwards `sums[v] = Σ exp(score − maximum) · q` over all edges seen.
/// `sums` is destinations × (heads · width).
///
/// # Panics
///
/// If there are more than 64 heads.
pub fn attention_fold(compute: &Compute, sums: &mut Matrix, softmax: &mut Softmax, scores: Scores<'_>) {
    let heads = softmax.heads();
    if scores.block.edges() == 0 {
        return;
    }
    each_value!(scores.messages.values(), |messages| {
        let state = (softmax.state.data_mut(), 4 * heads);
        pieces2(compute, (sums, Access::Update), state, |first, sums, state| {
            fold_piece(sums, state, (first, heads), &scores, messages);
        });
    });
}

/// Asks for the lines of a row, of 64 bytes each.
#[inline(always)]
fn prefetch_row<T>(values: &[T], columns: usize, row: u32) {
    for line in (0..columns).step_by(64 / size_of::<T>()) {
        prefetch(values, row as usize * columns + line);
    }
}

/// Raises `maximum` to the largest score of the edges into row `row`.
#[inline(always)]
fn raise(maximum: &mut [f32], theirs: &[f32], row: usize, scores: &Scores<'_>) {
    let csr = scores.block.forward();
    let heads = maximum.len();
    for edge in csr.offsets[row]..csr.offsets[row + 1] {
        if let Some(&coming) = csr.columns.get(edge + HALVES_AHEAD) {
            prefetch(scores.source.data(), coming as usize * heads);
        }
        let source = csr.columns[edge] as usize;
        if scores.weight_of(source) == 0.0 {
            continue;
        }
        for ((best, s), d) in maximum.iter_mut().zip(scores.source.row(source)).zip(theirs) {
            *best = best.max(leaky(s + d));
        }
    }
}

per_processor! {
    fn fold_piece<T: Value>(
        sums: &mut [f32], state: &mut [f32], at: (usize, usize), scores: &Scores<'_>, messages: &[T],
    ) {
        let (first, heads) = at;
        let columns = scores.messages.columns();
        let width = columns / heads;
        let csr = scores.block.forward();
        assert!(heads <= HEADS_MAX, "at most 64 heads");
        let (mut before, mut alpha) = ([0.0f32; HEADS_MAX], [0.0f32; HEADS_MAX]);
        let (before, alpha) = (&mut before[..heads], &mut alpha[..heads]);
        for (line, (sums, state)) in
            sums.chunks_exact_mut(columns).zip(state.chunks_exact_mut(4 * heads)).enumerate()
        {
            let row = first + line;
            let edges = csr.offsets[row]..csr.offsets[row + 1];
            if edges.is_empty() {
                continue;
            }
            let (theirs, state) = state.split_at_mut(heads);
            let (maximum, state) = state.split_at_mut(heads);
            let denominator = &mut state[..heads];
            before.copy_from_slice(maximum);
            raise(maximum, theirs, row, scores);
            let of_heads = sums.chunks_exact_mut(width).zip(denominator.iter_mut()).zip(maximum.iter().zip(&*before));
            for ((sums, denominator), (maximum, before)) in of_heads {
                if *denominator == 0.0 {
                    sums.fill(0.0);
                } else if maximum > before {
                    let factor = exp(before - maximum);
                    *denominator *= factor;
                    sums.iter_mut().for_each(|s| *s *= factor);
                }
            }
            for edge in edges {
                if let Some(&coming) = csr.columns.get(edge + AHEAD) {
                    prefetch_row(messages, columns, coming);
                }
                let source = csr.columns[edge] as usize;
                let weight = scores.weight_of(source);
                if weight == 0.0 {
                    continue;
                }
                let halves = &scores.source.row(source)[..heads];
                for head in 0..heads {
                    alpha[head] = weight * exp(leaky(halves[head] + theirs[head]) - maximum[head]);
                }
                denominator.iter_mut().zip(&*alpha).for_each(|(sum, alpha)| *sum += alpha);
                let message = &messages[source * columns..][..columns];
                let of_heads = sums.chunks_exact_mut(width).zip(message.chunks_exact(width));
                for ((sums, message), alpha) in of_heads.zip(&*alpha) {
                    for (sum, value) in sums.iter_mut().zip(message) {
                        *sum += alpha * value.get();
                    }
                }
            }
        }
    }
}

/// Divides the sums by the denominators, and adds the shift where there is one: afterwards `sums[v] = Σ α · q + shift`.
/// A row without edges has the sum 0.
pub fn attention_close(compute: &Compute, sums: &mut Matrix, softmax: &mut Softmax, shift: Option<&[f32]>) {
    let heads = softmax.heads();
    let columns = sums.columns();
    let state = (softmax.state.data_mut(), 4 * heads);
    pieces2(compute, (sums, Access::Update), state, |_, sums, state| {
        close_piece(sums, state, (columns, heads), shift.unwrap_or(&[]));
    });
}

per_processor! {
    fn close_piece(sums: &mut [f32], state: &mut [f32], shape: (usize, usize), shift: &[f32]) {
        let (columns, heads) = shape;
        for (sums, state) in sums.chunks_exact_mut(columns).zip(state.chunks_exact_mut(4 * heads)) {
            for (sums, denominator) in sums.chunks_exact_mut(columns / heads).zip(&mut state[2 * heads..3 * heads]) {
                if *denominator == 0.0 {
                    sums.fill(0.0);
                } else {
                    *denominator = 1.0 / *denominator;
                    sums.iter_mut().for_each(|sum| *sum *= *denominator);
                }
            }
            sums.iter_mut().zip(shift).for_each(|(sum, shift)| *sum += shift);
        }
    }
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

/// The adjoint of fold and close together, by source: sets `gradients.source` to the gradients of the sources' score
/// halves, and `out` (sources × heads · width) to the gradient of the messages through the weighted sum and, by the
/// `vector` that they were made with, through these halves.
///
/// `gradient` is the gradient of the closed sums, which [`Softmax::take_up`] has taken up.
///
/// # Panics
///
/// If there are more than 64 heads.
pub fn attention_adjoint(
    compute: &Compute,
    out: &mut Matrix,
    gradients: &mut ScoreGradients,
    scores: Scores<'_>,
    softmax: &Softmax,
    (gradient, vector): (&Matrix, &[f32]),
) {
    let heads = softmax.heads();
    let edges = scores.block.edges() * heads;
    gradients.edges.resize_with(edges.max(gradients.edges.len()), AtomicU32::default);
    gradients.source.reshape(scores.block.sources(), heads);
    out.reshape(scores.block.sources(), scores.messages.columns());
    let halves = (gradients.source.data_mut(), heads);
    let (edges, rooms) = (&gradients.edges, compute.rooms());
    let width = scores.messages.columns();
    each_value!(gradient.values(), |gradient| {
        pieces2(compute, (out, Access::Write), halves, |first, out, halves| {
            let rows = first..first + out.len() / width.max(1);
            read(&rooms, scores.messages.all(), rows, |messages| {
                let at = Piece { first, edges, vector, messages };
                adjoint_piece(out, halves, at, &scores, &softmax.state, gradient);
            });
        });
    });
}

/// Which sources a piece has, and where the gradients of scores go. What is only read are arguments of their own:
/// behind a struct the compiler could not know that the stores to `edges` leave them alone.
#[derive(Clone, Copy)]
struct Piece<'a> {
    first: usize,
    edges: &'a [AtomicU32],
    vector: &'a [f32],
    /// The messages of the piece.
    messages: &'a [f32],
}

per_processor! {
    fn adjoint_piece<T: Value>(
        out: &mut [f32], halves: &mut [f32], piece: Piece<'_>, scores: &Scores<'_>, state: &Matrix, gradient: &[T],
    ) {
        let Piece { first, edges, vector, messages } = piece;
        let heads = state.columns() / 4;
        let columns = scores.messages.columns();
        let width = columns / heads;
        let csr = scores.block.reverse();
        let positions = scores.block.positions();
        assert!(heads <= HEADS_MAX, "at most 64 heads");
        let (mut alpha, mut along) = ([0.0f32; HEADS_MAX], [0.0f32; HEADS_MAX]);
        let (alpha, along) = (&mut alpha[..heads], &mut along[..heads]);
        for (line, (out, halves)) in out.chunks_exact_mut(columns).zip(halves.chunks_exact_mut(heads)).enumerate() {
            let source = first + line;
            out.fill(0.0);
            halves.fill(0.0);
            let message = &messages[line * columns..][..columns];
            let mine = &scores.source.row(source)[..heads];
            let entries = csr.offsets[source]..csr.offsets[source + 1];
            let weight = scores.weight_of(source);
            if weight == 0.0 {
                for &position in &positions[entries] {
                    let heads = &edges[position as usize * heads..][..heads];
                    heads.iter().for_each(|edge| edge.store(0, Ordering::Relaxed));
                }
                continue;
            }
            for entry in entries {
                if let Some(&coming) = csr.columns.get(entry + AHEAD) {
                    prefetch_row(gradient, columns, coming);
                    prefetch_row(state.data(), 4 * heads, coming);
                    prefetch_for_writing(edges, positions[entry + AHEAD] as usize * heads);
                }
                let destination = csr.columns[entry] as usize;
                let incoming = &gradient[destination * columns..][..columns];
                let [theirs, maximum, reciprocal, inner] = quarters(state.row(destination), heads);
                for head in 0..heads {
                    let score = mine[head] + theirs[head];
                    alpha[head] = weight * exp(leaky(score) - maximum[head]) * reciprocal[head];
                }
                let rows = incoming.chunks_exact(width).zip(message.chunks_exact(width));
                let rows = out.chunks_exact_mut(width).zip(rows).zip(alpha.iter().zip(along.iter_mut()));
                for ((out, (incoming, message)), (alpha, along)) in rows {
                    *along = add_and_multiply(out, incoming, message, *alpha);
                }
                // One by one, as they are stored: read back as a vector they would wait until all have left.
                let position = positions[entry] as usize * heads;
                let edges = &edges[position..position + heads];
                for head in 0..heads {
                    let slope = if mine[head] + theirs[head] > 0.0 { 1.0 } else { SLOPE };
                    let of_score = alpha[head] * (along[head] - inner[head]) * slope;
                    halves[head] += of_score;
                    edges[head].store(of_score.to_bits(), Ordering::Relaxed);
                }
            }
            for ((out, vector), half) in out.chunks_exact_mut(width).zip(vector.chunks_exact(width)).zip(&*halves) {
                out.iter_mut().zip(vector).for_each(|(out, value)| *out += half * value);
            }
        }
    }
}

/// `out += alpha · a`, and ⟨a, b⟩, in one pass over a.
#[inline(always)]
fn add_and_multiply<T: Value>(out: &mut [f32], a: &[T], b: &[f32], alpha: f32) -> f32 {
    let mut lanes = [0.0f32; 8];
    let (mut out_runs, a_runs, b_runs) = (out.chunks_exact_mut(8), a.chunks_exact(8), b.chunks_exact(8));
    let (a_rest, b_rest) = (a_runs.remainder(), b_runs.remainder());
    for ((out, a), b) in (&mut out_runs).zip(a_runs).zip(b_runs) {
        for lane in 0..8 {
            out[lane] += alpha * a[lane].get();
            lanes[lane] += a[lane].get() * b[lane];
        }
    }
    let mut rest = 0.0;
    for ((out, a), b) in out_runs.into_remainder().iter_mut().zip(a_rest).zip(b_rest) {
        *out += alpha * a.get();
        rest += a.get() * b;
    }
    for half in [4, 2, 1] {
        for lane in 0..half {
            lanes[lane] += lanes[lane + half];
        }
    }
    lanes[0] + rest
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
    rows(compute, out, Access::Update, |row, out| {
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
    let rooms = compute.rooms();
    compute.reduce(gradient, pieces, |piece, partial| {
        for row in piece * size..((piece + 1) * size).min(rows) {
            read(&rooms, messages.all(), row..row + 1, |message| add_heads(partial, halves.row(row), message, width));
        }
    });
}

per_processor! {
    /// `sums[h·width + d] += factors[h] · values[h·width + d]`.
    fn add_heads(sums: &mut [f32], factors: &[f32], values: &[f32], width: usize) {
        for ((sums, values), factor) in sums.chunks_exact_mut(width).zip(values.chunks_exact(width)).zip(factors) {
            sums.iter_mut().zip(values).for_each(|(sum, value)| *sum += factor * value);
        }
    }
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
mod tests;
