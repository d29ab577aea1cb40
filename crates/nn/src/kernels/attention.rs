//! Edge softmax and weighted sums of graph attention (Veličković et al., 2018, equations 1 to 4), block after block.
//!
//! A destination's softmax runs over the edges of several blocks. Each fold keeps a running maximum, and rescales what
//! it has when a larger score comes (the online softmax of Milakov and Gimelshein, 2018), so blocks are folded one at a
//! time and the halo may arrive while the local block is being folded. Scores are recomputed in the backward pass
//! rather than stored.

mod adjoint;

use std::ops::Range;

use laconic_array::Array;

use super::dispatch::{per_processor, prefetch, prefetch_row};
use super::elementwise::{add_values, dot};
use super::exponential::exp;
use super::long::{LONG, add_block, close, in_blocks};
use super::stored::{Access, pieces2, read};
use super::wide::{self, Picked};
use crate::block::Block;
use crate::matrix::{Matrix, Value, each_value};
use crate::threads::{Compute, row_bounds};

pub use adjoint::{
    ScoreGradients, Transformed, add_destination_gradient, add_score_gradient, add_vector_gradient, attention_adjoint,
    transformed_adjoint,
};

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
    /// Begins with no edges seen. Halves of the scores are those of the messages, by `vectors` of heads × width values:
    /// by the first of all rows, sources × heads, set in `source`; by the second of those `rows` that are destinations.
    pub fn reset(
        &mut self,
        compute: &Compute,
        source: &mut Matrix,
        (messages, rows): (&Matrix, Range<usize>),
        vectors: [&[f32]; 2],
        heads: usize,
    ) {
        let width = messages.columns() / heads;
        self.state.reshape(rows.len(), 4 * heads);
        let rooms = compute.rooms();
        let begin = |state: &mut [f32], message: &[f32]| {
            let (halves, others) = state.split_at_mut(heads);
            products_of_heads(halves, message, vectors[1], width);
            others.fill(0.0);
            others[..heads].fill(f32::NEG_INFINITY);
        };
        if rows != (0..messages.rows()) {
            score_halves(compute, source, messages, vectors[0], heads);
            return compute.rows(self.state.rows_mut(), |row, state| {
                let row = rows.start + row;
                read(&rooms, messages.all(), row..row + 1, |message| begin(state, message));
            });
        }
        source.reshape(messages.rows(), heads);
        let states = (self.state.data_mut(), 4 * heads);
        pieces2(compute, (source, Access::Write), states, |first, source, state| {
            let of_rows = source.chunks_exact_mut(heads).zip(state.chunks_exact_mut(4 * heads));
            for (line, (source, state)) in of_rows.enumerate() {
                let row = first + line;
                read(&rooms, messages.all(), row..row + 1, |message| {
                    products_of_heads(source, message, vectors[0], width);
                    begin(state, message);
                });
            }
        });
    }

    /// How many heads there are.
    pub fn heads(&self) -> usize {
        self.state.columns() / 4
    }

    /// Takes up the gradient of the closed sums, which the adjoint reads beside them; both are destinations × (heads ·
    /// width). The sums may have been closed with a shift, which is no part of them. Adds the gradient's rows up in
    /// `total`, which has a value for each column or none.
    ///
    /// # Panics
    ///
    /// If there are more than 64 heads.
    pub fn take_up(
        &mut self,
        compute: &mut Compute,
        gradient: &Matrix,
        (closed, shift): (&Matrix, Option<&[f32]>),
        total: &mut [f32],
    ) {
        let heads = self.heads();
        assert!(heads <= HEADS_MAX, "at most 64 heads");
        let width = closed.columns() / heads;
        let rooms = compute.rooms();
        let (bounds, pieces) = row_bounds(gradient.rows());
        let of_values = bounds.map(|bound| bound * 4 * heads);
        let states = (self.state.data_mut(), &of_values[..=pieces]);
        compute.reduce_beside(total, states, |piece, total, states| {
            in_blocks(&rooms, 0..states.len() / (4 * heads), LONG, total, |lines, total| {
                for line in lines {
                    let row = bounds[piece] + line;
                    let inner = &mut states[4 * heads * line..][3 * heads..4 * heads];
                    read(&rooms, gradient.all(), row..row + 1, |gradient| {
                        read(&rooms, closed.all(), row..row + 1, |closed| {
                            products_of_heads(inner, gradient, closed, width);
                        });
                        if let Some(shift) = shift {
                            let mut of_shift = [0.0; HEADS_MAX];
                            products_of_heads(&mut of_shift[..heads], gradient, shift, width);
                            inner.iter_mut().zip(of_shift).for_each(|(inner, of_shift)| *inner -= of_shift);
                        }
                        if !total.is_empty() {
                            add_values(total, gradient);
                        }
                    });
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
const _: () = assert!(LONG.is_multiple_of(RUN), "blocks of long sums are runs");

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
use each_heads;

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
    let (columns, rooms) = (sums.columns(), compute.rooms());
    each_value!(scores.messages.values(), |messages| {
        let state = (softmax.state.data_mut(), 4 * heads);
        pieces2(compute, (sums, Access::Update), state, |first, sums, state| {
            rooms.lend(|room| {
                let room = blocks_in(room, columns);
                fold_piece(sums, state, (first, heads), &scores, messages, room);
            });
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
        room: [&mut [f32]; 2],
    ) {
        each_heads!(at.1, fold_rows(sums, state, at, scores, messages, room));
    }
}

/// Room for a long row's [`Blocks`]: twice so many columns, and their heads.
fn blocks_in(room: &mut Array<f32>, columns: usize) -> [&mut [f32]; 2] {
    let len = columns + HEADS_MAX;
    room.resize(room.len().max(2 * len));
    room[..2 * len].split_at_mut(len).into()
}

/// The edges of a row, and the sums that they are added to: all at once and the row's own where they are few, else a
/// block at a time with sums of its own, which are added to the row's.
///
/// This is a loop's head and takes no closure: those are compiled apart from the functions that they are inlined into,
/// and so for the narrowest instructions.
struct Blocks<'a> {
    edges: Range<usize>,
    sums: &'a mut [f32],
    of_heads: &'a mut [f32],
    /// What the row's sums round off and those of one block, where the row is long.
    room: [&'a mut [f32]; 2],
    /// What the next block finds.
    state: Turn,
}

#[derive(Clone, Copy, PartialEq)]
enum Turn {
    /// All edges are one block.
    Short,
    /// No block has come yet.
    First,
    /// Another one has been added up.
    Next,
}

impl<'a> Blocks<'a> {
    #[inline(always)]
    fn new(edges: Range<usize>, (sums, of_heads): (&'a mut [f32], &'a mut [f32]), room: [&'a mut [f32]; 2]) -> Self {
        let state = if edges.len() <= LONG { Turn::Short } else { Turn::First };
        Blocks { edges, sums, of_heads, room, state }
    }

    /// The next edges, and the sums of columns and heads that they are added to.
    #[inline(always)]
    fn next(&mut self) -> Option<(Range<usize>, &mut [f32], &mut [f32])> {
        if self.state == Turn::Short {
            let edges = std::mem::take(&mut self.edges);
            return (!edges.is_empty()).then_some((edges, &mut *self.sums, &mut *self.of_heads));
        }
        self.turn();
        let end = self.edges.end.min(self.edges.start + LONG);
        let edges = std::mem::replace(&mut self.edges.start, end)..end;
        let (sums, of_heads) = self.room[1].split_at_mut(self.sums.len());
        (!edges.is_empty()).then_some((edges, sums, &mut of_heads[..self.of_heads.len()]))
    }

    /// Adds the block that was to the row's sums, and what was rounded off if it was the last.
    fn turn(&mut self) {
        let [low, block] = &mut self.room;
        let (columns, heads) = (self.sums.len(), self.of_heads.len());
        let [(low, low_of), (block, of_block)] = [&mut *low, &mut *block].map(|of| of.split_at_mut(columns));
        let [low_of, of_block] = [low_of, of_block].map(|of| &mut of[..heads]);
        if self.state == Turn::Next {
            add_block(self.sums, low, block);
            add_block(self.of_heads, low_of, of_block);
        } else {
            [&mut *low, low_of].into_iter().for_each(|low| low.fill(0.0));
        }
        if self.edges.is_empty() {
            close(self.sums, low);
            close(self.of_heads, low_of);
        }
        [block, of_block].into_iter().for_each(|block| block.fill(0.0));
        self.state = Turn::Next;
    }
}

/// Edges into one destination whose factors are computed at once.
struct Run {
    /// The sources that are there.
    which: [u32; RUN],
    /// Their number.
    there: usize,
    /// For each of them and each head: the destination's half of the score, and its maximum.
    beside: [[f32; RUN * HEADS_MAX]; 2],
    /// For each of them and each head: what its message is multiplied by.
    factors: [f32; RUN * HEADS_MAX],
}

impl Run {
    /// Begins with a destination that has so many edges.
    #[inline(always)]
    fn begin(&mut self, edges: usize, theirs: &[f32], maximum: &[f32]) {
        let heads = theirs.len();
        for (beside, of_row) in self.beside.iter_mut().zip([theirs, maximum]) {
            beside.chunks_exact_mut(heads).take(edges.min(RUN)).for_each(|beside| beside.copy_from_slice(of_row));
        }
    }

    /// Takes up edges from these sources, at most [`RUN`], and adds their factors to the denominator.
    #[inline(always)]
    fn weigh(&mut self, sources: &[u32], scores: &Scores<'_>, denominator: &mut [f32]) {
        let heads = denominator.len();
        self.there = 0;
        for &source in sources.iter().filter(|&&source| scores.weight_of(source as usize) != 0.0) {
            self.which[self.there] = source;
            let halves = &scores.source.row(source as usize)[..heads];
            self.factors[self.there * heads..][..heads].copy_from_slice(halves);
            self.there += 1;
        }
        let factors = &mut self.factors[..self.there * heads];
        let [theirs, maxima] = &self.beside;
        for ((factor, theirs), maximum) in factors.iter_mut().zip(theirs).zip(maxima) {
            *factor = exp(leaky(*factor + theirs) - maximum);
        }
        for (factors, &source) in factors.chunks_exact_mut(heads).zip(&self.which) {
            let weight = scores.weight_of(source as usize);
            for head in 0..heads {
                factors[head] *= weight;
                denominator[head] += factors[head];
            }
        }
    }
}

#[inline(always)]
fn fold_rows<T: Value, const HEADS: usize>(
    sums: &mut [f32],
    state: &mut [f32],
    (first, heads): (usize, usize),
    scores: &Scores<'_>,
    messages: &[T],
    room: [&mut [f32]; 2],
) {
    let [low, block] = room;
    assert!(heads <= HEADS_MAX, "at most 64 heads");
    let heads = heads_of::<HEADS>(heads);
    let columns = scores.messages.columns();
    let csr = scores.block.forward();
    let mut before = [0.0f32; HEADS_MAX];
    let mut run =
        Run { which: [0; RUN], there: 0, beside: [[0.0; RUN * HEADS_MAX]; 2], factors: [0.0; RUN * HEADS_MAX] };
    for (line, (sums, state)) in sums.chunks_exact_mut(columns).zip(state.chunks_exact_mut(4 * heads)).enumerate() {
        let row = first + line;
        let edges = csr.offsets[row]..csr.offsets[row + 1];
        if edges.is_empty() {
            continue;
        }
        let (theirs, state) = state.split_at_mut(heads);
        let (maximum, state) = state.split_at_mut(heads);
        let denominator = &mut state[..heads];
        before[..heads].copy_from_slice(maximum);
        raise::<HEADS>(maximum, theirs, row, scores);
        let of_heads = sums.chunks_exact_mut(columns / heads).zip(denominator.iter_mut());
        for ((sums, denominator), (maximum, before)) in of_heads.zip(maximum.iter().zip(&before)) {
            if *denominator == 0.0 {
                sums.fill(0.0);
            } else if maximum > before {
                let factor = exp(before - maximum);
                *denominator *= factor;
                sums.iter_mut().for_each(|s| *s *= factor);
            }
        }
        run.begin(edges.len(), &theirs[..heads], &maximum[..heads]);
        let mut blocks = Blocks::new(edges, (sums, &mut denominator[..heads]), [&mut *low, &mut *block]);
        while let Some((edges, sums, denominator)) = blocks.next() {
            let denominator = &mut denominator[..heads];
            for start in edges.clone().step_by(RUN) {
                run.weigh(&csr.columns[start..edges.end.min(start + RUN)], scores, denominator);
                let (which, factors) = (&run.which[..run.there], &run.factors[..run.there * heads]);
                let coming = after(csr.columns, start + AHEAD);
                let picked = Picked { rows: messages, columns, which, coming, factors, heads };
                if !wide::add_picked(sums, picked) {
                    add_picked(sums, picked);
                }
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

#[inline(always)]
fn leaky(score: f32) -> f32 {
    if score > 0.0 { score } else { SLOPE * score }
}

#[cfg(test)]
mod tests;
