//! Rows however they are stored, as `f32` while they are in the cache: kernels take slices of `f32`, and rows of
//! [`Bf16`](crate::matrix::Bf16) are widened a few at a time into rooms that stay in the L1 cache, and rounded when
//! they are put back.

use std::ops::Range;

use super::Store;
use super::dispatch::per_processor;
use crate::dropout::Dropout;
use crate::matrix::{Bf16, DenseRows, Matrix, Span, Value, Values, drop_row, each_value};
use crate::threads::{Compute, ROWS_PER_PIECE, Rooms};

/// What a piece of work does with the rows that it is given.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Access {
    /// It sets them, whatever they hold.
    Write,
    /// It reads them and changes them.
    Update,
}

impl From<Store> for Access {
    fn from(store: Store) -> Access {
        match store {
            Store::Set => Access::Write,
            Store::Add => Access::Update,
        }
    }
}

/// How many values are widened at once: with those of two other matrices they fill the L1 cache.
const BLOCK: usize = 2048;

/// As many rows of this width as fill a block.
fn rows_of_block(width: usize) -> usize {
    (BLOCK / width.max(1)).max(1)
}

/// Calls `task(first, rows)` for all rows of `stored` in order, of which `first` is the first: once where they are
/// `f32`, else for as many as fill a block at a time.
pub(super) fn blocks<T: Value>(
    rooms: &Rooms,
    stored: &mut [T],
    width: usize,
    access: Access,
    task: impl FnMut(usize, &mut [f32]),
) {
    blocks_of(rooms, (stored, width), rows_of_block(width), access, task);
}

/// [`blocks`] of so many rows.
pub(super) fn blocks_of<T: Value>(
    rooms: &Rooms,
    (stored, width): (&mut [T], usize),
    rows: usize,
    access: Access,
    mut task: impl FnMut(usize, &mut [f32]),
) {
    if T::plain(stored).is_some() {
        return task(0, T::plain_mut(stored).unwrap_or_default());
    }
    rooms.lend(|room| {
        room.resize(room.len().max(rows * width));
        for (block, stored) in stored.chunks_mut((rows * width).max(1)).enumerate() {
            let values = &mut room[..stored.len()];
            if access == Access::Update {
                widen(values, stored);
            }
            task(block * rows, values);
            narrow(stored, values);
        }
    });
}

/// Calls `task(first, rows)` for the rows of `out` in pieces, on all threads.
pub(super) fn pieces(
    compute: &Compute,
    out: &mut Matrix,
    access: Access,
    task: impl Fn(usize, &mut [f32]) + Sync + Send,
) {
    let block = rows_of_block(out.columns());
    pieces_of(compute, (ROWS_PER_PIECE, block), out, access, task);
}

/// [`pieces`] of so many rows, and so many that are widened at once.
pub(super) fn pieces_of(
    compute: &Compute,
    (size, block): (usize, usize),
    out: &mut Matrix,
    access: Access,
    task: impl Fn(usize, &mut [f32]) + Sync + Send,
) {
    let (width, rooms) = (out.columns().max(1), compute.rooms());
    each_value!(out.values_mut(), |out| {
        compute.chunks(out, size * width, |piece, out| {
            blocks_of(&rooms, (out, width), block, access, |first, rows| task(piece * size + first, rows));
        });
    });
}

/// As [`pieces`], row after row.
pub(super) fn rows(
    compute: &Compute,
    out: &mut Matrix,
    access: Access,
    task: impl Fn(usize, &mut [f32]) + Sync + Send,
) {
    let width = out.columns().max(1);
    pieces(compute, out, access, |first, rows| {
        rows.chunks_mut(width).enumerate().for_each(|(line, row)| task(first + line, row));
    });
}

/// As [`pieces`], with a second array of so many values a row that is cut alike.
pub(super) fn pieces2<U: Send>(
    compute: &Compute,
    (out, access): (&mut Matrix, Access),
    (other, other_width): (&mut [U], usize),
    task: impl Fn(usize, &mut [f32], &mut [U]) + Sync + Send,
) {
    let (width, rooms) = (out.columns().max(1), compute.rooms());
    let others = (other, ROWS_PER_PIECE * other_width);
    each_value!(out.values_mut(), |out| {
        compute.chunks2((out, ROWS_PER_PIECE * width), others, |piece, out, other| {
            blocks(&rooms, out, width, access, |first, rows| {
                let other = &mut other[first * other_width..][..rows.len() / width * other_width];
                task(piece * ROWS_PER_PIECE + first, rows, other);
            });
        });
    });
}

/// `task` on some rows: where they stand, or widened.
pub(crate) fn read<T>(rooms: &Rooms, rows: Span<'_>, which: Range<usize>, task: impl FnOnce(&[f32]) -> T) -> T {
    each_value!(rows.span(which).values(), |stored| read_values(rooms, stored, task))
}

/// `task` on values: where they stand, or widened.
pub(super) fn read_values<V: Value, T>(rooms: &Rooms, stored: &[V], task: impl FnOnce(&[f32]) -> T) -> T {
    match V::plain(stored) {
        Some(values) => task(values),
        None => rooms.lend(|room| {
            room.resize(room.len().max(stored.len()));
            widen(&mut room[..stored.len()], stored);
            task(&room[..stored.len()])
        }),
    }
}

/// `task` on some rows: where they stand, or made in a room.
pub(super) fn read_dense<T>(
    rooms: &Rooms,
    rows: DenseRows<'_>,
    which: Range<usize>,
    task: impl FnOnce(&[f32]) -> T,
) -> T {
    match rows.as_stored(which.clone()) {
        Some(span) => read(rooms, span, 0..span.rows(), task),
        None => made(rooms, rows.span(which), task),
    }
}

/// `task` on some rows: as they are stored, or where they have dropout or another order made in a room.
pub(super) fn read_stored<T>(
    rooms: &Rooms,
    rows: DenseRows<'_>,
    which: Range<usize>,
    task: impl FnOnce(Values<&[f32], &[Bf16]>) -> T,
) -> T {
    match rows.as_stored(which.clone()) {
        Some(span) => task(span.values()),
        None => made(rooms, rows.span(which), |rows| task(Values::F32(rows))),
    }
}

/// `task` on rows in their order and with their dropout, made in a room.
fn made<T>(rooms: &Rooms, rows: DenseRows<'_>, task: impl FnOnce(&[f32]) -> T) -> T {
    let (width, len) = (rows.columns().max(1), rows.rows() * rows.columns());
    let (span, places) = rows.stored();
    rooms.lend(|room| {
        room.resize(room.len().max(len));
        let made = &mut room[..len];
        each_value!(span.values(), |values| match (places, rows.dropout()) {
            (None, Some((dropout, nodes))) => drop_piece(made, values, width, &dropout, nodes),
            (None, None) => widen(made, values),
            (Some(places), dropout) => place_piece(made, values, width, places, dropout),
        });
        task(made)
    })
}

per_processor! {
    /// `into = from`, value by value.
    pub(super) fn widen<T: Value>(into: &mut [f32], from: &[T]) {
        into.iter_mut().zip(from).for_each(|(into, from)| *into = from.get());
    }
}

per_processor! {
    /// `into = from`, value by value, rounded.
    pub(super) fn narrow<T: Value>(into: &mut [T], from: &[f32]) {
        into.iter_mut().zip(from).for_each(|(into, from)| *into = T::of(*from));
    }
}

per_processor! {
    /// `out` = rows of `width` values with dropout, as they would be stored.
    pub(super) fn drop_piece<T: Value>(out: &mut [f32], x: &[T], width: usize, dropout: &Dropout, nodes: &[u64]) {
        for ((out, x), &node) in out.chunks_exact_mut(width).zip(x.chunks_exact(width)).zip(nodes) {
            drop_row(out, x, dropout, node);
        }
    }
}

per_processor! {
    /// `out` = the rows `places` of `width` values each, with dropout where there is one.
    fn place_piece<T: Value>(
        out: &mut [f32], x: &[T], width: usize, places: &[u32], dropout: Option<(Dropout, &[u64])>,
    ) {
        for (row, (out, &place)) in out.chunks_exact_mut(width).zip(places).enumerate() {
            let x = &x[place as usize * width..][..width];
            match dropout {
                Some((dropout, nodes)) => drop_row(out, x, &dropout, nodes[row]),
                None => out.iter_mut().zip(x).for_each(|(out, x)| *out = x.get()),
            }
        }
    }
}
