//! The backward pass through attention: by source, since a source's message is read by all of its edges.

use std::sync::atomic::{AtomicU32, Ordering};

use laconic_array::Array;

use super::{
    AHEAD, Blocks, HALVES_AHEAD, HEADS_MAX, RUN, SLOPE, Scores, Softmax, after, blocks_in, each_heads, heads_of, leaky,
    quarters,
};
use crate::block::Block;
use crate::kernels::Store;
use crate::kernels::back::{Back, Reads};
use crate::kernels::dispatch::{per_processor, prefetch_for_writing, prefetch_row};
use crate::kernels::exponential::exp;
use crate::kernels::long::{LONG, in_blocks};
use crate::kernels::stored::{Access, pieces2, read, rows, widen};
use crate::kernels::wide::{self, Picked};
use crate::matrix::{DenseRows, Matrix, Value, each_value};
use crate::threads::{Compute, row_bounds};

/// Buffers of the backward pass through one block.
#[derive(Default)]
pub struct ScoreGradients {
    /// The gradients of the sources' halves of the scores; sources × heads.
    pub source: Matrix,
    /// The gradient of each score before LeakyReLU, in the block's forward order, as the bits of an `f32`. The pass
    /// runs by source and writes these in the order of destinations; relaxed atomic stores make that safe, and cost
    /// what plain ones do.
    edges: Array<AtomicU32>,
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
    if gradients.edges.len() < edges {
        gradients.edges = Array::default();
        gradients.edges = Array::of_defaults(edges);
    }
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
                rooms.lend(|room| {
                    adjoint_piece(out, halves, at, &scores, &softmax.state, gradient, blocks_in(room, width));
                });
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
        room: [&mut [f32]; 2],
    ) {
        each_heads!(state.columns() / 4, adjoint_rows(out, halves, piece, scores, state, gradient, room));
    }
}

/// Edges from one source whose factors are computed at once. For each of them and each head:
struct Run {
    /// The whole score, the destination's maximum, reciprocal of the sum and inner product.
    beside: [[f32; RUN * HEADS_MAX]; 4],
    /// What the destination's gradient is multiplied by.
    factors: [f32; RUN * HEADS_MAX],
    /// The inner product of that gradient with the source's message, and then the gradient of the score.
    along: [f32; RUN * HEADS_MAX],
}

impl Run {
    /// Takes up edges to these destinations, at most [`RUN`], of a source with these halves of scores.
    #[inline(always)]
    fn weigh(&mut self, destinations: &[u32], state: &Matrix, mine: &[f32], weight: f32) {
        let heads = mine.len();
        for (at, &destination) in destinations.iter().enumerate() {
            let quarters = quarters(state.row(destination as usize), heads);
            for (beside, quarter) in self.beside.iter_mut().zip(quarters) {
                beside[at * heads..][..heads].copy_from_slice(&quarter[..heads]);
            }
            let scores = &mut self.beside[0][at * heads..][..heads];
            scores.iter_mut().zip(mine).for_each(|(score, mine)| *score += mine);
        }
        let [scores, maxima, reciprocals, _] = &self.beside;
        let factors = self.factors[..destinations.len() * heads].iter_mut();
        for (((factor, score), maximum), reciprocal) in factors.zip(scores).zip(maxima).zip(reciprocals) {
            *factor = weight * exp(leaky(*score) - maximum) * reciprocal;
        }
    }

    /// Turns the inner products into the gradients of the scores, and hands these to both ends of the edges.
    #[inline(always)]
    fn hand_on(&mut self, halves: &mut [f32], edges: &[AtomicU32], positions: &[u32]) {
        let heads = halves.len();
        let [scores, _, _, inner] = &self.beside;
        let along = self.along[..positions.len() * heads].iter_mut();
        for (((along, factor), inner), score) in along.zip(&self.factors).zip(inner).zip(scores) {
            *along = factor * (*along - inner) * if *score > 0.0 { 1.0 } else { SLOPE };
        }
        for (of_edge, &position) in self.along.chunks_exact(heads).zip(positions) {
            let edges = &edges[position as usize * heads..][..heads];
            for head in 0..heads {
                halves[head] += of_edge[head];
                edges[head].store(of_edge[head].to_bits(), Ordering::Relaxed);
            }
        }
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
    room: [&mut [f32]; 2],
) {
    let [low, block] = room;
    let heads = heads_of::<HEADS>(state.columns() / 4);
    let columns = scores.messages.columns();
    let width = columns / heads;
    let csr = scores.block.reverse();
    let positions = scores.block.positions();
    assert!(heads <= HEADS_MAX, "at most 64 heads");
    let [factors, along] = [[0.0f32; RUN * HEADS_MAX]; 2];
    let mut run = Run { beside: [[0.0; RUN * HEADS_MAX]; 4], factors, along };
    for (line, (out, halves)) in out.chunks_exact_mut(columns).zip(halves.chunks_exact_mut(heads)).enumerate() {
        let source = first + line;
        let halves = &mut halves[..heads];
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
        let mut blocks = Blocks::new(entries, (&mut *out, &mut *halves), [&mut *low, &mut *block]);
        while let Some((entries, out, halves)) = blocks.next() {
            let halves = &mut halves[..heads];
            for start in entries.clone().step_by(RUN) {
                let of_run = start..entries.end.min(start + RUN);
                let coming = start + HALVES_AHEAD..csr.columns.len().min(of_run.end + HALVES_AHEAD);
                for entry in coming {
                    prefetch_row(state.data(), 4 * heads, csr.columns[entry]);
                    prefetch_for_writing(edges, positions[entry] as usize * heads);
                }
                let which = &csr.columns[of_run.clone()];
                run.weigh(which, state, mine, weight);
                let (coming, factors) = (after(csr.columns, start + AHEAD), &run.factors[..which.len() * heads]);
                let picked = Picked { rows: gradient, columns, which, coming, factors, heads };
                if !wide::add_and_multiply_picked(out, &mut run.along, message, picked) {
                    add_and_multiply_picked(out, &mut run.along, message, picked);
                }
                run.hand_on(halves, edges, &positions[of_run]);
            }
        }
        for ((out, vector), half) in out.chunks_exact_mut(width).zip(vector.chunks_exact(width)).zip(&*halves) {
            out.iter_mut().zip(vector).for_each(|(out, value)| *out += half * value);
        }
    }
}

/// [`add_picked`], and in the same pass `along = ⟨row, other⟩`, head by head, of each row that is picked.
#[inline(always)]
pub(super) fn add_and_multiply_picked<T: Value>(
    sums: &mut [f32],
    along: &mut [f32],
    other: &[f32],
    picked: Picked<'_, T>,
) {
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

/// `out += alpha · a`, and ⟨a, b⟩, a few values of a at a time: products are added up in as many lanes as `wide` has,
/// and these as it does.
#[inline(always)]
fn add_and_multiply<T: Value>(out: &mut [f32], a: &[T], b: &[f32], alpha: f32) -> f32 {
    let mut lanes = [0.0f32; wide::LANES];
    let runs = out.chunks_mut(wide::LANES).zip(a.chunks(wide::LANES)).zip(b.chunks(wide::LANES));
    for ((out, a), b) in runs {
        // Two loops: of one the compiler makes hardly any vectors.
        out.iter_mut().zip(a).for_each(|(out, a)| *out += alpha * a.get());
        for (lane, (a, b)) in lanes.iter_mut().zip(a.iter().zip(b)) {
            *lane += a.get() * b;
        }
    }
    for half in [8, 4, 2, 1] {
        for lane in 0..half {
            lanes[lane] += lanes[lane + half];
        }
    }
    lanes[0]
}

/// Adds the gradients of the scores to those of the destinations' halves; run after [`attention_adjoint`] on the same
/// block.
pub fn add_destination_gradient(compute: &Compute, out: &mut Matrix, gradients: &ScoreGradients, block: &Block) {
    let (heads, rooms) = (out.columns(), compute.rooms());
    let csr = block.forward();
    compute.rows(out.rows_mut(), |row, out| {
        in_blocks(&rooms, csr.offsets[row]..csr.offsets[row + 1], LONG, out, |edges, out| {
            for edge in edges {
                for (head, out) in out.iter_mut().enumerate() {
                    *out += f32::from_bits(gradients.edges[edge * heads + head].load(Ordering::Relaxed));
                }
            }
        });
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
        let rows = (piece * size).min(rows)..((piece + 1) * size).min(rows);
        in_blocks(&rooms, rows, LONG, partial, |rows, partial| {
            for row in rows {
                read(&rooms, messages.all(), row..row + 1, |message| {
                    add_heads(partial, halves.row(row), message, width);
                });
            }
        });
    });
}

/// Messages that are rows times a weight, q = x · Wᵀ.
#[derive(Clone, Copy)]
pub struct Transformed<'a> {
    /// The rows; sources × inputs.
    pub x: DenseRows<'a>,
    /// W, (heads · width) × inputs.
    pub weight: &'a [f32],
    /// The messages; sources × (heads · width).
    pub messages: &'a Matrix,
    /// What destinations' halves of scores are made with; heads × width.
    pub destination: &'a [f32],
}

/// What is left to do when [`attention_adjoint`] and [`add_destination_gradient`] have run over all blocks, in one
/// reading of each matrix: [`add_score_gradient`] to the gradient of the messages as it is read, and to `gradient` that
/// of W, which is its first part, and that of the destinations' vector, which begins at a place of its own. Sets `dx`
/// or adds to it, where it is wanted. `halves` are the gradients of the destinations' halves; destinations are the
/// first rows.
///
/// # Panics
///
/// If the shapes do not fit together.
pub fn transformed_adjoint(
    compute: &mut Compute,
    (gradient, vector): (&mut [f32], usize),
    of: Transformed<'_>,
    halves: &Matrix,
    dmessages: &Matrix,
    dx: Option<(&mut Matrix, Store)>,
) {
    let (columns, heads) = (of.messages.columns(), halves.columns());
    let width = columns / heads;
    let rooms = compute.rooms();
    let (bounds, pieces) = row_bounds(of.x.rows());
    let back = Back {
        made: (of.weight, 0),
        own: None,
        make: &|first, out| {
            let rows = first..first + out.len() / columns.max(1);
            each_value!(dmessages.span(rows.clone()).values(), |values| widen(out, values));
            for (row, out) in rows.take_while(|&row| row < halves.rows()).zip(out.chunks_exact_mut(columns)) {
                add_heads(out, halves.row(row), of.destination, width);
            }
        },
        also: &|rows, partial| {
            let sum = &mut partial[vector..][..columns];
            let rows = rows.start.min(halves.rows())..rows.end.min(halves.rows());
            in_blocks(&rooms, rows, LONG, sum, |rows, sum| {
                for row in rows {
                    read(&rooms, of.messages.all(), row..row + 1, |message| {
                        add_heads(sum, halves.row(row), message, width);
                    });
                }
            });
        },
    };
    back.add(compute, gradient, &bounds[..=pieces], Reads::Rows(of.x, dx));
}

per_processor! {
    /// `sums[h·width + d] += factors[h] · values[h·width + d]`.
    fn add_heads(sums: &mut [f32], factors: &[f32], values: &[f32], width: usize) {
        for ((sums, values), factor) in sums.chunks_exact_mut(width).zip(values.chunks_exact(width)).zip(factors) {
            sums.iter_mut().zip(values).for_each(|(sum, value)| *sum += factor * value);
        }
    }
}
