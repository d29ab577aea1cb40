//! The loops that codecs of fixed width share.

use super::{RowSet, RowsMut, RowsRef, Store};
use crate::error::expect_payload;
use crate::{Result, WireError};

/// How many values are converted at once: a kibibyte. Larger blocks make the copy behind each wait for the loads before
/// it; with 2,048 values, encoding in order is a third slower.
const BLOCK: usize = 256;

/// How many scattered rows are fetched together. A row's conversion fills the processor's window, so rows fetched one
/// by one wait for memory one by one: 3.1 instead of 4.7 GB/s (`crates/wire/examples/codec_speed.rs`, rows of 256 in
/// random order).
pub(super) const FETCHED: usize = 8;

/// How many f32 make a cache line.
pub(super) const LINE: usize = 16;

/// The loop that fixed-width codecs share: appends each value of the rows as `WIDTH` bytes, one pass over memory, and
/// finds out whether all were finite.
pub(super) fn append_values<const WIDTH: usize>(
    codec: &'static str,
    rows: &RowsRef<'_>,
    into: &mut Vec<u8>,
    to_bytes: impl Fn(u32) -> [u8; WIDTH] + Copy,
) -> Result<()> {
    let before = into.len();
    into.reserve(rows.rows.len() * rows.columns * WIDTH);
    let mut block = [[0; WIDTH]; BLOCK];
    let mut exponents = 0;
    match &rows.rows {
        RowSet::Range(range) => {
            let values = &rows.data[range.start * rows.columns..range.end * rows.columns];
            exponents |= append_slice(values, &mut block, into, to_bytes);
        }
        RowSet::Indices(indices) => {
            for first in (0..indices.len()).step_by(FETCHED) {
                let group = first..indices.len().min(first + FETCHED);
                // One value of each line, checked like all the others later, brings the line here.
                for position in group.clone() {
                    exponents |= rows.row(position).iter().step_by(LINE).fold(0, |all, value| all | carry(*value));
                }
                for position in group {
                    exponents |= append_slice(rows.row(position), &mut block, into, to_bytes);
                }
            }
        }
    }
    if exponents >> 31 == 0 {
        return Ok(());
    }
    into.truncate(before);
    Err(not_finite(codec, rows))
}

/// Appends the values; the highest bit of the result says whether one was not finite.
fn append_slice<const WIDTH: usize>(
    values: &[f32],
    block: &mut [[u8; WIDTH]; BLOCK],
    into: &mut Vec<u8>,
    to_bytes: impl Fn(u32) -> [u8; WIDTH],
) -> u32 {
    let mut exponents = 0;
    for values in values.chunks(BLOCK) {
        let block = &mut block[..values.len()];
        for (bytes, &value) in block.iter_mut().zip(values) {
            exponents |= carry(value);
            *bytes = to_bytes(value.to_bits());
        }
        into.extend_from_slice(block.as_flattened());
    }
    exponents
}

/// Adds one to the exponent's field, which carries into the sign's place exactly if all its bits are set: if the value
/// is not finite. Integer arithmetic without a branch, whose results may be or-ed: every compiler makes vector code of
/// it.
#[inline]
fn carry(value: f32) -> u32 {
    (value.to_bits() & 0x7fff_ffff) + 0x0080_0000
}

/// Finds the value that [`append_values`] noticed.
#[cold]
pub(super) fn not_finite(codec: &'static str, rows: &RowsRef<'_>) -> WireError {
    for position in 0..rows.rows.len() {
        for (column, &value) in rows.row(position).iter().enumerate() {
            if !value.is_finite() {
                return WireError::NotFinite { codec, row: rows.rows.at(position), column, value };
            }
        }
    }
    unreachable!("the encoder met a value that is not finite")
}

/// The loop that fixed-width codecs share: reads `WIDTH` bytes per value into the rows.
pub(super) fn read_values<const WIDTH: usize>(
    codec: &'static str,
    payload: &[u8],
    mut into: RowsMut<'_>,
    store: Store,
    from_bytes: impl Fn([u8; WIDTH]) -> f32 + Copy,
) -> Result<()> {
    let (count, columns) = (into.rows.len(), into.columns);
    expect_payload(codec, count * columns * WIDTH, payload.len())?;
    let (values, _) = payload.as_chunks::<WIDTH>();
    if let RowSet::Range(range) = &into.rows {
        let target = &mut into.data[range.start * columns..range.end * columns];
        store_slice(values, target, store, from_bytes);
        return Ok(());
    }
    for position in 0..count {
        store_slice(&values[position * columns..][..columns], into.row(position), store, from_bytes);
    }
    Ok(())
}

fn store_slice<const WIDTH: usize>(
    values: &[[u8; WIDTH]],
    target: &mut [f32],
    store: Store,
    from_bytes: impl Fn([u8; WIDTH]) -> f32,
) {
    match store {
        Store::Set => target.iter_mut().zip(values).for_each(|(target, &bytes)| *target = from_bytes(bytes)),
        Store::Add => target.iter_mut().zip(values).for_each(|(target, &bytes)| *target += from_bytes(bytes)),
    }
}
