//! Folding messages along edges of several relations, each of which mixes a few bases in proportions of its own:
//! `Σ share · Σ_b mix[r, b] · basis b of the message`.
//!
//! Either one side has a stretch of columns for each basis and the other has one for all: a fold of rows as they are
//! has the stretches in its results ([`spread`]), one of rows that were multiplied by every basis has them in the
//! messages ([`gather`]). The two are each other's adjoints.

use super::Store;
use super::long::{LONG, in_blocks};
use crate::block::{Block, Csr};
use crate::matrix::Matrix;
use crate::threads::{Compute, row_pieces};
use std::ops::Range;

/// How much of each basis there is in a relation.
#[derive(Clone, Copy)]
pub struct Mix<'a> {
    /// The number of bases.
    pub bases: usize,
    /// Relations × bases; `None` where every relation is a basis of its own.
    pub proportions: Option<&'a [f32]>,
}

/// The edges of a block in one of its directions, with what each counts for.
#[derive(Clone, Copy)]
pub struct Along<'a> {
    csr: Csr<'a>,
    /// For each entry its edge in the order of [`Block::forward`]; `None` for that order itself.
    positions: Option<&'a [u32]>,
    relations: Option<&'a [u16]>,
    shares: &'a [f32],
    mix: Mix<'a>,
}

impl<'a> Along<'a> {
    /// From sources to destinations.
    ///
    /// # Panics
    ///
    /// If the block's edges have no shares ([`Block::share_relations`]).
    pub fn forward(block: &'a Block, mix: Mix<'a>) -> Along<'a> {
        let shares = block.shares().expect("edges of layers that tell relations apart have shares");
        Along { csr: block.forward(), positions: None, relations: block.relations(), shares, mix }
    }

    /// From destinations back to sources.
    ///
    /// # Panics
    ///
    /// As [`Along::forward`].
    pub fn reverse(block: &'a Block, mix: Mix<'a>) -> Along<'a> {
        Along { csr: block.reverse(), positions: Some(block.positions()), ..Along::forward(block, mix) }
    }

    /// The entries of a row.
    fn entries(&self, row: usize) -> Range<usize> {
        self.csr.offsets[row]..self.csr.offsets[row + 1]
    }

    /// Calls `each(column, basis, factor)` for each of these edges and every basis that its relation has.
    #[inline(always)]
    fn each(&self, entries: Range<usize>, mut each: impl FnMut(usize, usize, f32)) {
        let Mix { bases, proportions } = self.mix;
        for entry in entries {
            let edge = self.positions.map_or(entry, |positions| positions[entry] as usize);
            let relation = self.relations.map_or(0, |relations| usize::from(relations[edge]));
            let (column, share) = (self.csr.columns[entry] as usize, self.shares[edge]);
            match proportions {
                None => each(column, relation, share),
                Some(all) => {
                    for (basis, proportion) in all[relation * bases..][..bases].iter().enumerate() {
                        each(column, basis, share * proportion);
                    }
                }
            }
        }
    }
}

/// `out[v], basis b (=|+=) Σ factor · rows[u]`: `out` has as many columns for each basis as `rows` has.
pub fn spread(compute: &Compute, out: &mut Matrix, store: Store, along: Along<'_>, rows: &Matrix) {
    let (width, columns, rooms) = (rows.columns(), out.columns(), compute.rooms());
    compute.rows((out.data_mut(), columns), |row, out| {
        if store == Store::Set {
            out.fill(0.0);
        }
        in_blocks(&rooms, along.entries(row), LONG, out, |some, out| {
            along.each(some, |column, basis, factor| add(&mut out[basis * width..][..width], factor, rows.row(column)));
        });
    });
}

/// `out[v] (=|+=) Σ factor · basis b of rows[u]`: `rows` has as many columns for each basis as `out` has.
pub fn gather(compute: &Compute, out: &mut Matrix, store: Store, along: Along<'_>, rows: &Matrix) {
    let (width, rooms) = (out.columns(), compute.rooms());
    compute.rows((out.data_mut(), width), |row, out| {
        if store == Store::Set {
            out.fill(0.0);
        }
        in_blocks(&rooms, along.entries(row), LONG, out, |some, out| {
            along.each(some, |column, basis, factor| add(out, factor, &rows.row(column)[basis * width..][..width]));
        });
    });
}

/// Adds to `gradient`, relations × bases, `Σ share · ⟨message, gradient of the fold⟩` over the edges of each relation,
/// where `at(row, edge's source, basis)` are the two vectors.
fn add_proportions(
    compute: &mut Compute,
    gradient: &mut [f32],
    along: Along<'_>,
    inner: impl Fn(usize, usize, usize) -> f32 + Sync + Send,
) {
    let (rows, bases) = (along.csr.offsets.len() - 1, along.mix.bases);
    let pieces = row_pieces(rows);
    let (size, rooms, offsets) = (rows.div_ceil(pieces).max(1), compute.rooms(), along.csr.offsets);
    compute.reduce(gradient, pieces, |piece, partial| {
        let (first, end) = ((piece * size).min(rows), ((piece + 1) * size).min(rows));
        let mut row = first;
        in_blocks(&rooms, offsets[first]..offsets[end], LONG, partial, |entries, partial| {
            for entry in entries {
                while offsets[row + 1] <= entry {
                    row += 1;
                }
                let relation = along.relations.map_or(0, |relations| usize::from(relations[entry]));
                let source = along.csr.columns[entry] as usize;
                for (basis, sum) in partial[relation * bases..][..bases].iter_mut().enumerate() {
                    *sum += along.shares[entry] * inner(row, source, basis);
                }
            }
        });
    });
}

/// The gradient of the proportions of a [`spread`] along a block, from the gradient of what it output.
pub fn add_spread_gradient(
    compute: &mut Compute,
    gradient: &mut [f32],
    along: Along<'_>,
    rows: &Matrix,
    dout: &Matrix,
) {
    let width = rows.columns();
    let inner = |row, source, basis| dot(rows.row(source), &dout.row(row)[basis * width..][..width]);
    add_proportions(compute, gradient, along, inner);
}

/// The gradient of the proportions of a [`gather`] along a block, from the gradient of what it output.
pub fn add_gather_gradient(
    compute: &mut Compute,
    gradient: &mut [f32],
    along: Along<'_>,
    rows: &Matrix,
    dout: &Matrix,
) {
    let width = dout.columns();
    let inner = |row, source, basis| dot(&rows.row(source)[basis * width..][..width], dout.row(row));
    add_proportions(compute, gradient, along, inner);
}

fn add(out: &mut [f32], factor: f32, row: &[f32]) {
    out.iter_mut().zip(row).for_each(|(sum, value)| *sum += factor * value);
}

/// In eight sums, so that the processor need not wait for one addition before the next.
fn dot(a: &[f32], b: &[f32]) -> f32 {
    const LANES: usize = 8;
    let mut sums = [0.0f32; LANES];
    let (heads, tails) = (a.chunks_exact(LANES).zip(b.chunks_exact(LANES)), a.len() / LANES * LANES);
    for (a, b) in heads {
        sums.iter_mut().zip(a.iter().zip(b)).for_each(|(sum, (a, b))| *sum += a * b);
    }
    let rest: f32 = a[tails..].iter().zip(&b[tails..]).map(|(a, b)| a * b).sum();
    sums.iter().sum::<f32>() + rest
}
