//! Edge softmax and weighted sums of graph attention (Veličković et al., 2018, equations 1 to 4), block after block.
//!
//! A destination's softmax runs over the edges of several blocks. Each fold keeps a running maximum, and rescales what
//! it has when a larger score comes (the online softmax of Milakov and Gimelshein, 2018), so blocks are folded one at a
//! time and the halo may arrive while the local block is being folded. Scores are recomputed in the backward pass
//! rather than stored.

use std::ops::Range;
use std::sync::atomic::{AtomicU32, Ordering};

use super::dispatch::{per_processor, prefetch, prefetch_for_writing, prefetch_row};
use super::elementwise::dot;
use super::stored::{Access, pieces2, read, rows};
use super::wide::{self, Picked};
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
#[inline(always)]
fn quarters(state: &[f32], heads: usize) -> [&[f32]; 4] {
    let (halves, rest) = state.split_at(heads);
    let (maximum, rest) = rest.split_at(heads);
    let (denominator, inner) = rest.split_at(heads);
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
const AHEAD: usize = 12;
const HALVES_AHEAD: usize = 32;

/// Edges whose factors are computed before their rows are read.
const RUN: usize = 16;

/// Does the same with the number of heads known to the compiler where it is a usual one, so that it makes vectors of
/// them.
macro_rules! each_heads {
    ($heads:expr, $name:ident($($argument:expr),*)) => {
        match $heads {
            1 => $name::<_, 1>($($argument),*),
            8 => $name::<_, 8>($($argument),*),
            _ => $name::<_, 0>($($argument),*),
        }
    };
}

/// So many values of a row of heads: as many as the compiler knows of, where it knows of any.
#[inline(always)]
fn heads_of<const HEADS: usize>(heads: usize) -> usize {
    if HEADS == 0 { heads } else { HEADS }
}

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

/// Raises `maximum` to the largest score of the edges into row `row`.
#[inline(always)]
fn raise<const HEADS: usize>(maximum: &mut [f32], theirs: &[f32], row: usize, scores: &Scores<'_>) {
    let csr = scores.block.forward();
    let heads = heads_of::<HEADS>(maximum.len());
    let (maximum, theirs) = (&mut maximum[..heads], &theirs[..heads]);
    for edge in csr.offsets[row]..csr.offsets[row + 1] {
        if let Some(&coming) = csr.columns.get(edge + HALVES_AHEAD) {
            prefetch(scores.source.data(), coming as usize * heads);
        }
        let source = csr.columns[edge] as usize;
        if scores.weight_of(source) == 0.0 {
            continue;
        }
        let halves = &scores.source.row(source)[..heads];
        for head in 0..heads {
            maximum[head] = maximum[head].max(leaky(halves[head] + theirs[head]));
        }
    }
}

per_processor! {
    fn fold_piece<T: Value>(
        sums: &mut [f32], state: &mut [f32], at: (usize, usize), scores: &Scores<'_>, messages: &[T],
    ) {
        each_heads!(at.1, fold_rows(sums, state, at, scores, messages));
    }
}

#[inline(always)]
fn fold_rows<T: Value, const HEADS: usize>(
    sums: &mut [f32],
    state: &mut [f32],
    (first, heads): (usize, usize),
    scores: &Scores<'_>,
    messages: &[T],
) {
    assert!(heads <= HEADS_MAX, "at most 64 heads");
    let heads = heads_of::<HEADS>(heads);
    let columns = scores.messages.columns();
    let width = columns / heads;
    let csr = scores.block.forward();
    let (mut before, mut which) = ([0.0f32; HEADS_MAX], [0u32; RUN]);
    let before = &mut before[..heads];
    // For each edge of a run and each head: what stands beside its score, and what comes of it.
    let mut beside = [[0.0f32; RUN * HEADS_MAX]; 2];
    let mut alpha = [0.0f32; RUN * HEADS_MAX];
    for (line, (sums, state)) in sums.chunks_exact_mut(columns).zip(state.chunks_exact_mut(4 * heads)).enumerate() {
        let row = first + line;
        let edges = csr.offsets[row]..csr.offsets[row + 1];
        if edges.is_empty() {
            continue;
        }
        let (theirs, state) = state.split_at_mut(heads);
        let (maximum, state) = state.split_at_mut(heads);
        let denominator = &mut state[..heads];
        before.copy_from_slice(maximum);
        raise::<HEADS>(maximum, theirs, row, scores);
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
        for of_edge in 0..edges.len().min(RUN) {
            beside[0][of_edge * heads..][..heads].copy_from_slice(&theirs[..heads]);
            beside[1][of_edge * heads..][..heads].copy_from_slice(&maximum[..heads]);
        }
        for start in edges.clone().step_by(RUN) {
            let mut there = 0;
            for &source in &csr.columns[start..edges.end.min(start + RUN)] {
                if scores.weight_of(source as usize) == 0.0 {
                    continue;
                }
                which[there] = source;
                alpha[there * heads..][..heads].copy_from_slice(&scores.source.row(source as usize)[..heads]);
                there += 1;
            }
            let [others, maxima] = &beside;
            for ((alpha, other), maximum) in alpha[..there * heads].iter_mut().zip(others).zip(maxima) {
                *alpha = exp(leaky(*alpha + other) - maximum);
            }
            for (alpha, &source) in alpha.chunks_exact_mut(heads).zip(&which[..there]) {
                let weight = scores.weight_of(source as usize);
                for head in 0..heads {
                    alpha[head] *= weight;
                    denominator[head] += alpha[head];
                }
            }
            let (coming, factors) = (after(&csr.columns, start + AHEAD), &alpha[..there * heads]);
            let picked = Picked { rows: messages, columns, which: &which[..there], coming, factors, heads };
            if !wide::add_picked(sums, picked) {
                add_picked(sums, picked);
            }
        }
    }
}

/// Those behind the first so many, if there are any.
#[inline(always)]
fn after(columns: &[u32], count: usize) -> &[u32] {
    columns.get(count..).unwrap_or(&[])
}

/// `sums += Σ factor · row` over what is picked.
#[inline(always)]
fn add_picked<T: Value>(sums: &mut [f32], picked: Picked<'_, T>) {
    let Picked { rows, columns, which, coming, factors, heads } = picked;
    for (at, &row) in which.iter().enumerate() {
        if let Some(&coming) = coming.get(at) {
            prefetch_row(rows, columns, coming);
        }
        let row = &rows[row as usize * columns..][..columns];
        let of_heads = sums.chunks_exact_mut(columns / heads).zip(row.chunks_exact(columns / heads));
        for ((sums, row), factor) in of_heads.zip(&factors[at * heads..][..heads]) {
            for (sum, value) in sums.iter_mut().zip(row) {
                *sum += factor * value.get();
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
        each_heads!(state.columns() / 4, adjoint_rows(out, halves, piece, scores, state, gradient));
    }
}

#[inline(always)]
fn adjoint_rows<T: Value, const HEADS: usize>(
    out: &mut [f32],
    halves: &mut [f32],
    Piece { first, edges, vector, messages }: Piece<'_>,
    scores: &Scores<'_>,
    state: &Matrix,
    gradient: &[T],
) {
    let heads = heads_of::<HEADS>(state.columns() / 4);
    let columns = scores.messages.columns();
    let width = columns / heads;
    let csr = scores.block.reverse();
    let positions = scores.block.positions();
    assert!(heads <= HEADS_MAX, "at most 64 heads");
    // For each edge of a run and each head: what stands beside its score, what comes of it, and what that is multiplied
    // by.
    let mut beside = [[0.0f32; RUN * HEADS_MAX]; 4];
    let [mut alpha, mut along] = [[0.0f32; RUN * HEADS_MAX]; 2];
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
        for start in entries.clone().step_by(RUN) {
            let run = start..entries.end.min(start + RUN);
            let which = &csr.columns[run.clone()];
            let len = which.len() * heads;
            for (at, &destination) in which.iter().enumerate() {
                if let Some(&coming) = csr.columns.get(start + at + HALVES_AHEAD) {
                    prefetch_row(state.data(), 4 * heads, coming);
                    prefetch_for_writing(edges, positions[start + at + HALVES_AHEAD] as usize * heads);
                }
                let quarters = quarters(state.row(destination as usize), heads);
                for (beside, quarter) in beside.iter_mut().zip(quarters) {
                    beside[at * heads..][..heads].copy_from_slice(&quarter[..heads]);
                }
                let scores = &mut beside[0][at * heads..][..heads];
                scores.iter_mut().zip(mine).for_each(|(score, mine)| *score += mine);
            }
            let [score, maxima, reciprocals, inner] = &beside;
            let [score, maxima, reciprocals, inner] =
                [&score[..len], &maxima[..len], &reciprocals[..len], &inner[..len]];
            let of_edges = alpha[..len].iter_mut().zip(score).zip(maxima).zip(reciprocals);
            for (((alpha, score), maximum), reciprocal) in of_edges {
                *alpha = weight * exp(leaky(*score) - maximum) * reciprocal;
            }
            let coming = after(&csr.columns, start + AHEAD);
            let picked = Picked { rows: gradient, columns, which, coming, factors: &alpha[..len], heads };
            if !wide::add_and_multiply_picked(out, &mut along, message, picked) {
                add_and_multiply_picked(out, &mut along, message, picked);
            }
            for (((along, alpha), inner), score) in along[..len].iter_mut().zip(&alpha[..len]).zip(inner).zip(score) {
                *along = alpha * (*along - inner) * if *score > 0.0 { 1.0 } else { SLOPE };
            }
            for (of_edge, &position) in along.chunks_exact(heads).zip(&positions[run]) {
                let edges = &edges[position as usize * heads..][..heads];
                for head in 0..heads {
                    halves[head] += of_edge[head];
                    edges[head].store(of_edge[head].to_bits(), Ordering::Relaxed);
                }
            }
        }
        for ((out, vector), half) in out.chunks_exact_mut(width).zip(vector.chunks_exact(width)).zip(&*halves) {
            out.iter_mut().zip(vector).for_each(|(out, value)| *out += half * value);
        }
    }
}

/// [`add_picked`], and in the same pass `along = ⟨row, other⟩`, head by head, of each row that is picked.
#[inline(always)]
fn add_and_multiply_picked<T: Value>(sums: &mut [f32], along: &mut [f32], other: &[f32], picked: Picked<'_, T>) {
    let Picked { rows, columns, which, coming, factors, heads } = picked;
    let width = columns / heads;
    for (at, &row) in which.iter().enumerate() {
        if let Some(&coming) = coming.get(at) {
            prefetch_row(rows, columns, coming);
        }
        let row = &rows[row as usize * columns..][..columns];
        let of_heads = factors[at * heads..][..heads].iter().zip(&mut along[at * heads..][..heads]);
        let rows = row.chunks_exact(width).zip(other.chunks_exact(width));
        for ((sums, (row, other)), (factor, along)) in sums.chunks_exact_mut(width).zip(rows).zip(of_heads) {
            *along = add_and_multiply(sums, row, other, *factor);
        }
    }
}

/// `out += alpha · a`, and ⟨a, b⟩, in one pass over a.
#[inline(always)]
fn add_and_multiply<T: Value>(out: &mut [f32], a: &[T], b: &[f32], alpha: f32) -> f32 {
    let mut lanes = [0.0f32; wide::LANES];
    let (mut out_runs, a_runs) = (out.chunks_exact_mut(wide::LANES), a.chunks_exact(wide::LANES));
    let b_runs = b.chunks_exact(wide::LANES);
    let (a_rest, b_rest) = (a_runs.remainder(), b_runs.remainder());
    for ((out, a), b) in (&mut out_runs).zip(a_runs).zip(b_runs) {
        for lane in 0..wide::LANES {
            out[lane] += alpha * a[lane].get();
            lanes[lane] += a[lane].get() * b[lane];
        }
    }
    let mut rest = 0.0;
    for ((out, a), b) in out_runs.into_remainder().iter_mut().zip(a_rest).zip(b_rest) {
        *out += alpha * a.get();
        rest += a.get() * b;
    }
    // As `wide` adds lanes up.
    for half in [8, 4, 2, 1] {
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
/// machine gets the same bits. Adding 1.5 · 2²³ rounds to a whole number, which then stands in the lowest bits.
#[inline(always)]
fn exp(x: f32) -> f32 {
    const WHOLE: f32 = 12_582_912.0;
    let x = x.clamp(-87.0, 87.0);
    let shifted = x * std::f32::consts::LOG2_E + WHOLE;
    let n = shifted - WHOLE;
    let r = x - n * 0.693_359_4 + n * 2.121_944_4e-4;
    let mut p = 1.987_569_1e-4;
    p = p * r + 1.398_199_9e-3;
    p = p * r + 8.333_452e-3;
    p = p * r + 4.166_579_6e-2;
    p = p * r + 1.666_666_5e-1;
    p = p * r + 5.000_000_3e-1;
    let value = p * r * r + r + 1.0;
    value * f32::from_bits((shifted.to_bits() << 23).wrapping_add(127 << 23))
}

#[cfg(test)]
mod tests;
